"""A comparison as its charts and its table want it."""

from collections.abc import Iterator
from dataclasses import dataclass

from webapp.compare.structs import Cell, Comparison, Series
from webapp.screens.payloads import CompareCharts, CompareLevel, ComparePanel, ComparePoint, CompareSeries


@dataclass(frozen=True)
class TableRow:
    """One cell: a series at a level of a panel."""

    panel: str
    level: str
    series: str
    is_baseline: bool
    cell: Cell


def charts_of(comparison: Comparison) -> CompareCharts:
    return CompareCharts(
        x_label=comparison.x_label,
        levels=tuple(CompareLevel(text=level.text, value=level.value) for level in comparison.levels),
        metric_label=comparison.metric_label,
        shown_as=comparison.shown_as,
        panels=tuple(
            ComparePanel(name=panel.name, series=tuple(_series(series) for series in panel.series))
            for panel in comparison.panels
        ),
    )


def _series(series: Series) -> CompareSeries:
    points = (
        ComparePoint(level=cell.level, mean=cell.mean, low=cell.ci95_low, high=cell.ci95_high, n=cell.n)
        for cell in series.points
    )
    return CompareSeries(name=series.name, is_baseline=series.is_baseline, points=tuple(points))


def table_of(comparison: Comparison) -> list[TableRow]:
    """By panel, then level, then series, so that what is compared stands together."""
    return [row for _, row in sorted(_rows(comparison), key=lambda item: item[0])]


def _rows(comparison: Comparison) -> Iterator[tuple[tuple[int, int, int], TableRow]]:
    for panel_place, panel in enumerate(comparison.panels):
        for series_place, series in enumerate(panel.series):
            for cell in series.points:
                level = comparison.levels[cell.level].text
                row = TableRow(panel.name, level, series.name, series.is_baseline, cell)
                yield (panel_place, cell.level, series_place), row
