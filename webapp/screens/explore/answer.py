"""What a comparison shows: computed from its query, or as a saved comparison was frozen."""

from collections.abc import Callable
from urllib.parse import parse_qsl

from webapp.compare.chart_points import chart_point
from webapp.compare.comparison import Comparison, Struct
from webapp.compare.frozen import frozen, unfrozen
from webapp.compare.latency import Distribution, distributions
from webapp.compare.models import SavedComparison
from webapp.compare.observed import moments_of
from webapp.compare.options import ViewOptions, read_options, split
from webapp.compare.query import read_query
from webapp.compare.selectors import Selected, comparison_of, for_latencies, select
from webapp.compare.timeline import TimeLines, time_lines
from webapp.hosts.inventory.bounds import Bound, bounds_of
from webapp.screens.explore.payloads import ScatterCharts
from webapp.screens.explore.reference_lines import ReferenceLines, reference_lines
from webapp.screens.explore.scatter import scatter_of


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
