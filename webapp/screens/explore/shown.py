"""What the templates of a comparison show of its answer: the same on the page Explore and in a report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from webapp.analysis.answer import Cell, Comparison, FindingKind, Panel, Series, once, rank
from webapp.analysis.cells import mixed_kinds
from webapp.analysis.latency import PERCENTS, Distribution
from webapp.analysis.question import ViewOptions
from webapp.analysis.timeline import TimeLines, has_seconds
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import form_of, unclear
from webapp.analysis.words import shown as ratio_in_words
from webapp.core.formatting import Scale, latency
from webapp.hosts.inventory.ceilings import Bound
from webapp.pictures.elements import colours_of
from webapp.screens.ceilings import drawn, in_words
from webapp.screens.explore.answer import (
    Answer,
    ChartKind,
    LatencyCharts,
    MeansCharts,
    ReferenceLine,
    SeriesName,
    TimeCharts,
    shows_ceilings,
)
from webapp.screens.explore.heat import heat_of
from worker.contract.packing import BEYOND, LAST_BUCKET_NS, least_count

# The tables of a comparison: levels of x down, series across, each with its ratio to the baseline.


@dataclass(frozen=True)
class PivotCell:
    """One series at one level. `value` and `ratio` sort the table."""

    value: float
    text: str
    spread: str  # the interval in the same unit, and n
    other_rate: str
    doubts: tuple[str, ...]
    ratio: float | None
    ratio_text: str  # "" for the baseline and without a ratio
    interval_text: str
    mark: str  # better | worse | muted
    why_unclear: str


@dataclass(frozen=True)
class PivotRow:
    order: int  # place of the level on x
    level: str
    cells: tuple[tuple["PivotSeries", PivotCell | None], ...]


@dataclass(frozen=True)
class PivotSeries:
    """Head of one or two columns."""

    name: str
    is_baseline: bool
    column: int  # index of its first column in the table


@dataclass(frozen=True)
class Pivot:
    """One chart as a table."""

    name: str  # "" if it is the only one
    value_label: str  # the metric and its unit
    series: tuple[PivotSeries, ...]
    rows: tuple[PivotRow, ...]


@dataclass(frozen=True)
class Doubted:
    """A number with reasons not to trust it."""

    place: str  # panel, level and series
    reasons: tuple[str, ...]


def pivots_of(comparison: Comparison, most: int = 0) -> tuple[Pivot, ...]:
    """One for each panel, all in the same unit; with `most`, one for each `most` series of a panel."""
    metric = metric_named(comparison.metric)
    scale = metric.scale([cell.summary.mean for cell in _cells(comparison)])
    name, unit = comparison.metric_label, metric.unit_text(scale)
    label = unit if unit.endswith(name) else f"{name}, {unit}" if unit else name
    parts = (part for panel in comparison.panels for part in _parts(panel, most))
    return tuple(_pivot(part, comparison, scale, label) for part in parts)


def _parts(panel: Panel, most: int) -> Iterator[Panel]:
    if not most or len(panel.series) <= most:
        yield panel
        return
    for first in range(0, len(panel.series), most):
        series = panel.series[first : first + most]
        words = f"series {first + 1} to {first + len(series)} of {len(panel.series)}"
        yield replace(panel, name=", ".join(filter(None, (panel.name, words))), series=series)


def doubted_of(comparison: Comparison) -> tuple[Doubted, ...]:
    return tuple(
        Doubted(", ".join(filter(None, (panel.name, comparison.levels[cell.level].text, series.name))), cell.doubts)
        for panel in comparison.panels
        for series in panel.series
        for cell in series.cells
        if cell.doubts
    )


def _cells(comparison: Comparison) -> Iterator[Cell]:
    return (cell for panel in comparison.panels for series in panel.series for cell in series.cells)


def _pivot(panel: Panel, comparison: Comparison, scale: Scale, label: str) -> Pivot:
    by_level = [{cell.level: cell for cell in series.cells} for series in panel.series]
    used = sorted({level for cells in by_level for level in cells})
    heads = tuple(_heads(panel.series))

    def row(level: int) -> PivotRow:
        cells = [
            _cell(cells_of_series[level], scale) if level in cells_of_series else None for cells_of_series in by_level
        ]
        return PivotRow(level, comparison.levels[level].text, tuple(zip(heads, cells, strict=True)))

    return Pivot(panel.name, label, heads, tuple(map(row, used)))


def _heads(series: Sequence[Series]) -> Iterator[PivotSeries]:
    column = 1
    for line in series:
        yield PivotSeries(line.name, line.is_baseline, column)
        column += 1 if line.is_baseline else 2


def _cell(cell: Cell, scale: Scale) -> PivotCell:
    summary, against = cell.summary, cell.against_baseline
    unsure = against is None or against.better is None
    return PivotCell(
        value=summary.mean,
        text=_text(summary.mean, scale),
        spread=f"{_interval(summary.low, summary.high, scale)}n = {summary.n}",
        other_rate=cell.other_rate,
        doubts=cell.doubts,
        ratio=against.ratio.value if against else None,
        ratio_text=against.text if against else "",
        interval_text=against.interval_text if against else "",
        mark="muted" if against is None or unsure else "better" if against.better else "worse",
        why_unclear=unclear(against) if against and unsure else "",
    )


def _interval(low: float | None, high: float | None, scale: Scale) -> str:
    return "" if low is None or high is None else f"{_text(low, scale)} to {_text(high, scale)}, "


def _text(value: float, scale: Scale) -> str:
    """fio's last bucket holds everything above 17 s."""
    return BEYOND if scale.unit.endswith("s") and round(value) == LAST_BUCKET_NS else scale.text(value)


