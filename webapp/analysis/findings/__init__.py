"""What the numbers of a comparison mean: one module for each kind, and their order.

Each module has `find(charts)`. A finding is stated only from what the chart itself shows; the rules, their margins and
how often they are wrong are in the modules and in decision 28.
"""

from collections.abc import Callable, Iterator

from webapp.analysis.answer import Comparison, Finding, FindingKind
from webapp.analysis.findings import between, breaks, crossing, directions, effects, plateau, scaling, standouts, trend
from webapp.analysis.findings.curves import Charts, Noise, charts_of
from webapp.results.metrics import Metric

FINDERS: tuple[Callable[[Charts], Iterator[Finding]], ...] = (
    plateau.find, between.find, crossing.find, breaks.find, scaling.find, trend.find, effects.find,
    directions.find, standouts.find,
)  # fmt: skip
# What a reader must know first: limits, then what is wrong in the table, then choices, then shapes.
_ORDER = (
    FindingKind.DIFFERENCE,
    FindingKind.CEILING, FindingKind.SATURATION, FindingKind.CAPPED, FindingKind.SCALING, FindingKind.NOTHING_MORE,
    FindingKind.CROSSING,
    FindingKind.TRADE_OFF, FindingKind.GAP, FindingKind.CLIFF, FindingKind.OUTLIER, FindingKind.LINEAR,
    FindingKind.TREND, FindingKind.PEAK, FindingKind.MIX_COST, FindingKind.STANDOUT, FindingKind.EFFECT,
    FindingKind.TOOL_EFFECT, FindingKind.INTERACTION, FindingKind.DIRECTION, FindingKind.NO_EFFECT, FindingKind.RATIOS,
    FindingKind.GROWTH, FindingKind.EQUAL, FindingKind.UNCERTAIN,
)  # fmt: skip


_WEAK = (FindingKind.NO_EFFECT, FindingKind.RATIOS, FindingKind.GROWTH, FindingKind.UNCERTAIN)


def findings(comparison: Comparison, metric: Metric, learned: Noise | None = None) -> tuple[Finding, ...]:
    """The most important first: repeats before single values, then kinds in order, then the size. A cliff says that
    values stay before it, so it takes the place of that finding.

    `learned`: the noise that other repeats of the same target say, for charts without enough of their own."""
    charts = charts_of(comparison, metric, learned)
    made = [finding for find in FINDERS for finding in find(charts)]
    broken = {_curve(one) for one in made if one.kind in (FindingKind.CLIFF, FindingKind.GAP)}
    left = [one for one in made if one.kind is not FindingKind.SATURATION or _curve(one) not in broken]
    return tuple(sorted(left, key=importance))


def importance(finding: Finding) -> tuple[bool, bool, int, float]:
    """A sort key, the most important first. What is not certain comes last, also if it has repeats."""
    return finding.kind in _WEAK, finding.single, _ORDER.index(finding.kind), -finding.size


def _curve(one: Finding) -> tuple[int, int]:
    """Chart and series of its first mark."""
    return (one.marks[0].panel, one.marks[0].series) if one.marks else (-1, -1)
