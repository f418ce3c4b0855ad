"""A comparison as a table for files: a row for each series at each level, in stored units."""

from collections.abc import Iterator, Sequence

from webapp.compare.comparison import BaselineRatio, Cell, Comparison
from webapp.core.table_files import Column, Kind, Table

_FIGURES = ("geometric mean", "95 % CI low", "95 % CI high", "sd", "minimum", "maximum")
_RATIO = ("Ratio to the baseline", "Ratio 95 % CI low", "Ratio 95 % CI high", "Corrected p")

Key = tuple[int, int, int]  # panel, level, series


def comparison_table(comparison: Comparison) -> Table:
    """By panel, then level, then series, so that compared values are adjacent."""
    rows = (row for _, row in sorted(_rows(comparison), key=lambda item: item[0]))
    return Table(_columns(comparison), rows)


def _columns(comparison: Comparison) -> list[Column]:
    metric, unit = comparison.metric_label, comparison.unit
    return [
        Column(comparison.panel_label or "Chart"),
        Column(comparison.x_label),
        Column(comparison.series_label or "Series"),
        Column("Baseline", Kind.SWITCH),
        Column("n", Kind.INTEGER),
        *(Column(f"{metric} {figure} [{unit}]", Kind.NUMBER, unit) for figure in _FIGURES),
        *(Column(heading, Kind.NUMBER) for heading in _RATIO),
        Column("Within margin", Kind.SWITCH),
        Column("Doubts"),
    ]


def _rows(comparison: Comparison) -> Iterator[tuple[Key, Sequence[object]]]:
    for panel_index, panel in enumerate(comparison.panels):
        for series_index, series in enumerate(panel.series):
            for cell in series.cells:
                named = (panel.name or None, comparison.levels[cell.level].text, series.name or None)
                row = (*named, series.is_baseline, *_figures(cell), *_against(cell.against_baseline), _doubts(cell))
                yield (panel_index, cell.level, series_index), row


def _figures(cell: Cell) -> Sequence[object]:
    summary = cell.summary
    return summary.n, summary.mean, summary.low, summary.high, summary.sd, min(summary.values), max(summary.values)


def _against(baseline: BaselineRatio | None) -> Sequence[object]:
    if baseline is None:
        return (None,) * 5
    ratio = baseline.ratio
    tested = (None, None) if ratio.low is None else (baseline.p, baseline.equal)  # nothing is tested without repeats
    return ratio.value, ratio.low, ratio.high, *tested


def _doubts(cell: Cell) -> str | None:
    return "; ".join(cell.doubts) or None
