"""What the numbers of a comparison mean, and the seconds of trials: one module for each kind, and their order.

Each module has `find(charts)`, or `find(points)` of recorded trials. A finding is stated only from what the chart or
the recording itself shows; the rules, their margins and how often they are wrong are in the modules and in decisions
28 and 33.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from webapp.analysis.answer import Comparison, Finding, FindingKind
from webapp.analysis.findings import (
    asymmetry,
    between,
    bottleneck,
    breaks,
    crossing,
    directions,
    effects,
    heat,
    memory,
    plateau,
    scaling,
    settling,
    stalls,
    standouts,
    trend,
)
from webapp.analysis.findings.curves import Between, BlockSizes, Charts, Equipment, Links, Noise, charts_of
from webapp.analysis.findings.recorded import RecordedPoint, TimedFinding
from webapp.results.metrics import Metric

FINDERS: tuple[Callable[[Charts], Iterator[Finding]], ...] = (
    plateau.find, between.find, crossing.find, breaks.find, scaling.find, trend.find, effects.find,
    directions.find, standouts.find, asymmetry.find,
)  # fmt: skip
RECORDED_FINDERS: tuple[Callable[[Sequence[RecordedPoint]], Sequence[TimedFinding]], ...] = (
    stalls.find, settling.find, heat.find, bottleneck.find, memory.find,
)  # fmt: skip
# What a reader must know first: limits, then what is wrong in the table, then choices, then shapes.
_ORDER = (
    FindingKind.CHANGED, FindingKind.DIFFERENCE,
    FindingKind.ASYMMETRY, FindingKind.INTERFERENCE, FindingKind.SHARED_LIMIT,
    FindingKind.CEILING, FindingKind.SATURATION, FindingKind.CAPPED, FindingKind.SCALING, FindingKind.NOTHING_MORE,
    FindingKind.CROSSING, FindingKind.BOTTLENECK, FindingKind.STALLED, FindingKind.HEAT, FindingKind.SETTLED,
    FindingKind.UNSETTLED, FindingKind.IN_MEMORY, FindingKind.STOLEN,
    FindingKind.TRADE_OFF, FindingKind.GAP, FindingKind.CLIFF, FindingKind.OUTLIER, FindingKind.LINEAR,
    FindingKind.TREND, FindingKind.PEAK, FindingKind.MIX_COST, FindingKind.STANDOUT, FindingKind.EFFECT,
    FindingKind.TOOL_EFFECT, FindingKind.INTERACTION, FindingKind.DIRECTION, FindingKind.REFERENCE,
    FindingKind.NO_EFFECT, FindingKind.RATIOS, FindingKind.GROWTH, FindingKind.EQUAL, FindingKind.UNCHANGED,
    FindingKind.UNCERTAIN,
)  # fmt: skip


class Ranked(Protocol):
    """A finding, with evidence or without."""

    @property
    def kind(self) -> FindingKind: ...

    @property
    def single(self) -> bool: ...

    @property
    def size(self) -> float: ...


WEAK = (FindingKind.NO_EFFECT, FindingKind.RATIOS, FindingKind.GROWTH, FindingKind.UNCERTAIN)


def findings(
    comparison: Comparison,
    metric: Metric,
    learned: Noise | None = None,
    block_sizes: BlockSizes | None = None,
    links: Links | None = None,
    equipment: Equipment | None = None,
    between: Between | None = None,
) -> tuple[Finding, ...]:
    """The most important first: repeats before single values, then kinds in order, then the size. A cliff says that
    values stay before it, so it takes the place of that finding, and a trend says what growth its curves have.

    `learned`: the noise that other repeats of the same target say, for charts without enough of their own. `links`:
    the known ceilings of each series. `equipment`: its facts. `between`: what else differs between some of the
    series."""
    charts = charts_of(comparison, metric, learned, block_sizes, links, equipment, between)
    made = [finding for find in FINDERS for finding in find(charts)]
    broken = {_curve(finding) for finding in made if finding.kind in (FindingKind.CLIFF, FindingKind.GAP)}
    in_trends = {curve for finding in made if finding.kind is FindingKind.TREND for curve in _curves(finding)}
    left = [
        finding
        for finding in made
        if not (finding.kind is FindingKind.SATURATION and _curve(finding) in broken)
        if not (finding.kind is FindingKind.GROWTH and _curves(finding) <= in_trends)
    ]
    return tuple(sorted(left, key=importance))


def recorded_findings(points: Sequence[RecordedPoint]) -> tuple[TimedFinding, ...]:
    """Of the recorded trials of one target. A fall that coincides with heat is stated once."""
    made = [finding for find in RECORDED_FINDERS for finding in find(points)]
    is_hot = any(each.finding.kind is FindingKind.HEAT for each in made)
    return tuple(each for each in made if not (is_hot and each.finding.kind is FindingKind.SETTLED))


def importance(finding: Ranked) -> tuple[bool, bool, int, float]:
    """A sort key, the most important first. What is not certain comes last, also if it has repeats."""
    return finding.kind in WEAK, finding.single, _ORDER.index(finding.kind), -finding.size


def _curves(finding: Finding) -> set[tuple[int, int]]:
    """Chart and series of its marks."""
    return {(mark.panel, mark.series) for mark in finding.marks}


def _curve(finding: Finding) -> tuple[int, int]:
    """Chart and series of its first mark."""
    return (finding.marks[0].panel, finding.marks[0].series) if finding.marks else (-1, -1)
