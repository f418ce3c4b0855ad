"""The table of the tests of an import: labels, factors and values that any of its tests states, one line a test."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.plans.factors import FACTORS
from webapp.results.metrics import METRICS
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
    common: str  # without a column, the same for all rows


def table_of(results: Sequence[ResultRow]) -> TestTable:
    """One row for each result. A column that would be empty is left out."""
    factors = [name for name in FACTORS if any(name in row.point for row in results)]
    labels = [name for name in _LABELS if any(getattr(row, name) for row in results)]
    values = [key for key in _VALUES if any(METRICS[key].of(row) is not None for row in results)]
    columns = tuple(COLUMNS[name] for name in (*labels, *factors, *values))
    stated = [_stated(row) for row in results]
    common = [each for each in stated[0] if all(each in of_row for of_row in stated)] if len(stated) > 1 else []
    rows = (
        _row(row, columns, [each for each in of_row if each not in common])
        for row, of_row in zip(results, stated, strict=True)
    )
    return TestTable(columns, tuple(rows), " · ".join(common))


def _row(result: ResultRow, columns: Sequence[Column], stated: Sequence[str]) -> TestRow:
    cells = tuple((_style(each), each.text(result)) for each in columns)
    return TestRow(result.trial, result.direction, result.repeat, cells, " · ".join(stated))


def _style(column: Column) -> str:
    return "num" if column.numeric else "nowrap"


def _stated(row: ResultRow) -> list[str]:
    """`name: value` of labels and metrics without a column."""
    metrics = [f"{name}: {value:g}" for name, value in row.metrics.items() if name not in METRICS]
    facts = [f"{name}: {text}" for name, text in row.facts.items() if not name.startswith("device.")]
    return [*facts, *metrics]
