"""The table of the tests of an import: labels, factors and values that any of its tests states, one line a test."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.analysis.trial_metrics import CPU_PER_IO
from webapp.plans.factors import FACTORS
from webapp.results.metrics import CPU_PER_IO as IMPORTED
from webapp.results.metrics import METRICS, Metric, entered_metric
from webapp.results.reading.rows import ResultRow
from webapp.screens.results.columns import COLUMNS, Column

_LABELS = ("host", "controller", "model", "serial", "tool")
_VALUES = ("iops", "bytes_per_s", "latency_mean", "latency_p95", "latency_p99", "latency_max")


@dataclass(frozen=True)
class TestRow:
    number: int
    direction: str
    repeat: int
    cells: tuple[tuple[str, str], ...]  # CSS classes and text
    stated: str  # without a column, and not of all tests: `layout: RAID 5 · cache policy: write back`


@dataclass(frozen=True)
class TestTable:
    columns: tuple[Column, ...]
    rows: tuple[TestRow, ...]
    common: str  # the same for all rows, so without a column: `Host: lab1 · Block size: 4 KiB · tray: A`


def table_of(results: Sequence[ResultRow]) -> TestTable:
    """One row for each result. A column that would be empty, or the same in all of several rows, is left out."""
    factors = [name for name in FACTORS if any(name in row.point for row in results)]
    labels = [name for name in _LABELS if any(getattr(row, name) for row in results)]
    values = [key for key in _VALUES if any(METRICS[key].of(row) is not None for row in results)]
    named = [COLUMNS[name] for name in (*labels, *factors)]
    fixed = [column for column in named if len(results) > 1 and len({column.text(row) for row in results}) == 1]
    columns = (*(column for column in named if column not in fixed), *(COLUMNS[key] for key in values))
    stated = [_stated(row) for row in results]
    common = [each for each in stated[0] if all(each in of_row for of_row in stated)] if len(stated) > 1 else []
    rows = (
        _row(row, columns, [each for each in of_row if each not in common])
        for row, of_row in zip(results, stated, strict=True)
    )
    in_words = [f"{column.label}: {column.text(results[0])}" for column in fixed]
    return TestTable(columns, tuple(rows), " · ".join([*in_words, *common]))


def _row(result: ResultRow, columns: Sequence[Column], stated: Sequence[str]) -> TestRow:
    cells = tuple((_style(each), each.text(result)) for each in columns)
    return TestRow(result.trial, result.direction, result.repeat, cells, " · ".join(stated))


def _style(column: Column) -> str:
    return "num" if column.numeric else "nowrap"


def _stated(row: ResultRow) -> list[str]:
    """`name: value` of labels and metrics without a column, without the steps in which a tool prints latencies."""
    known = ((_stated_metric(name), value) for name, value in row.metrics.items() if name not in METRICS)
    metrics = [f"{metric.label}: {metric.format(value)}" for metric, value in known if metric]
    facts = [f"{name}: {text}" for name, text in row.facts.items() if not name.startswith("device.")]
    return [*facts, *metrics]


def _stated_metric(name: str) -> Metric | None:
    return CPU_PER_IO if name == IMPORTED else entered_metric(name)
