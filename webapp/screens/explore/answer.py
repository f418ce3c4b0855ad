"""What a comparison shows: computed from its query, or as a saved comparison was frozen."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import parse_qsl

from msgspec import structs

from webapp.analysis.answer import Comparison, Level, Struct
from webapp.analysis.cells import measured
from webapp.analysis.comparing import Selected, baseline_of, comparison_of, for_latencies, select
from webapp.analysis.dimensions import label_of
from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN
from webapp.analysis.latency import Distribution, chart_point, distributions
from webapp.analysis.models import SavedComparison
from webapp.analysis.question import ViewOptions, read_options, read_query, split
from webapp.analysis.seals import scopes_of
from webapp.analysis.services import frozen, unfrozen
from webapp.analysis.timeline import TimeLines, time_lines
from webapp.analysis.trial_metrics import COMPARED, totals, with_observed
from webapp.core.answers import Question, answered
from webapp.core.formatting import ShownAs
from webapp.core.statistics import mean_of
from webapp.hosts.inventory.ceilings import Bound
from webapp.imports.selectors import import_titles
from webapp.plans.factors import FACTORS
from webapp.results.metrics import IOPS, METRICS, Metric
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.screens.explore.saved import filters_in_words
from webapp.screens.payloads import ChartCeiling, Payload
from webapp.trends.models import Baseline

# What the comparison sends to its scripts.


class ChartKind(StrEnum):
    AUTO = "auto"
    LINE = "line"
    BAR = "bar"
    BOX = "box"


class SeriesName(Payload, frozen=True, kw_only=True):
    """One series of the comparison, with the number of its colour."""

    name: str
    is_baseline: bool
    colour: int


class ReferencePoint(Payload, frozen=True, kw_only=True):
    """`level` is an index into the levels of the comparison."""

    level: int
    value: float
    text: str  # with its unit


class ReferenceLine(Payload, frozen=True, kw_only=True):
    """Published values, or those of a baseline run. It is not a series: nothing is compared with it."""

    panel: int  # index
    name: str
    points: tuple[ReferencePoint, ...]


class MeansCharts(Payload, frozen=True, kw_only=True):
    comparison: Comparison
    kind: ChartKind
    logarithmic: bool  # the axis of values
    shared: bool  # all charts have the same axis of values
    ceilings: tuple[ChartCeiling, ...]
    references: tuple[ReferenceLine, ...]


class ScatterPoint(Payload, frozen=True, kw_only=True):
    level: str  # on x of the comparison
    x: float
    y: float
    x_text: str
    y_text: str


class ScatterSeries(Payload, frozen=True, kw_only=True):
    name: str
    is_baseline: bool
    points: tuple[ScatterPoint, ...]  # in the order of levels


class ScatterPanel(Payload, frozen=True, kw_only=True):
    name: str
    series: tuple[ScatterSeries, ...]


class ScatterCharts(Payload, frozen=True, kw_only=True):
    """Two metrics against each other."""

    x_label: str
    x_shown_as: ShownAs
    y_label: str
    y_shown_as: ShownAs
    logarithmic: bool  # both axes
    panels: tuple[ScatterPanel, ...]


class LatencyCharts(Payload, frozen=True, kw_only=True):
    percents: tuple[float, ...]
    nines: bool  # the axis of shares counts nines: 90, 99, 99.9 %
    series: tuple[Distribution, ...]


class TimeCharts(Payload, frozen=True, kw_only=True):
    lines: TimeLines
    logarithmic: bool
    ceilings: tuple[ChartCeiling, ...]


# Lines in the charts of Explore that are no series: published references, and baseline runs with their tolerances.
#
# A published value belongs to a level of a chart if all results of a series there agree with it in every factor that
# it states, and it states at least pattern and block size: the rule of Bench. Values that differ in anything but x
# are different lines.

MOST_LINES = 6  # of a chart, so that it stays readable
MOST_BASELINES = 3
PUBLISHED, BASELINES = "published", "baseline"
LineKey = tuple[object, ...]


@dataclass(frozen=True)
class TableRow:
    name: str
    panel: str
    level: str
    text: str


@dataclass(frozen=True)
class ReferenceLines:
    lines: tuple[ReferenceLine, ...]
    left_out: int  # published lines beyond MOST_LINES
    table: tuple[TableRow, ...]


def reference_lines(selected: Selected, comparison: Comparison, options: ViewOptions) -> ReferenceLines | None:
    """None if they are switched off. Reads all published results once, and makes a comparison for each baseline run."""
    if not options.lines:
        return None
    lines = list(_baselines(selected, comparison)) if options.lines != PUBLISHED else []
    left_out = 0
    for chart_lines in _published(selected, comparison) if options.lines != BASELINES else ():
        lines += chart_lines[:MOST_LINES]
        left_out += len(chart_lines[MOST_LINES:])
    return ReferenceLines(tuple(lines), left_out, tuple(_table(lines, comparison)))


def _table(lines: Iterable[ReferenceLine], comparison: Comparison) -> Iterator[TableRow]:
    for line in lines:
        for point in line.points:
            panel, level = comparison.panels[line.panel].name, comparison.levels[point.level].text
            yield TableRow(line.name, panel, level, point.text)


# ---- published references


def _published(selected: Selected, comparison: Comparison) -> Iterator[list[ReferenceLine]]:
    """The lines of each chart: first those with the most levels."""
    known, workloads = _library(selected), _workloads(selected)
    for panel, chart in enumerate(comparison.panels):
        rows_by_line: dict[LineKey, dict[int, list[ResultRow]]] = {}
        for level, x in enumerate(selected.grouped.x):
            cells = workloads.get((chart.key, x.key), ())
            for row in known:
                if any(all(_agrees(row, result) for result in cell) for cell in cells):
                    rows_by_line.setdefault(_line_key(row, selected.query.x), {}).setdefault(level, []).append(row)
        names = _names([next(iter(levels.values()))[0] for levels in rows_by_line.values()], selected.query.x)
        lines = [
            _line(panel, name, _reference_lines_means(levels, selected), selected)
            for name, levels in zip(names, rows_by_line.values(), strict=True)
        ]
        yield sorted(lines, key=lambda line: (-len(line.points), line.name))


def _reference_lines_means(levels: Mapping[int, Sequence[ResultRow]], selected: Selected) -> dict[int, float]:
    return {level: mean_of([selected.metric.of(row) or 0.0 for row in rows]) for level, rows in levels.items()}


def _library(selected: Selected) -> list[ResultRow]:
    """Published values of the metric that are not compared themselves."""
    compared = {id_ for row in selected.rows for id_ in row.ids}
    rows = read_rows(Result.objects.filter(origin__isnull=False, reference=True, invalid=False).order_by("id"))
    return [
        row
        for row in rows
        if row.id not in compared and selected.metric.of(row) is not None and {PATTERN, BLOCK} <= row.point.keys()
    ]


def _workloads(selected: Selected) -> dict[tuple[str, str], list[list[ResultRow]]]:
    """By chart and level: of each series, one result of each direction and point."""
    rows_by_place: dict[tuple[str, str], list[list[ResultRow]]] = {}
    for (panel, _, x), rows in selected.grouped.cells.items():
        different = {(row.direction, row.point_key): row for row in rows}
        rows_by_place.setdefault((panel, x), []).append(list(different.values()))
    return rows_by_place


def _agrees(published: ResultRow, measured: ResultRow) -> bool:
    return published.direction == measured.direction and published.point.items() <= measured.point.items()


def _line_key(row: ResultRow, x: str) -> LineKey:
    return row.imported, row.target_name, row.test, row.tool, frozenset(_traits(row, x).items())


def _traits(row: ResultRow, x: str) -> Mapping[str, str]:
    """What can tell lines of an import apart, as text."""
    factors = {
        name: f"{label_of(name)} {FACTORS[name].format(level)}" for name, level in row.point.items() if name != x
    }
    labels = {f"label {name}": text for name, text in row.facts.items()}
    return {"target": row.target, "test": row.test, "tool": row.tool, **labels, **factors}


def _names(rows: Sequence[ResultRow], x: str) -> Iterator[str]:
    alike: dict[int, list[Mapping[str, str]]] = {}
    for row in rows:
        alike.setdefault(row.imported, []).append(_traits(row, x))
    for row in rows:
        row_traits, others = _traits(row, x), alike[row.imported]
        apart = [text for name, text in row_traits.items() if any(other.get(name) != text for other in others)]
        unstated = [label_of(name).lower() for name in (DEPTH, JOBS) if name not in row.point]
        stated = f" ({', '.join(unstated)} not stated)" if unstated else ""
        yield ", ".join(dict.fromkeys((row.import_title, *filter(None, apart)))) + stated


# ---- baseline runs


def _baselines(selected: Selected, comparison: Comparison) -> Iterator[ReferenceLine]:
    """The values of each baseline run, and what its tolerance allows at most or at least."""
    metric = selected.metric
    plans, targets = {row.plan for row in selected.rows}, {row.target_name for row in selected.rows}
    known = Baseline.objects.filter(plan__slug__in=plans).exclude(run=None)
    known = known.select_related("plan", "run", "target__host")
    fitting = [baseline for baseline in known if str(baseline.target) in targets and metric.key in baseline.tolerances]
    for baseline in fitting[:MOST_BASELINES]:
        tolerance = baseline.tolerances[metric.key]
        limit = 1 + tolerance / 100 if metric.lower_is_better else 1 - tolerance / 100
        sign = "+" if metric.lower_is_better else "−"
        for panel, series, values in _values_of(baseline, selected, comparison):
            name = f"Baseline {baseline.name}{f', {series}' if series else ''}"
            yield _line(panel, name, values, selected)
            limits = {level: value * limit for level, value in values.items()}
            yield _line(panel, f"{name}: limit {sign}{tolerance:g} %", limits, selected)


def _values_of(
    baseline: Baseline, selected: Selected, comparison: Comparison
) -> Iterator[tuple[int, str, dict[int, float]]]:
    """Chart, name of the series ("" if it is the only one) and the mean of each level, as verdicts compare it."""
    assert baseline.run is not None  # `_baselines` leaves out imports
    query = selected.query
    results_filter = replace(
        query.results, runs=(baseline.run.number,), plans=(baseline.plan.slug,), targets=(str(baseline.target),)
    )
    grouped = select(replace(query, baseline="", by_direction=False, results=results_filter)).grouped
    values, levels = measured(grouped, selected.metric), {x.key: level for level, x in enumerate(selected.grouped.x)}
    for panel, chart in enumerate(comparison.panels):
        for series in grouped.series:
            keys = {levels[x.key]: (chart.key, series.key, x.key) for x in grouped.x if x.key in levels}
            known = {level: values[key].mean for level, key in keys.items() if key in values}
            if known:
                yield panel, series.text if len(grouped.series) > 1 else "", known


def _line(panel: int, name: str, means: Mapping[int, float], selected: Selected) -> ReferenceLine:
    points = (
        ReferencePoint(level=level, value=value, text=_with_unit(value, selected.metric))
        for level, value in sorted(means.items())
    )
    return ReferenceLine(panel=panel, name=name, points=tuple(points))


def _with_unit(value: float, metric: Metric) -> str:
    unit = {"iops": IOPS.label, "number": metric.unit}.get(metric.shown_as, "")
    return f"{metric.format(value)} {unit}".strip()


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
    of_latency = any(axis_metric.shown_as == "latency" and axis_metric.column for axis_metric in (metric, against))
    known = observed.rows if of_latency else totals(observed.rows)
    rows = tuple(row for row in known if against.of(row) is not None and metric.of(row) is not None)
    shown = for_latencies(replace(selected, rows=rows))
    grouped = shown.grouped
    values = [measured(grouped, axis_metric) for axis_metric in (metric, against)]
    means = {key: [axis_metric[key].mean for axis_metric in values] for key in grouped.cells}
    baseline = baseline_of(shown.query, grouped) if rows else Level("", "", None)

    def points(panel: Level, series: Level) -> Sequence[ScatterPoint]:
        keys = [(x, (panel.key, series.key, x.key)) for x in grouped.x]
        return [_point(x.text, means[key], metric, against) for x, key in keys if key in means]

    def lines(panel: Level) -> tuple[ScatterSeries, ...]:
        made = ((series, points(panel, series)) for series in grouped.series)
        return tuple(
            ScatterSeries(name=series.text, is_baseline=series.key == baseline.key, points=tuple(series_points))
            for series, series_points in made
            if series_points
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
    filters: str = ""  # in words, of frozen numbers: an import that they name may be undone later


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
    """Known ceilings of the results; of targets, as their hosts were when the newest of the runs started."""
    return selected.known.bounds if shows_ceilings(options, selected.metric.key) else ()


def shows_ceilings(options: ViewOptions, metric: str) -> bool:
    return bool(options.ceilings) and metric == "bytes_per_s"


# ---- saved comparisons


def answer_to(saved: SavedComparison) -> Answer:
    """The frozen numbers, else those of now. Raises Refusal, also if the query cannot be answered any more."""
    return _answer_now(saved.query) if saved.frozen is None else unfrozen(saved.frozen, Answer)


def packed(query: str) -> bytes:
    """The numbers of now, to be frozen; empty without results. Raises Refusal."""
    answer = _answer_now(query)
    filters = filters_in_words(parse_qsl(query), import_titles())
    return frozen(structs.replace(answer, filters=filters)) if answer.comparison.results else b""


def _answer_now(query: str) -> Answer:
    pairs = parse_qsl(query)
    compare_query, options = read_query(split(pairs)[0]), read_options(pairs)
    scopes = scopes_of(compare_query.results)
    return answered(Question((query,), scopes, Answer, lambda: answer_of(select(compare_query), options)))
