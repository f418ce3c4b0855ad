"""What a comparison shows: computed from its query, or as a saved comparison was frozen."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl

from webapp.analysis.answer import Comparison, Level, Struct
from webapp.analysis.cells import measured
from webapp.analysis.comparing import Selected, baseline_of, comparison_of, for_latencies, select
from webapp.analysis.latency import Distribution, chart_point, distributions
from webapp.analysis.models import SavedComparison
from webapp.analysis.question import ViewOptions, read_options, read_query, split
from webapp.analysis.services import frozen, unfrozen
from webapp.analysis.timeline import TimeLines, time_lines
from webapp.analysis.trial_metrics import COMPARED, moments_of, totals, with_observed
from webapp.hosts.inventory.ceilings import Bound, bounds_of
from webapp.results.metrics import IOPS, METRICS, Metric
from webapp.results.reading.rows import ResultRow
from webapp.screens.explore.payloads import ScatterCharts, ScatterPanel, ScatterPoint, ScatterSeries
from webapp.screens.explore.reference_lines import ReferenceLines, reference_lines

# Two metrics against each other: one point per series and level, joined in the order of levels.

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


class Answer(Struct, frozen=True, kw_only=True):
    """The comparison, and the numbers of its view. A field that the view does not have is empty."""

    comparison: Comparison
    chart_point: str = ""  # text of the chart point of the other views
    distributions: tuple[Distribution, ...] = ()  # of the view latency
    lines: TimeLines | None = None  # of the view timeline
    bounds: tuple[Bound, ...] = ()  # ceilings
    references: ReferenceLines | None = None
    scatter: ScatterCharts | None = None
    without: int = 0  # results without the second metric of the scatter chart


def answer_of(selected: Selected, options: ViewOptions) -> Answer:
    """Raises Refusal if the view cannot be shown."""
    comparison = comparison_of(selected)
    if not selected.rows:
        return Answer(comparison=comparison)
    return _OF_VIEW[options.view](selected, comparison, options)


def _means(selected: Selected, comparison: Comparison, options: ViewOptions) -> Answer:
    scatter, without = scatter_of(selected, options) if options.chart == "scatter" else (None, 0)
    has_lines = options.chart not in ("scatter", "heat")
    return Answer(
        comparison=comparison,
        bounds=_bounds(selected, options),
        references=reference_lines(selected, comparison, options) if has_lines else None,
        scatter=scatter,
        without=without,
    )


def _latency(selected: Selected, comparison: Comparison, options: ViewOptions) -> Answer:
    point = chart_point(for_latencies(selected), options.chart_point)
    return Answer(comparison=comparison, chart_point=point.text, distributions=distributions(point))


def _timeline(selected: Selected, comparison: Comparison, options: ViewOptions) -> Answer:
    point = chart_point(selected, options.chart_point)
    lines = time_lines(point, selected.query.metric)
    return Answer(comparison=comparison, chart_point=point.text, lines=lines, bounds=_bounds(selected, options))


_OF_VIEW: dict[str, Callable[[Selected, Comparison, ViewOptions], Answer]] = {
    "means": _means, "latency": _latency, "timeline": _timeline,
}  # fmt: skip


def _bounds(selected: Selected, options: ViewOptions) -> tuple[Bound, ...]:
    """Ceilings of the compared targets, as their hosts were when the newest of the runs started."""
    return bounds_of(moments_of(selected.rows)) if shows_ceilings(options, selected.metric.key) else ()


def shows_ceilings(options: ViewOptions, metric: str) -> bool:
    return bool(options.ceilings) and metric == "bytes_per_s"


# ---- saved comparisons


def answer_to(saved: SavedComparison) -> Answer:
    """The frozen numbers, else those of now. Raises Refusal, also if the query cannot be answered any more."""
    return _answer_now(saved.query) if saved.frozen is None else unfrozen(saved.frozen, Answer)


def packed(query: str) -> bytes:
    """The numbers of now, to be frozen; empty without results. Raises Refusal."""
    answer = _answer_now(query)
    return frozen(answer) if answer.comparison.results else b""


def _answer_now(query: str) -> Answer:
    pairs = parse_qsl(query)
    return answer_of(select(read_query(split(pairs)[0])), read_options(pairs))
