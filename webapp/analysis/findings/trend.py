"""What changes along the whole axis: in one direction at each level, by the same amount for each unit, from one of two
levels to the other, or up to a highest value inside.

A trend needs levels that are each lower, or each higher, than the one before, and a total of `TOTAL`. That n values are
in order by chance has a probability of 2/n!, 0.3 % for six, so fewer need a total of `LARGE`, and `FEWEST` are needed.
With repeats, a fitted line beyond their noise is enough. IOPS always fall with the block size, and rates rise with
load: these are no news, and left to the other rules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, log1p, sqrt
from statistics import fmean, linear_regression

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings.breaks import outliers
from webapp.analysis.findings.curves import (
    BLOCK_SIZE,
    COUNTED,
    LOADS,
    SIGMAS,
    Charts,
    Curve,
    Noise,
    change,
    counted,
    is_straight,
    span,
    twin_of,
)
from webapp.analysis.findings.plateau import plateau_of
from webapp.analysis.findings.scaling import AT_ONCE
from webapp.analysis.words import PERCENT, RATIO, certainty
from webapp.core.statistics import Ratio

FEWEST, MANY, TOTAL, LARGE = 4, 6, log1p(0.20), log1p(0.50)
VERY_LARGE = log(2)  # enough for three
TOGETHER = log1p(0.25)  # a fall with load of several curves of a chart; of a single one `LARGE`
PEAK = log1p(0.10)  # both ends are so much lower than the highest value
SHORT = log1p(0.33)  # the same, if few single values say it
TIE = log1p(0.05)  # a level without a place that is so near to the highest value is as high
TWO = log1p(0.25)  # the change from one of two levels to the other that is news
LISTED = 3


@dataclass(frozen=True)
class Trend:
    """`total`: ln(ratio) of the last value and the first, or along the fitted line. `steepest`: place of the largest
    step, that between it and the next one."""

    curve: Curve
    total: float
    is_steady: bool
    steepest: int

    @property
    def together(self) -> tuple[object, ...]:
        """The same for trends that one sentence can state."""
        return self.curve.panel, self.curve.levels, self.is_steady, self.total > 0


def find(charts: Charts) -> Iterator[Finding]:
    groups: dict[tuple[object, ...], list[Trend]] = {}
    for curve in charts.curves:
        if line := _straight(charts, curve):
            yield line
        elif (
            charts.comparison.x not in (*LOADS, *AT_ONCE)
            and plateau_of(charts, curve) is None
            and (trend := _trend(charts, curve))
        ):
            groups.setdefault(trend.together, []).append(trend)
    for trends in groups.values():
        yield _stated(charts, trends)
    if charts.metric.is_speed and charts.comparison.x in LOADS - {BLOCK_SIZE}:
        yield from _falls(charts)
    rates = twin_of(charts) if charts.metric.key == "iops" and charts.comparison.x == BLOCK_SIZE else charts
    if rates and rates.metric.is_speed:
        yield from _peaks(rates)
    yield from _two_levels(charts)


def _trend(charts: Charts, curve: Curve) -> Trend | None:
    logs = curve.logs
    if len(curve) < FEWEST - 1:
        return None
    steps, total, noise = [after - before for before, after in pairwise(logs)], logs[-1] - logs[0], charts.noise(curve)
    is_steady = all(step * total > 0 for step in steps)
    if not is_steady:
        slope, _ = linear_regression(curve.places, logs)
        total = slope * (curve.places[-1] - curve.places[0])
        if len(curve) < FEWEST or noise is None or not noise.of_repeats or not _is_beyond(curve, noise, total):
            return None
    elif abs(total) < (TOTAL if len(curve) >= MANY else LARGE if len(curve) >= FEWEST else VERY_LARGE):
        return None
    return Trend(curve, total, is_steady, max(range(len(steps)), key=lambda place: abs(steps[place])))


def _stated(charts: Charts, trends: Sequence[Trend]) -> Finding:
    """Of one curve, or of several in one chart with the same levels and direction."""
    largest = max(trends, key=lambda trend: abs(trend.total))
    curves, (first, last) = [trend.curve for trend in trends], (largest.curve.levels[0], largest.curve.levels[-1])
    ways = sorted(curve.logs[-1] - curve.logs[0] for curve in curves)
    start, end = (_values(charts, [curve.values[place] for curve in curves]) for place in (0, -1))
    at = largest.curve.levels[largest.steepest], largest.curve.levels[largest.steepest + 1]
    has_one_place = len({trend.steepest for trend in trends}) == 1
    steepest = f", most between {charts.at(at[0])} and {charts.at(at[1])}" if has_one_place else ""
    sentence = (
        f"{charts.label} {'rise' if largest.total > 0 else 'fall'}{charts.verb_s}"
        f"{' at each level' if largest.is_steady else ''}, from {start} at {charts.at(first)} to {end} at "
        f"{charts.at(last)} ({change(ways[0]) if len(ways) == 1 else span(ways[0], ways[-1])})"
        f"{steepest if largest.is_steady else ', with ups and downs'}."
    )
    whole = [(curve, 0, len(curve) - 1) for curve in curves]
    value = largest.curve.values[-1]
    return charts.finding(FindingKind.TREND, sentence, whole, size=abs(largest.total), value=value, level=at[1])


def _values(charts: Charts, values: Sequence[float]) -> str:
    """`1.15 GB/s`, or `between 23.5k and 30.4k`"""
    ends = dict.fromkeys(charts.value(value) for value in (min(values), max(values)))
    return f"between {' and '.join(ends)}" if len(ends) > 1 else next(iter(ends))


def _falls(charts: Charts) -> Iterator[Finding]:
    """Rates that fall at each level of more load, of all curves of a chart."""
    for panel in range(len(charts.comparison.panels)):
        curves = [curve for curve in charts.curves_of(panel) if len(curve) >= FEWEST - 1]
        totals = [curve.logs[-1] - curve.logs[0] for curve in curves]
        if not curves or any(after >= before for curve in curves for before, after in pairwise(curve.logs)):
            continue
        beyond = [
            SIGMAS / 2 * charts.sigma(panel) * sqrt(1 / curve.counts[0] + 1 / curve.counts[-1]) for curve in curves
        ]
        least = TOGETHER if len(curves) > 1 else LARGE
        if all(-total >= max(least, limit) for total, limit in zip(totals, beyond, strict=True)):
            ends = min(totals), max(totals)
            first, last = charts.at(curves[0].levels[0]), charts.at(curves[0].levels[-1])
            sentence = f"{charts.label} fall{charts.verb_s} with more load, from {first} to {last} ({span(*ends)})."
            stretches = [(curve, 0, len(curve) - 1) for curve in curves]
            yield charts.finding(
                FindingKind.TREND, sentence, stretches, size=-min(totals), value=curves[0].values[-1],
                level=curves[0].levels[-1],
            )  # fmt: skip


def _is_beyond(curve: Curve, noise: Noise, total: float) -> bool:
    """Whether the change along a fitted line is beyond the noise, and goes on in both halves of the axis."""
    centre = fmean(curve.places)
    spread = sum((place - centre) ** 2 for place in curve.places) ** 0.5
    error = noise.sigma / min(curve.counts) ** 0.5 * (curve.places[-1] - curve.places[0]) / spread
    thirds = len(curve) // 3
    ends = [fmean(part) for part in (curve.logs[: thirds + 1], curve.logs[thirds:-thirds], curve.logs[-thirds - 1 :])]
    onward = (ends[1] - ends[0]) * total > 0 and (ends[2] - ends[1]) * total > 0
    return onward and abs(total) >= max(TOTAL, SIGMAS * error) and (curve.logs[-1] - curve.logs[0]) * total > 0


def _straight(charts: Charts, curve: Curve) -> Finding | None:
    if not is_straight(curve):
        return None
    values, x = curve.values, charts.comparison.x
    slope, _ = linear_regression(curve.xs, values)
    unit = counted(x, "1").partition(" ")[2] if x in COUNTED else f"level of {charts.comparison.x_label}"
    sentence = (
        f"Each further {unit} {'adds' if slope > 0 else 'takes'} about {charts.value(abs(slope))}: from "
        f"{charts.value(values[0])} at {charts.at(curve.levels[0])} to {charts.value(values[-1])} at "
        f"{charts.at(curve.levels[-1])}."
    )
    size = log(max(values) / min(values))
    return charts.finding(FindingKind.LINEAR, sentence, [(curve, 0, len(curve) - 1)], size=size, value=slope)


def _peaks(charts: Charts) -> Iterator[Finding]:
    """One for all curves of a chart with their highest value at one level."""
    groups: dict[tuple[int, int], list[tuple[Curve, int]]] = {}
    for curve in charts.curves:
        top = _peak(charts, curve)
        if top is not None and top not in [place for place, _ in outliers(charts, curve)]:
            groups.setdefault((curve.panel, curve.levels[top]), []).append((curve, top))
    for (_, level), group in groups.items():
        curve, top = max(group, key=lambda curve_and_top: curve_and_top[0].values[curve_and_top[1]])
        sentence = (
            f"{charts.label} {charts.are} highest at {charts.at(level)}: {charts.value(curve.values[top])}, against "
            f"{charts.value(curve.values[0])} at {charts.at(curve.levels[0])} and {charts.value(curve.values[-1])} at "
            f"{charts.at(curve.levels[-1])}."
        )
        size, stretches = max(_lower(curve, at) for curve, at in group), [(curve, at, at) for curve, at in group]
        yield charts.finding(FindingKind.PEAK, sentence, stretches, size=size, value=curve.values[top], level=level)


def _lower(curve: Curve, top: int) -> float:
    return min(curve.logs[top] - curve.logs[0], curve.logs[top] - curve.logs[-1])


def _peak(charts: Charts, curve: Curve) -> int | None:
    """The place of a highest value inside, from which both sides fall without a step up that is beyond the noise. Few
    values in this order are often chance: then both sides must be `SHORT` lower. None if a level without a place on the
    axis is about as high."""
    if len(curve) < FEWEST:
        return None
    logs, noise = curve.logs, charts.noise(curve)
    top = max(range(len(logs)), key=lambda place: logs[place])
    least = PEAK if noise and noise.is_known else SHORT
    beyond = max(least, charts.least(curve, 0, top), charts.least(curve, -1, top))
    if top in (0, len(logs) - 1) or _lower(curve, top) < beyond:
        return None
    if any(log(value) > logs[top] - TIE for value in charts.beside(curve)):
        return None
    slack = max(0.02, noise.sigma * 2 if noise and noise.of_repeats else 0.0)
    if any(b < a - slack for a, b in pairwise(logs[: top + 1])) or any(b > a + slack for a, b in pairwise(logs[top:])):
        return None
    return top


def _two_levels(charts: Charts) -> Iterator[Finding]:
    """One finding for all curves with the same two levels: who changes most, and who least."""
    pairs = [curve for curve in charts.curves if len(curve) == 2]
    of_load = charts.comparison.x in LOADS
    if len({curve.levels for curve in pairs}) != 1 or (of_load and len(pairs) < max(1, len(charts.curves) - 1)):
        return
    changes = {curve: curve.logs[1] - curve.logs[0] for curve in pairs}
    least = {
        curve: max(TWO, SIGMAS * charts.sigma(curve.panel) * sqrt(1 / curve.counts[0] + 1 / curve.counts[1]))
        for curve in pairs
    }
    ratios = {curve: charts.step(curve, 0, 1, len(pairs)) for curve in pairs}
    moved = [
        curve
        for curve in sorted(pairs, key=lambda curve: -abs(changes[curve]))
        if abs(changes[curve]) >= least[curve] and ratios[curve]
    ]
    if not moved or (of_load and len(moved) == 1):
        return
    most = [" ".join(filter(None, (charts.names([curve]), _sure(curve, ratios[curve])))) for curve in moved[:LISTED]]
    most += [f"{len(moved) - LISTED} more"] if len(moved) > LISTED else []
    calm = min(pairs, key=lambda curve: abs(changes[curve]))
    is_told = calm not in moved and max(calm.counts) == 1  # a change without its interval would be a claim
    others = f"; least: {charts.names([calm])} {change(changes[calm])}" if is_told else ""
    first, last = (charts.at(level) for level in pairs[0].levels)
    yield charts.finding(
        FindingKind.EFFECT,
        f"From {first} to {last}, {charts.subject} change{charts.verb_s}: {', '.join(most)}{others}.",
        [(curve, 0, 1) for curve in moved],
        size=abs(changes[moved[0]]),
        level=pairs[0].levels[1],
        names="",
    )


def _sure(curve: Curve, ratio: Ratio | None) -> str:
    """The change from the first level to the last, of repeats with its interval: `×2.00 (95 % CI ×1.94 to ×2.06, n =
    3)`"""
    total = curve.logs[-1] - curve.logs[0]
    form = PERCENT if abs(total) < log(2) else RATIO
    return f"{change(total)} ({certainty(ratio, min(curve.counts), form)})" if ratio and ratio.low else change(total)
