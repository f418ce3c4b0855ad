"""The charts of a comparison."""

from collections.abc import Sequence
from math import log

from webapp.compare.comparison import Comparison, Conclusion, Series
from webapp.compare.latency import PERCENTS, Distribution
from webapp.compare.options import ViewOptions
from webapp.compare.timeline import TimeLines
from webapp.core.colours import colours_of
from webapp.hosts.inventory.bounds import Bound
from webapp.screens.ceilings import drawn
from webapp.screens.explore.payloads import LatencyCharts, MeansCharts, ReferenceLine, SeriesName, TimeCharts


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
