"""What the numbers of a comparison mean: one module for each kind, and their order.

Each module has `find(charts)`. A finding is stated only from what the chart itself shows; the rules, their margins and
how often they are wrong are in the modules and in decision 28.
"""

from collections.abc import Callable, Iterator

from webapp.analysis.answer import Comparison, Finding, FindingKind
from webapp.analysis.findings import between, breaks, crossing, plateau, trend
from webapp.analysis.findings.curves import Charts, charts_of
from webapp.results.metrics import Metric

FINDERS: tuple[Callable[[Charts], Iterator[Finding]], ...] = (
    plateau.find, between.find, crossing.find, breaks.find, trend.find,
)  # fmt: skip
# What a reader must know first: limits, then what is wrong in the table, then choices, then shapes.
_ORDER = (
    FindingKind.DIFFERENCE,
    FindingKind.CEILING, FindingKind.SATURATION, FindingKind.NOTHING_MORE, FindingKind.CROSSING, FindingKind.TRADE_OFF,
    FindingKind.GAP, FindingKind.CLIFF, FindingKind.OUTLIER, FindingKind.LINEAR, FindingKind.TREND, FindingKind.PEAK,
    FindingKind.MIX_COST, FindingKind.EFFECT,
    FindingKind.EQUAL, FindingKind.UNCERTAIN,
)  # fmt: skip


def findings(comparison: Comparison, metric: Metric) -> tuple[Finding, ...]:
    """The most important first: repeats before single values, then kinds in order, then the size. A cliff says that
    values stay before it, so it takes the place of that finding."""
    charts = charts_of(comparison, metric)
    made = [finding for find in FINDERS for finding in find(charts)]
    broken = {_curve(one) for one in made if one.kind in (FindingKind.CLIFF, FindingKind.GAP)}
    left = [one for one in made if one.kind is not FindingKind.SATURATION or _curve(one) not in broken]
    return tuple(sorted(left, key=importance))


def importance(finding: Finding) -> tuple[bool, bool, int, float]:
    """A sort key, the most important first. What is not certain comes last, also if it has repeats."""
    uncertain = finding.kind is FindingKind.UNCERTAIN
    return uncertain, finding.single, _ORDER.index(finding.kind), -finding.size


def _curve(one: Finding) -> tuple[int, int]:
    """Chart and series of its first mark."""
    return (one.marks[0].panel, one.marks[0].series) if one.marks else (-1, -1)
