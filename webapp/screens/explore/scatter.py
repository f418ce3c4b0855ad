"""Two metrics against each other: one point per series and level, joined in the order of levels."""

from collections.abc import Sequence
from dataclasses import replace

from webapp.compare.baseline import baseline_of
from webapp.compare.blocks import measured
from webapp.compare.comparison import Level
from webapp.compare.mixes import totals
from webapp.compare.observed import COMPARED, with_observed
from webapp.compare.options import ViewOptions
from webapp.compare.selectors import Selected, for_latencies
from webapp.results.metrics import IOPS, METRICS, Metric
from webapp.results.reading.rows import ResultRow
from webapp.screens.explore.payloads import ScatterCharts, ScatterPanel, ScatterPoint, ScatterSeries

DEFAULT = COMPARED["latency_p99"]


def against_of(options: ViewOptions, metric: Metric, rows: Sequence[ResultRow]) -> Metric:
    """The chosen second metric, else p99 latency for rates and IOPS for latencies, else the first that results have."""
    if options.against:
        return COMPARED[options.against]
    usual = IOPS if metric.shown_as == "latency" else DEFAULT
    others = (other for other in (usual, *METRICS.values()) if other is not metric)
    return next((other for other in others if any(other.of(row) is not None for row in rows)), usual)


def scatter_of(selected: Selected, options: ViewOptions) -> tuple[ScatterCharts, int]:
    """The charts, and the number of results without the second metric. If one metric is a latency, directions have
    charts of their own, because a latency has no value for both; else the directions of a trial are one value."""
    observed = with_observed(selected.rows, against_of(options, selected.metric, selected.rows))
    metric, against = selected.metric, observed.metric
    of_latency = any(each.shown_as == "latency" and each.column for each in (metric, against))
    known = observed.rows if of_latency else totals(observed.rows)
    rows = tuple(row for row in known if against.of(row) is not None and metric.of(row) is not None)
    shown = for_latencies(replace(selected, rows=rows))
    grouped = shown.grouped
    values = [measured(grouped, each) for each in (metric, against)]
    means = {key: [each[key].mean for each in values] for key in grouped.cells}
    baseline = baseline_of(shown.query, grouped) if rows else Level("", "", None)

    def points(panel: Level, series: Level) -> Sequence[ScatterPoint]:
        keys = [(x, (panel.key, series.key, x.key)) for x in grouped.x]
        return [_point(x.text, means[key], metric, against) for x, key in keys if key in means]

    def lines(panel: Level) -> tuple[ScatterSeries, ...]:
        made = ((series, points(panel, series)) for series in grouped.series)
        return tuple(
            ScatterSeries(name=series.text, is_baseline=series.key == baseline.key, points=tuple(found))
            for series, found in made
            if found
        )

    charts = ScatterCharts(
        x_label=metric.label,
        x_shown_as=metric.shown_as,
        y_label=against.label,
        y_shown_as=against.shown_as,
        logarithmic=options.scale == "log",
        panels=tuple(ScatterPanel(name=panel.text, series=lines(panel)) for panel in grouped.panels),
    )
    return charts, sum(len(row.ids) for row in selected.rows) - sum(len(row.ids) for row in rows)


def _point(level: str, means: Sequence[float], metric: Metric, against: Metric) -> ScatterPoint:
    x, y = means
    return ScatterPoint(level=level, x=x, y=y, x_text=metric.format(x), y_text=against.format(y))
