"""The rows of Bench as a table for files: a row for each product at each workload, in stored units."""

from collections.abc import Mapping, Sequence

from webapp.bench.answer import BenchAnswer, BenchCell, BenchRow
from webapp.core.table_files import Column, Kind, Table

_COLUMNS = (
    Column("Pattern"), Column("Workload"), Column("Metric"), Column("Unit"), Column("Direction"), Column("Product"),
    Column("Name"), Column("Baseline", Kind.SWITCH), Column("n", Kind.INTEGER), Column("Geometric mean", Kind.NUMBER),
    Column("95 % CI low", Kind.NUMBER), Column("95 % CI high", Kind.NUMBER),
    Column("Ratio to the baseline", Kind.NUMBER), Column("Ratio 95 % CI low", Kind.NUMBER),
    Column("Ratio 95 % CI high", Kind.NUMBER), Column("Better", Kind.SWITCH), Column("Mean over"),
    Column("Factors not stated", Kind.INTEGER), Column("Matched with"), Column("Doubts"),
)  # fmt: skip


def bench_table(found: BenchAnswer) -> Table:
    """Products that were not measured at a workload have no row there."""
    names = {one.product: one.name for one in found.products}
    return Table(_COLUMNS, (_row(found.baseline, names, row, cell) for row in found.rows for cell in row.cells))


def _row(baseline: str, names: Mapping[str, str], row: BenchRow, cell: BenchCell) -> Sequence[object]:
    return (
        row.title, row.workload, row.metric, row.unit, row.direction, cell.product, names[cell.product],
        cell.product == baseline, cell.n, cell.mean, cell.low, cell.high, cell.ratio, cell.ratio_low,
        cell.ratio_high, cell.better, cell.pooled or None, cell.unstated, cell.assumed or None,
        "; ".join(cell.doubts) or None,
    )  # fmt: skip
