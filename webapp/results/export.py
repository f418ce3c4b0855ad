"""Results as a table for files: every known factor is a column, and its unit is in the heading."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from webapp.core.table_files import Column, Kind, Table
from webapp.plans.factors import FACTORS, stream_and_factor
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Switch, Value
from webapp.results.metrics import METRICS
from webapp.results.reading.content import Point
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import Page, ResultQuery, Sort
from webapp.results.reading.rows import ResultRow

CHUNK = 1000  # results per query

Read = Callable[[ResultRow], object]


def results_table(wanted: ResultFilter, limit: int | None = None) -> Table:
    """All results of the filter, newest first, or the newest `limit`.

    The first page is read at once, so that its errors are raised here. The others are read one by one as the rows are
    taken, so that no transaction stays open.
    """
    query = ResultQuery.of(wanted)
    rows = _rows(query, query.page(Sort(), limit=CHUNK))
    return Table(COLUMNS, islice(rows, limit))


def _rows(query: ResultQuery, page: Page) -> Iterator[Sequence[object]]:
    yield from map(_row, page.rows)
    while page.older:
        page = query.page(Sort(), limit=CHUNK, after=page.older)
        yield from map(_row, page.rows)


def _row(result: ResultRow) -> Sequence[object]:
    before, after = [read(result) for _, read in _BEFORE], [read(result) for _, read in _AFTER]
    return [*before, *_levels(result.point), *after]


def _levels(point: Point) -> Sequence[Value]:
    """In the order of FACTORS. A point has few of them, so this is faster than a look-up for each."""
    levels: list[Value] = [None] * len(_FACTORS)
    for name, level in point.items():
        if factor := _FACTORS.get(name):
            place, kind = factor
            levels[place] = int(level) if kind is Kind.INTEGER and level is not None else level
    return levels


def kind_of(factor: Factor) -> Kind:
    if factor.numeric:
        return Kind.INTEGER
    return Kind.SWITCH if isinstance(factor.values, Switch) else Kind.TEXT


def _heading(factor: Factor) -> str:
    """`block_size_B`, `runtime_s`; the unit is added unless the name ends with it."""
    unit = {"%": "percent", "µs": "us"}.get(factor.unit, factor.unit)
    name = factor.name
    return name if not unit or name.lower().endswith(f"_{unit.lower()}") else f"{name}_{unit}"


def _texts(*names: str) -> list[tuple[Column, Read]]:
    return [(Column(name), _text(name)) for name in names]


def _text(name: str) -> Read:
    return lambda result: getattr(result, name) or None


def _stored(name: str, kind: Kind, unit: str = "") -> tuple[Column, Read]:
    return Column(name, kind, unit), lambda result: getattr(result, name)


def _of_engine(name: str) -> tuple[Column, Read]:
    return Column(name, Kind.NUMBER, METRICS[name].unit), lambda result: result.metrics.get(name)


def _of_streams(point: Point) -> str | None:
    """Levels in the names of streams: `writer.iodepth=8; writer.pattern=randwrite`."""
    named = {name: level for name, level in point.items() if stream_and_factor(name)[0]}
    return "; ".join(f"{name}={FACTORS[name].values.write(level)}" for name, level in sorted(named.items())) or None


def _other_metrics(result: ResultRow) -> str | None:
    """Metrics without a column: values entered by hand, and those of tools whose output was imported."""
    return _json({name: value for name, value in result.metrics.items() if name not in METRICS})


def _labels_of_import(result: ResultRow) -> str | None:
    return _json(result.facts) if result.imported else None


def _json(value: Mapping[str, object]) -> str | None:
    return msgspec.json.encode(value, order="sorted").decode() if value else None


_FACTORS = {factor.name: (place, kind_of(factor)) for place, factor in enumerate(FACTORS.values())}
_BEFORE: Sequence[tuple[Column, Read]] = [
    (Column("run", Kind.INTEGER), lambda result: result.run or None),
    (Column("import"), lambda result: result.import_title or None),
    (Column("import_labels"), _labels_of_import),
    *_texts("plan", "part"),
    _stored("trial", Kind.INTEGER),
    _stored("repeat", Kind.INTEGER),
    *_texts("host", "target", "label", "tool", "controller"),
    (Column("drive_model"), _text("model")),
    (Column("drive_serial"), _text("serial")),
    *_texts("drive_state", "direction"),
    (Column("measured_at", Kind.TIME), lambda result: result.stated_at),
    _stored("invalid", Kind.SWITCH),
    (Column("invalid_reason"), _text("why_invalid")),
    *_texts("steadiness"),
]
_AFTER: Sequence[tuple[Column, Read]] = [
    (Column("levels_of_streams"), lambda result: _of_streams(result.point)),
    _stored("ios", Kind.INTEGER),
    _stored("bytes", Kind.INTEGER, "B"),
    _stored("runtime_ms", Kind.INTEGER, "ms"),
    _stored("iops", Kind.NUMBER, "1/s"),
    _stored("bytes_per_s", Kind.NUMBER, "B/s"),
    *_texts("latency_kind"),
    *(_stored(f"latency_{name}_ns", Kind.NUMBER, "ns") for name in ("min", "mean", "max", "stddev")),
    *(_stored(f"{name}_ns", Kind.INTEGER, "ns") for name in ("p50", "p95", "p99", "p999")),
    *(_of_engine(name) for name, metric in METRICS.items() if not metric.column),  # the unit is in the key
    (Column("other_metrics"), _other_metrics),
]
COLUMNS: Sequence[Column] = [
    *(column for column, _ in _BEFORE),
    *(Column(_heading(factor), kind_of(factor), factor.unit) for factor in FACTORS.values()),
    *(column for column, _ in _AFTER),
]
