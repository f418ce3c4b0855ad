"""Values that leave their curve: one value out of line, a gap that recovers, and a cliff that stays.

Expected is what the neighbours suggest, on logarithmic axes: on both sides the line between them; at an end of a curve
the nearest value and the line through the next two must both say so, and most of the chart's other curves must not do
the same. Factors are large on purpose, since a table may have nothing but single values: `OUT` for one value, `AT_END`
at an end, `GAP` for a stretch, `CLIFF` for a step between stretches that change little.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import exp, log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings.curves import BLOCK_SIZE, COUNTED, SIGMAS, Charts, Curve, change, is_straight, span

FloatArray = NDArray[np.float64]
OUT, AT_END, GAP, CLIFF = log(1.35), log(1.7), log(2.5), log(2.0)
UNKNOWN = log(1.5)  # more, if the noise of the chart is unknown
FEW = log(1.2)  # more, if few points say it
BESIDE = 0.3  # an outlier is at least this share of its distance away from each neighbour: a corner is none
# Along sizes, where a cache ends: the size of the step, and of those beside it relative to it.
SIZES, SMALL_CLIFF, SMALL_CALM = ("size", "fact.working set"), log(1.6), 0.2
CALM = 0.35  # the steps beside a cliff are at most so large, relative to it
BENDS = 3.0  # an outlier is so many times as far off as the median of its curve's other points
FEWEST = 5  # points of a curve
RISING = ("iodepth", *COUNTED)  # axes along which rates rise with load
TOGETHER, MIN_CURVES = log(2.5), 3  # a fall of all curves beyond their usual step, and how many it needs
MOST = 3  # outliers of a curve; with more, its points are noisy, not out of line


def find(charts: Charts) -> Iterator[Finding]:
    for panel in range(len(charts.comparison.panels)):
        yield from _common_falls(charts, charts.curves_of(panel))
    for curve in charts.curves:
        if is_straight(curve):
            continue
        gap = _gap_in(charts, curve)
        inside = range(gap[0], gap[1] + 1) if gap else range(0)
        if gap:
            yield _gap(charts, curve, *gap)
        yield from (
            _outlier(charts, curve, *outlier) for outlier in outliers(charts, curve) if outlier[0] not in inside
        )
        if not gap and charts.metric.is_speed and charts.comparison.x != BLOCK_SIZE:
            yield from (_cliff(charts, curve, place) for place in _cliffs(charts, curve))


def _beyond(charts: Charts, curve: Curve, least: float) -> float:
    noise = charts.noise(curve)
    if noise is None:
        return least + UNKNOWN
    return max(least if noise.is_known else least + FEW, noise.least())


# ---- one value out of line


def outliers(charts: Charts, curve: Curve) -> list[tuple[int, float]]:
    """Places and expected ln(value). The worst is taken out before the others are judged, because it spoils what its
    neighbours are expected to be."""
    taken: list[tuple[int, float]] = []
    left = list(range(len(curve)))
    while len(left) >= FEWEST:
        offs = {place: _off(charts, curve, left, place) for place in left}
        known = {place: expected_log for place, expected_log in offs.items() if expected_log is not None}
        if not known:
            return taken
        worst = max(known, key=lambda place: abs(curve.logs[place] - known[place]))
        taken.append((worst, known[worst]))
        left.remove(worst)
        if len(taken) > MOST:
            return []
    return taken


def _off(charts: Charts, curve: Curve, left: Sequence[int], place: int) -> float | None:
    """The expected ln(value) of a point that is out of line; else None."""
    at = left.index(place)
    is_end = at in (0, len(left) - 1)
    expected = _expected(curve, left, at)
    value = curve.logs[place]
    off = value - expected[0]
    least = _beyond(charts, curve, AT_END if is_end else OUT)
    if not all((value - each) * off > BESIDE * off * off for each in expected):
        return None
    if min(abs(value - each) for each in (expected if is_end else expected[:1])) < least:
        return None
    if at == 0 and off < 0 and _is_load(charts, curve, left):
        return None
    if abs(off) <= BENDS * _bend(curve, [other for other in left if other != place]):
        return None
    return None if _others_do(charts, curve, place, off) else expected[0]


def _is_load(charts: Charts, curve: Curve, left: Sequence[int]) -> bool:
    """Whether a low first value is explained by its small load: from there, rates rise by no more than the load."""
    if charts.comparison.x not in RISING or not charts.metric.is_speed or curve.xs[left[0]] <= 0:
        return False
    first, second = left[0], left[1]
    return 0 <= curve.logs[second] - curve.logs[first] <= log(curve.xs[second] / curve.xs[first])


def _expected(curve: Curve, left: Sequence[int], at: int) -> list[float]:
    """What the neighbours among the points that are left suggest, and the neighbours themselves."""
    logs, xs = curve.logs, curve.places
    if 0 < at < len(left) - 1:
        before, after = left[at - 1], left[at + 1]
        return [_line(xs, logs, before, after, left[at]), logs[before], logs[after]]
    near, far = (left[1], left[2]) if at == 0 else (left[-2], left[-3])
    return [logs[near], _line(xs, logs, near, far, left[at])]


def _line(xs: Sequence[float], logs: Sequence[float], first: int, second: int, at: int) -> float:
    return logs[first] + (logs[second] - logs[first]) * (xs[at] - xs[first]) / (xs[second] - xs[first])


def _bend(curve: Curve, left: Sequence[int]) -> float:
    """The median distance of these points from the line between their neighbours."""
    triples = zip(left, left[1:], left[2:], strict=False)
    return median(abs(curve.logs[b] - _line(curve.places, curve.logs, a, c, b)) for a, b, c in triples)


def _others_do(charts: Charts, curve: Curve, place: int, off: float) -> bool:
    """Whether most other curves of the chart leave their line there, too."""
    level, shares = curve.levels[place], list[float]()
    for other in charts.curves:
        if other is not curve and other.panel == curve.panel and level in other.points and len(other) >= FEWEST:
            at = other.points[level]
            shares.append((other.logs[at] - _expected(other, range(len(other)), at)[0]) / off)
    return sum(share > 0.5 for share in shares) > len(shares) / 2


def _outlier(charts: Charts, curve: Curve, place: int, expected: float) -> Finding:
    sentence = (
        f"{charts.label} at {charts.at(curve.levels[place])} {charts.are} out of line: "
        f"{charts.value(curve.values[place])}; the levels beside it suggest {charts.value(exp(expected))}."
    )
    size = abs(curve.logs[place] - expected)
    return charts.finding(
        FindingKind.OUTLIER, sentence, [(curve, place, place)], size=size, value=curve.values[place],
        level=curve.levels[place],
    )  # fmt: skip


# ---- a stretch that collapses and recovers


def _gap_in(charts: Charts, curve: Curve) -> tuple[int, int] | None:
    """The longest stretch of two or more values, each far below the line between the points before and after it."""
    least = _beyond(charts, curve, GAP)
    if not curve.logs or max(curve.logs) - min(curve.logs) < least:
        return None
    xs, logs = np.array(curve.places), np.array(curve.logs)
    stretches = [
        (first, last)
        for first in range(1, len(curve) - 2)
        for last in _gap_ends(xs, logs, first, least / 2)
        if _is_gap(xs, logs, first, last, least)
    ]
    return max(stretches, key=lambda stretch: stretch[1] - stretch[0], default=None)


def _gap_ends(xs: FloatArray, logs: FloatArray, first: int, least: float) -> list[int]:
    """The last points of stretches from `first` whose two ends are so far below the line. Few stretches are left, and
    only these are read in full."""
    ends = np.arange(first + 1, len(xs) - 1)
    slopes = (logs[ends + 1] - logs[first - 1]) / (xs[ends + 1] - xs[first - 1])
    at_first = logs[first - 1] + slopes * (xs[first] - xs[first - 1]) - logs[first]
    at_last = logs[first - 1] + slopes * (xs[ends] - xs[first - 1]) - logs[ends]
    return [int(end) for end in ends[(at_first >= least) & (at_last >= least)]]


def _is_gap(xs: FloatArray, logs: FloatArray, first: int, last: int, least: float) -> bool:
    slope = (logs[last + 1] - logs[first - 1]) / (xs[last + 1] - xs[first - 1])
    inside = slice(first, last + 1)
    lows = logs[first - 1] + slope * (xs[inside] - xs[first - 1]) - logs[inside]
    recovered = logs[last + 1] - logs[inside].min()
    return bool(lows.min() >= least / 2 and lows.max() >= least and recovered >= least)


def _gap(charts: Charts, curve: Curve, first: int, last: int) -> Finding:
    low = min(range(first, last + 1), key=lambda place: curve.values[place])
    sentence = (
        f"{charts.label} collapse{charts.verb_s} from {charts.at(curve.levels[first])} to "
        f"{charts.at(curve.levels[last])} (lowest: {charts.value(curve.values[low])}) and recover{charts.verb_s} to "
        f"{charts.value(curve.values[last + 1])}."
    )
    size = log(min(curve.values[first - 1], curve.values[last + 1]) / curve.values[low])
    return charts.finding(
        FindingKind.GAP, sentence, [(curve, first, last)], size=size, value=curve.values[low],
        level=curve.levels[first],
    )  # fmt: skip


# ---- a fall of all curves at once


def _common_falls(charts: Charts, curves: Sequence[Curve]) -> Iterator[Finding]:
    """Between two levels, all curves of a chart fall `TOGETHER` times as far as they usually do. The usual step is the
    median of all steps of the chart, so the curves themselves may be noisy."""
    levels = set.intersection(*(set(curve.levels) for curve in curves)) if curves else set()
    order = [level for level in curves[0].levels if level in levels] if curves else []
    if not charts.metric.is_speed or len(curves) < MIN_CURVES or len(order) < FEWEST:
        return
    steps = [[curve.logs[curve.levels.index(level)] for level in order] for curve in curves]
    falls = [[before - after for before, after in pairwise(logs)] for logs in steps]
    usual = median(fall for of_curve in falls for fall in of_curve)
    sigma = charts.sigma(curves[0].panel)
    for place, at_place in enumerate(zip(*falls, strict=True)):
        if min(at_place) - max(usual, 0.0) >= max(TOGETHER, SIGMAS * sigma):
            first, last = (charts.at(order[end]) for end in (place, place + 1))
            sentence = (
                f"{charts.label} fall{charts.verb_s} between {first} and {last} in all {len(curves)} curves "
                f"({span(-max(at_place), -min(at_place))}; the median of all steps is {change(-usual)})."
            )
            stretches = [
                (curve, curve.levels.index(order[place]), curve.levels.index(order[place + 1])) for curve in curves
            ]
            yield charts.finding(
                FindingKind.CLIFF, sentence, stretches, size=max(at_place), level=order[place + 1],
                names=charts.panel_name(curves[0].panel),
            )  # fmt: skip


# ---- a step that stays


def _cliffs(charts: Charts, curve: Curve) -> Iterator[int]:
    """The places after a fall to less than half, if both sides change little beside it. Along sizes, where a cache
    ends, three points and a smaller fall are enough."""
    logs = curve.logs
    steps = [after - before for before, after in pairwise(logs)]
    of_sizes = charts.comparison.x in SIZES
    largest, second = sorted(map(abs, steps), reverse=True)[:2] if len(steps) > 1 else (0.0, 0.0)
    for place, step in enumerate(steps):
        least = max(SMALL_CLIFF, charts.least(curve, place, place + 1)) if of_sizes else _beyond(charts, curve, CLIFF)
        beside = second if abs(step) == largest else largest
        is_calm = beside <= (SMALL_CALM if of_sizes else CALM) * abs(step)
        if -step >= least and is_calm and len(steps) > (1 if of_sizes else 2):
            yield place + 1


def _cliff(charts: Charts, curve: Curve, place: int) -> Finding:
    sentence = (
        f"{charts.label} fall{charts.verb_s} between {charts.at(curve.levels[place - 1])} and "
        f"{charts.at(curve.levels[place])} from {charts.value(curve.values[place - 1])} to "
        f"{charts.value(curve.values[place])} ({change(curve.logs[place] - curve.logs[place - 1])}) and "
        f"stay{charts.verb_s} there."
    )
    size = curve.logs[place - 1] - curve.logs[place]
    return charts.finding(
        FindingKind.CLIFF, sentence, [(curve, place - 1, place)], size=size, value=curve.values[place],
        level=curve.levels[place],
    )  # fmt: skip
