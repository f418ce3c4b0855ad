"""What the templates of a comparison show of its answer: the same on the page Explore and in a report."""

import msgspec

from webapp.compare.latency_kinds import mixed_kinds
from webapp.compare.options import ViewOptions
from webapp.compare.timeline import has_seconds
from webapp.screens.ceilings import in_words
from webapp.screens.explore.answer import Answer, shows_ceilings
from webapp.screens.explore.charts import latency_charts, means_charts, sentences_of, series_names, time_charts
from webapp.screens.explore.heat import heat_of
from webapp.screens.explore.ladder import ladder_of
from webapp.screens.explore.pivot import doubted_of, pivots_of


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
