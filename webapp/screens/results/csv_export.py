"""Tables as CSV: units in the header, and no text that a spreadsheet would execute as a formula."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from django.http import StreamingHttpResponse

from webapp.plans.factors import FACTORS, stream_and_factor
from webapp.results.metrics import METRICS
from webapp.results.reading.content import Point
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import Page, ResultQuery, Sort
from webapp.results.reading.rows import ResultRow

CHUNK = 1000  # results per query
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS = (
    "ios", "bytes", "runtime_ms", "iops", "bytes_per_s", "latency_kind", "latency_min_ns", "latency_mean_ns",
    "latency_max_ns", "latency_stddev_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns",
)  # fmt: skip
_OF_ENGINES = tuple(key for key, metric in METRICS.items() if not metric.column)  # the unit is in the key


class _Echo:
    """A file that returns the text instead of writing it."""

    def write(self, text: str) -> str:
        return text


def safe(value: object) -> object:
    """Prefix text that looks like a formula with an apostrophe (OWASP, CSV injection); numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_response(name: str, rows: Iterable[Sequence[object]]) -> StreamingHttpResponse:
    writer = csv.writer(_Echo())
    lines = (writer.writerow([safe(value) for value in row]) for row in rows)
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def result_rows(asked: ResultFilter) -> Iterator[Sequence[object]]:
    """A header and all results of the filter, newest first. Units are in the names; every known factor is a column.

    The first page is read at once, so that its errors are raised here. The others are read one by one as the rows are
    taken, so that no transaction stays open.
    """
    found = ResultQuery.of(asked)
    return chain([_header()], _rows(found, found.page(Sort(), limit=CHUNK)))


def _header() -> Sequence[object]:
    return [
        "run", "import", "plan", "trial", "repeat", "host", "target", "label", "tool", "controller",
        "drive_model", "drive_serial", "drive_state", "direction",
        "measured_at", "invalid", "invalid_reason", "steadiness", *map(_heading, FACTORS), "levels_of_streams",
        *_NUMBERS, *_OF_ENGINES,
    ]  # fmt: skip


def _rows(found: ResultQuery, page: Page) -> Iterator[Sequence[object]]:
    yield from map(_row, page.rows)
    while page.older:
        page = found.page(Sort(), limit=CHUNK, after=page.older)
        yield from map(_row, page.rows)


def _of_streams(point: Point) -> str:
    """Levels in the names of streams: `writer.iodepth=8; writer.pattern=randwrite`."""
    named = {name: level for name, level in point.items() if stream_and_factor(name)[0]}
    return "; ".join(f"{name}={FACTORS[name].values.write(level)}" for name, level in sorted(named.items()))


def _heading(name: str) -> str:
    """`block_size_B`, `runtime_s`; the unit is added unless the name ends with it."""
    unit = FACTORS[name].unit
    spelled = {"%": "percent", "µs": "us"}.get(unit, unit)
    return name if not unit or name.lower().endswith(f"_{spelled.lower()}") else f"{name}_{spelled}"


def _row(result: ResultRow) -> Sequence[object]:
    return [
        result.run or "", result.import_title, result.plan, result.trial, result.repeat, result.host, result.target,
        result.label, result.tool, result.controller, result.model, result.serial, result.drive_state,
        result.direction, result.measured_at.isoformat(), result.invalid, result.why_invalid, result.steadiness,
        *(result.point.get(name, "") for name in FACTORS), _of_streams(result.point),
        *(getattr(result, number) for number in _NUMBERS),
        *(result.metrics.get(name, "") for name in _OF_ENGINES),
    ]  # fmt: skip
