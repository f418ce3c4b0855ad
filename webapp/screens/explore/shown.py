"""What the templates of a comparison show of its answer: the same on the page Explore and in a report."""

from collections.abc import Sequence
from math import log

import msgspec

from webapp.analysis.answer import Comparison, Conclusion, Series
from webapp.analysis.cells import mixed_kinds
from webapp.analysis.latency import PERCENTS, Distribution
from webapp.analysis.question import ViewOptions
from webapp.analysis.timeline import TimeLines, has_seconds
from webapp.core.colours import colours_of
from webapp.hosts.inventory.ceilings import Bound
from webapp.screens.ceilings import drawn, in_words
from webapp.screens.explore.answer import Answer, shows_ceilings
from webapp.screens.explore.heat import heat_of
from webapp.screens.explore.ladder import ladder_of
from webapp.screens.explore.payloads import LatencyCharts, MeansCharts, ReferenceLine, SeriesName, TimeCharts
from webapp.screens.explore.pivot import doubted_of, pivots_of

# The charts of a comparison.


def means_charts(
    comparison: Comparison,
    options: ViewOptions,
    bounds: Sequence[Bound] = (),
    references: Sequence[ReferenceLine] = (),
) -> MeansCharts:
    return MeansCharts(
        comparison=comparison,
        kind=options.chart if options.chart in ("line", "bar", "box") else "auto",
        logarithmic=options.scale == "log",
        shared=options.axis == "shared",
        ceilings=drawn(bounds),
        references=tuple(references),
    )


def series_names(comparison: Comparison) -> list[SeriesName]:
    known = {series.name: series.is_baseline for panel in comparison.panels for series in panel.series}
    colours = colours_of(known)
    return [SeriesName(name=name, is_baseline=is_baseline, colour=colours[name]) for name, is_baseline in known.items()]


def sentences_of(comparison: Comparison) -> list[tuple[str, str]]:
    """All conclusions, each with the name of its chart: first what is claimed, last what cannot be compared."""
    sentences = [(panel.name, sentence) for panel in comparison.panels for sentence in panel.scaling]
    compared = [(panel, series) for panel in comparison.panels for series in panel.series if series.sentence]
    ranked = sorted(compared, key=lambda item: _rank(item[1]))
    return [*sentences, *((panel.name, series.sentence) for panel, series in ranked)]


def _rank(series: Series) -> tuple[int, float]:
    """Differences by their size, equality, ratios without a claim, then series without a ratio."""
    against = series.against_baseline
    size = abs(log(against.ratio.value)) if against else 0.0
    if series.conclusion is Conclusion.NONE:
        return (2 if against else 3), 0.0
    return list(Conclusion).index(series.conclusion), -size


def latency_charts(found: Sequence[Distribution], options: ViewOptions) -> LatencyCharts:
    return LatencyCharts(percents=PERCENTS, nines=options.shares != "linear", series=tuple(found))


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
    found = answer.distributions
    mixed = mixed_kinds({one.name: frozenset(one.kinds) for one in found})
    return {
        "payload": latency_charts(found, options),
        "distributions": found,
        "ladder": ladder_of(found, ratios),
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
