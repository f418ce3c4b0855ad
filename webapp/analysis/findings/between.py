"""Findings between the series and charts of a comparison: a higher level of the series that brings nothing more, and
the price of writes among reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, log1p
from statistics import fmean

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings.breaks import outliers
from webapp.analysis.findings.curves import COUNTED, Charts, Curve, counted
from webapp.core.formatting import ratio as as_ratio

ALIKE, MEAN_ALIKE = log1p(0.05), log1p(0.03)
MOSTLY = 0.8  # of the levels of x
FEWEST = 4  # levels of x that are compared
BEFORE = log1p(0.20)  # what the step before brought
MIX = log1p(0.15)  # reads are faster than the mix by at least so much
_MIXED = {"randread": "randrw", "read": "readwrite"}


def find(charts: Charts) -> Iterator[Finding]:
    if charts.metric.is_speed:
        yield from _nothing_more(charts)
        yield from _mix_costs(charts)


def _ratios(curve: Curve, other: Curve) -> dict[int, float]:
    """ln(one / other) by level."""
    theirs = dict(zip(other.levels, other.logs, strict=True))
    return {
        level: value - theirs[level] for level, value in zip(curve.levels, curve.logs, strict=True) if level in theirs
    }


# ---- more of the series brings no more


def _nothing_more(charts: Charts) -> Iterator[Finding]:
    """The series are levels of one count, such as jobs."""
    series_by = charts.comparison.series_by
    if len(series_by) != 1 or series_by[0] not in COUNTED:
        return
    for panel in range(len(charts.comparison.panels)):
        numbers = {_key(charts, curve): curve for curve in charts.curves if curve.panel == panel and len(curve)}
        ordered = [numbers[key] for key in sorted(numbers, key=float)]
        for first in range(1, len(ordered) - 1):
            tail = ordered[first:]
            steps = [_ratios(b, a) for a, b in pairwise(tail)]
            brought = _brought(charts, tail[0], ordered[first - 1])
            if all(map(_is_alike, steps)) and brought and fmean(brought) >= BEFORE:
                yield _no_more(charts, tail, steps, ordered[first - 1], fmean(brought))
                break


def _brought(charts: Charts, more: Curve, less: Curve) -> list[float]:
    """ln(ratio) at each level without a value that is out of line."""
    out = {curve.levels[place] for curve in (more, less) for place, _ in outliers(charts, curve)}
    return [ratio for level, ratio in _ratios(more, less).items() if level not in out]


def _key(charts: Charts, curve: Curve) -> str:
    return charts.comparison.panels[curve.panel].series[curve.series].key


def _is_alike(ratios: Mapping[int, float]) -> bool:
    alike = sum(abs(each) <= ALIKE for each in ratios.values())
    return len(ratios) >= FEWEST and alike >= MOSTLY * len(ratios) and abs(fmean([*ratios.values()])) <= MEAN_ALIKE


def _no_more(
    charts: Charts, tail: Sequence[Curve], steps: Sequence[Mapping[int, float]], before: Curve, brought: float
) -> Finding:
    total, alike = sum(map(len, steps)), sum(abs(each) <= ALIKE for step in steps for each in step.values())
    name, less = (counted(charts.comparison.series_by[0], _key(charts, curve)) for curve in (tail[0], before))
    where = f"all {total}" if alike == total else f"{alike} of {total}"
    sentence = (
        f"More than {name} do not change {charts.subject} (within 5 % at {where} points). {name} reach "
        f"{as_ratio(exp(brought))} the {charts.subject} of {less}."
    )
    stretches = [(curve, 0, len(curve) - 1) for curve in tail]
    panel = charts.panel_name(tail[0].panel)
    return charts.finding(FindingKind.NOTHING_MORE, sentence, stretches, size=brought, names=panel)


# ---- writes among reads


def _mix_costs(charts: Charts) -> Iterator[Finding]:
    """Charts by pattern: reads alone against reads with writes between them, series by series."""
    panels = {panel.key: index for index, panel in enumerate(charts.comparison.panels)}
    for alone, mixed in _MIXED.items():
        if alone not in panels or mixed not in panels:
            continue
        by_key = {_key(charts, curve): curve for curve in charts.curves if curve.panel == panels[alone]}
        of_mix = [curve for curve in charts.curves if curve.panel == panels[mixed]]
        pairs = [(curve, alone_curve) for curve in of_mix if (alone_curve := by_key.get(_key(charts, curve)))]
        ratios = [value for mixed_curve, alone_curve in pairs for value in _ratios(mixed_curve, alone_curve).values()]
        if len(ratios) >= FEWEST and fmean(ratios) <= -MIX:
            yield _mix_cost(charts, pairs, ratios)


def _mix_cost(charts: Charts, pairs: Sequence[tuple[Curve, Curve]], ratios: Sequence[float]) -> Finding:
    mixed, alone = (charts.panel_name(curve.panel) for curve in pairs[0])
    lower = sum(each < 0 for each in ratios)
    where = f"all {len(ratios)}" if lower == len(ratios) else f"{lower} of {len(ratios)}"
    sentence = (
        f"Writes among the reads cost {100 * (1 - exp(fmean(ratios))):.0f} % of the {charts.subject} of {alone} on "
        f"average (lower at {where} points, by up to {100 * (1 - exp(min(ratios))):.0f} %)."
    )
    stretches = [(curve, 0, len(curve) - 1) for pair in pairs for curve in pair if len(curve)]
    return charts.finding(FindingKind.MIX_COST, sentence, stretches, size=-fmean(ratios), names=mixed)
