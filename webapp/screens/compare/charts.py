"""A comparison as its charts and its table want it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webapp.compare.latency import PERCENTS, Distribution
from webapp.compare.options import ViewOptions
from webapp.compare.structs import Cell, Comparison, Series
from webapp.compare.timeline import TimeLines
from webapp.hosts.bounds import Bound
from webapp.screens.ceilings import drawn
from webapp.screens.compare.payloads import (
    CompareCharts,
    CompareLevel,
    ComparePanel,
    ComparePoint,
    CompareSeries,
    LatencyCharts,
    LatencySeries,
    SeriesName,
    TimeCharts,
    TimeSeries,
)


@dataclass(frozen=True)
class TableRow:
    """One cell: a series at a level of a panel."""

    panel: str
    level: str
    series: str
    is_baseline: bool
    cell: Cell

    @property
    def mark(self) -> str:
        """Better or worse than the baseline, muted where that cannot be told from chance."""
        ratio = self.cell.ratio
        return "muted" if ratio is None or ratio.better is None else "better" if ratio.better else "worse"


def charts_of(comparison: Comparison, options: ViewOptions, bounds: Sequence[Bound] = ()) -> CompareCharts:
    return CompareCharts(
        x_label=comparison.x_label,
        levels=tuple(CompareLevel(text=level.text, value=level.value) for level in comparison.levels),
        metric_label=comparison.metric_label,
        shown_as=comparison.shown_as,
        kind=options.chart if options.chart in ("line", "bar") else "auto",
        logarithmic=options.scale == "log",
        shared=options.axis != "own",
        ceilings=drawn(bounds),
        panels=tuple(
            ComparePanel(name=panel.name, series=tuple(_series(series) for series in panel.series))
            for panel in comparison.panels
        ),
    )


def _series(series: Series) -> CompareSeries:
    points = (
        ComparePoint(
            level=cell.level,
            mean=cell.mean,
            low=cell.ci95_low,
            high=cell.ci95_high,
            n=cell.n,
            text=cell.text,
            spread_text=cell.spread_text,
            doubts=cell.doubts,
        )
        for cell in series.points
    )
    return CompareSeries(name=series.name, is_baseline=series.is_baseline, points=tuple(points))


def names_of(comparison: Comparison) -> list[SeriesName]:
    known = {series.name: series.is_baseline for panel in comparison.panels for series in panel.series}
    return [SeriesName(name=name, is_baseline=is_baseline) for name, is_baseline in known.items()]


def latency_charts(found: Sequence[Distribution], options: ViewOptions) -> LatencyCharts:
    series = (
        LatencySeries(
            name=one.name, is_baseline=one.is_baseline, steps_ns=one.steps_ns, cdf_ns=one.cdf_ns,
            cdf_shares=one.cdf_shares,
        )
        for one in found
    )  # fmt: skip
    return LatencyCharts(percents=PERCENTS, nines=options.shares != "linear", series=tuple(series))


def time_charts(lines: TimeLines, options: ViewOptions, bounds: Sequence[Bound] = ()) -> TimeCharts:
    series = (
        TimeSeries(name=one.name, is_baseline=one.is_baseline, repeats=one.repeats, mean=one.mean)
        for one in lines.series
    )
    return TimeCharts(
        label=lines.label, shown_as=lines.shown_as, bin_s=lines.bin_s, logarithmic=options.scale == "log",
        ceilings=drawn(bounds), series=tuple(series),
    )  # fmt: skip


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
