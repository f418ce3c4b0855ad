"""Tables as CSV for people and spreadsheets: units in the header, and no text that a spreadsheet would run."""

import csv
from collections.abc import Iterable, Iterator, Sequence

from django.http import StreamingHttpResponse

from webapp.plans.factors import FACTORS
from webapp.results.filters import ResultFilter
from webapp.results.listing import Listed
from webapp.results.paging import Sort, page_of
from webapp.results.selectors import located

FIRST_CHUNK, CHUNK = 100, 1000  # results that are read at once: few at first, so that the file begins soon
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS = (
    "ios", "bytes", "runtime_ms", "iops", "bytes_per_s", "latency_kind", "latency_min_ns", "latency_mean_ns",
    "latency_max_ns", "latency_stddev_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns",
)  # fmt: skip


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def safe(value: object) -> object:
    """A text that begins like a formula gets an apostrophe before it (OWASP, CSV injection); numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_response(name: str, rows: Iterable[Sequence[object]]) -> StreamingHttpResponse:
    writer = csv.writer(_Echo())
    lines = (writer.writerow([safe(value) for value in row]) for row in rows)
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def result_rows(asked: ResultFilter) -> Iterator[Sequence[object]]:
    """A heading and every result of the filter, newest first; units are in the names, every known factor is a column.

    Read in pieces that follow one another, so that the first line is out at once and no transaction stays open.
    """
    yield [
        "run", "plan", "trial", "repeat", "host", "target", "label", "drive_model", "drive_serial", "drive_state",
        "direction", "measured_at", "invalid", "invalid_reason", *map(_heading, FACTORS), *_NUMBERS,
    ]  # fmt: skip
    asked = located(asked)
    page = page_of(asked, Sort(), limit=FIRST_CHUNK)
    yield from map(_row, page.rows)
    while page.older:
        page = page_of(asked, Sort(), limit=CHUNK, after=page.older)
        yield from map(_row, page.rows)


def _heading(name: str) -> str:
    """`block_size_B`, `runtime_s`; the unit where the name does not say it."""
    unit = FACTORS[name].unit
    spelled = {"%": "percent", "µs": "us"}.get(unit, unit)
    return name if not unit or name.lower().endswith(f"_{spelled.lower()}") else f"{name}_{spelled}"


def _row(result: Listed) -> Sequence[object]:
    return [
        result.run, result.plan, result.trial, result.repeat, result.host, result.target, result.label,
        result.model, result.serial, result.drive_state, result.direction, result.measured_at.isoformat(),
        result.invalid, result.why_invalid,
        *(result.point.get(name, "") for name in FACTORS), *(getattr(result, number) for number in _NUMBERS),
    ]  # fmt: skip