# The charts of a comparison.


def means_charts(
    comparison: Comparison,
    options: ViewOptions,
    bounds: Sequence[Bound] = (),
    references: Sequence[ReferenceLine] = (),
) -> MeansCharts:
    return MeansCharts(
        comparison=comparison,
        kind=ChartKind(options.chart) if options.chart in ("line", "bar", "box") else ChartKind.AUTO,
        logarithmic=options.scale == "log",
        shared=options.axis == "shared",
        ceilings=drawn(bounds),
        references=tuple(references),
    )


def series_names(comparison: Comparison) -> list[SeriesName]:
    """For the legend of all charts. It marks the baseline only if all charts have the same one."""
    names = dict.fromkeys(series.name for panel in comparison.panels for series in panel.series)
    baselines = {series.name for panel in comparison.panels for series in panel.series if series.is_baseline}
    marked, colours = baselines if len(baselines) == 1 else set[str](), colours_of(names)
    return [SeriesName(name=name, is_baseline=name in marked, colour=colours[name]) for name in names]


# In place of one mean over the levels of a series.
OF_SERIES = (FindingKind.TRADE_OFF, FindingKind.EFFECT, FindingKind.RATIOS, FindingKind.NO_EFFECT)


def sentences_of(comparison: Comparison) -> list[tuple[str, str]]:
    """All conclusions, each with the name of its chart: first what whole charts show, then what is claimed of single
    series, last what cannot be compared. The range of a single series is left out where a finding says more."""
    findings = [("", once(finding).sentence) for finding in comparison.findings]
    scaling = [(panel.name, sentence) for panel in comparison.panels for sentence in panel.scaling]
    known = {mark.panel for finding in comparison.findings for mark in finding.marks}
    in_findings = {
        (mark.panel, mark.series)
        for finding in comparison.findings
        if finding.kind in OF_SERIES and finding.level is None  # with a level, it is about x
        for mark in finding.marks
    }
    compared = [
        (panel, series)
        for index, panel in enumerate(comparison.panels)
        for place, series in enumerate(panel.series)
        if series.sentence and not (len(panel.series) == 1 and index in known) and (index, place) not in in_findings
    ]
    ranked = sorted(compared, key=lambda item: _rank(item[1]))
    return [*findings, *scaling, *((panel.name, series.sentence) for panel, series in ranked)]


def _rank(series: Series) -> tuple[int, float]:
    return rank(series.conclusion, series.against_baseline.ratio.value if series.against_baseline else None)


def latency_charts(distributions: Sequence[Distribution], options: ViewOptions) -> LatencyCharts:
    return LatencyCharts(percents=PERCENTS, nines=options.shares != "linear", series=tuple(distributions))


def time_charts(lines: TimeLines, options: ViewOptions, bounds: Sequence[Bound] = ()) -> TimeCharts:
    return TimeCharts(lines=lines, logarithmic=options.scale == "log", ceilings=drawn(bounds))


def shown(answer: Answer, options: ViewOptions, ratios: str, *, columns: int = 0) -> dict[str, object]:
    """`ratios`: the form of ratios in the address. `columns`: the most series of a table. The payload is missing
    without results."""
    comparison = answer.comparison
    context: dict[str, object] = {
        "comparison": comparison,
        "options": options,
        "names": msgspec.to_builtins(series_names(comparison)),
        "sentences": sentences_of(comparison),
        "warnings": comparison.warnings,
        "pivots": pivots_of(comparison, columns),
        "doubted": doubted_of(comparison),
        "chart_point": answer.chart_point,
        "ceilings_shown": shows_ceilings(options, comparison.metric),
        "ceilings": in_words(answer.bounds),
    }
    if not comparison.results:
        return context
    if options.view == "latency":
        return context | _latencies(answer, options, ratios)
    if answer.lines:
        payload = time_charts(answer.lines, options, answer.bounds)
        return context | {"payload": payload, "lines": answer.lines, "drawn": has_seconds(answer.lines)}
    return context | _means(answer, options)


def _latencies(answer: Answer, options: ViewOptions, ratios: str) -> dict[str, object]:
    distributions = answer.distributions
    mixed = mixed_kinds({distribution.name: frozenset(distribution.kinds) for distribution in distributions})
    return {
        "payload": latency_charts(distributions, options),
        "distributions": distributions,
        "ladder": ladder_of(distributions, ratios),
        "warnings": list(dict.fromkeys(filter(None, (mixed, *answer.comparison.warnings)))),
    }


def _means(answer: Answer, options: ViewOptions) -> dict[str, object]:
    comparison, lines = answer.comparison, answer.references.lines if answer.references else ()
    return {
        "payload": means_charts(comparison, options, answer.bounds, lines),
        "heat": heat_of(comparison, ratios=options.cells == "ratio") if options.chart == "heat" else None,
        "scatter": answer.scatter,
        "without": answer.without,
        "references": answer.references,
    }


# The table of percentiles: one row per percentile, one column per series, compared with the baseline.


@dataclass(frozen=True)
class LadderCell:
    text: str
    ratio: str  # "" for the baseline or without a ratio
    title: str  # the reason for a missing value or ratio, else ""


@dataclass(frozen=True)
class LadderRow:
    name: str  # p99.9
    cells: tuple[LadderCell, ...]


def ladder_of(series: Sequence[Distribution], form: str) -> tuple[LadderRow, ...]:
    """`form`: ratio, percent, or "" for automatic. Rows without any value are left out."""
    baseline = next((distribution for distribution in series if distribution.is_baseline), None)
    ratios = [_percentile_ratio(distribution, baseline, n) for distribution in series for n in range(len(PERCENTS))]
    chosen = form or form_of([ratio for ratio in ratios if ratio is not None])
    return tuple(
        LadderRow(
            f"p{percent:g}", tuple(_percentile_cell(distribution, baseline, n, chosen) for distribution in series)
        )
        for n, percent in enumerate(PERCENTS)
        if any(distribution.percentiles_ns[n] is not None for distribution in series)
    )


def _percentile_ratio(distribution: Distribution, baseline: Distribution | None, n: int) -> float | None:
    value_ns, baseline_ns = distribution.percentiles_ns[n], baseline.percentiles_ns[n] if baseline else None
    if LAST_BUCKET_NS in (value_ns, baseline_ns) or (baseline and len({*distribution.kinds, *baseline.kinds}) > 1):
        return None  # more than 17 s, or different kinds of latency
    return value_ns / baseline_ns if value_ns is not None and baseline_ns and distribution is not baseline else None


def _percentile_cell(distribution: Distribution, baseline: Distribution | None, n: int, form: str) -> LadderCell:
    value = distribution.percentiles_ns[n]
    if value is None:
        return LadderCell("–", "", f"Too few I/Os: {distribution.ios:,} of the {least_count(PERCENTS[n]):,} required.")
    ratio = _percentile_ratio(distribution, baseline, n)
    return LadderCell(latency(value), "" if ratio is None else ratio_in_words(ratio, form), "")
