"""Saturation and common ceilings: a curve that stays at its highest value over several levels of x.

A plateau is the longest stretch at one end of the curve that holds its highest value, and whose values differ by at
most `FLAT` (up to `WIDEST` on a noisy page, never more than three standard deviations of the noise). Outside of it the
nearest value is clearly lower, and some value is at least `RISE` lower. Three points are needed, because two neighbours
are often alike by chance; two are enough at the upper end if they are within `ALIKE` after a step of `STEP` or more.

Charts that stop at one value have a common ceiling, if they are of different products, or apart elsewhere: what differs
between them does not limit them there. Whether a link, a controller or equal drives do, the curves cannot say. (How
often the rules are wrong: decision 28.) If the links of these series are known, the sentence says which of them the
value is near: 80 to 101 % of their rate, or a value that a person entered within 5 % (`hosts.inventory.links`). A value
at random is often near one of several links (decision 28), so the sentence never says that a link is the cause.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, log1p

from webapp.analysis.answer import CeilingMatch, Finding, FindingKind
from webapp.analysis.claims import listed
from webapp.analysis.findings.curves import BLOCK_SIZE, LOADS, Charts, Curve, twin_of
from webapp.core import formatting
from webapp.core.statistics import mean_of

FLAT, WIDEST = log1p(0.05), log1p(0.12)
RISE, STEP, ALIKE = log1p(0.20), log1p(0.15), log1p(0.01)
CLEAR, CLEAR_AFTER = log1p(0.03), log1p(0.08)  # so much lower is the nearest value before a plateau, or after one
SLOWER = 3.0  # the steps outside are so many times as large as those of the plateau
MAX_NOISE = 0.06  # noise of a single value, from which two or three like values say nothing
PRODUCTS = ("product",)  # the series of Bench
BEGIN = log1p(0.30)  # curves of a common ceiling begin so far apart


@dataclass(frozen=True)
class Plateau:
    """Points `first` to `last` of a curve, which may lack single values that are out of line."""

    curve: Curve
    first: int
    last: int

    @property
    def value(self) -> float:
        return self.curve.mean(self.first, self.last)

    @property
    def is_upper(self) -> bool:
        return self.last == len(self.curve) - 1

    @property
    def rise(self) -> float:
        """ln(plateau / lowest value)"""
        return log(self.value) - min(self.curve.logs)


def plateau_of(charts: Charts, curve: Curve) -> Plateau | None:
    noise = charts.noise(curve)
    if len(curve) < 3 or (noise and noise.sigma > MAX_NOISE * min(curve.counts) ** 0.5):
        return None
    flat = min(max(FLAT, 3 * noise.sigma), WIDEST) if noise and noise.of_repeats else FLAT
    stretches = [*_upper(curve, flat), *_lower(curve, flat)]
    fitting = [stretch for stretch in stretches if _is_plateau(charts, stretch)]
    return max(fitting, key=lambda stretch: (stretch.last - stretch.first, stretch.is_upper), default=None)


def _upper(curve: Curve, flat: float) -> Iterator[Plateau]:
    last = len(curve) - 1
    yield from (Plateau(curve, first, last) for first in range(1, last) if _spread(curve, first, last) <= flat)


def _lower(curve: Curve, flat: float) -> Iterator[Plateau]:
    yield from (Plateau(curve, 0, last) for last in range(2, len(curve) - 1) if _spread(curve, 0, last) <= flat)


def _spread(curve: Curve, first: int, last: int) -> float:
    inside = curve.logs[first : last + 1]
    return max(inside) - min(inside)


def _is_plateau(charts: Charts, plateau: Plateau) -> bool:
    logs, level = plateau.curve.logs, log(plateau.value)
    outside = [*logs[: plateau.first], *logs[plateau.last + 1 :]]
    near = plateau.first - 1 if plateau.is_upper else plateau.last + 1
    noise, beyond = charts.noise(plateau.curve), CLEAR if plateau.is_upper else CLEAR_AFTER
    if noise:
        beyond = max(beyond, charts.least(plateau.curve, near, plateau.first) if noise.of_repeats else 2 * noise.sigma)
    if not plateau.is_upper and min(logs[: plateau.last + 1]) - logs[near] < FLAT:
        return False
    if max(outside) >= level - FLAT / 2 or level - logs[near] < beyond or level - min(outside) < RISE:
        return False
    if plateau.last - plateau.first < 2:
        return _spread(plateau.curve, plateau.first, plateau.last) <= ALIKE and level - logs[near] >= STEP
    further = near - 1 if plateau.is_upper else near + 1
    edge = logs[plateau.first if plateau.is_upper else plateau.last]
    before = (edge - logs[further]) / 2 if 0 <= further < len(logs) else edge - logs[near]
    return before >= SLOWER * abs(logs[plateau.last] - logs[plateau.first]) / (plateau.last - plateau.first)


def find(charts: Charts) -> Iterator[Finding]:
    """Each rate of a measurement by itself: IOPS stop at small blocks, bandwidth at large ones."""
    twin = twin_of(charts)
    for rate in (charts, twin) if twin else (charts,):
        if rate.metric.is_speed or rate.metric.shown_as == "entered":
            plateaus = [plateau for curve in rate.curves if len(curve) > 3 and (plateau := plateau_of(rate, curve))]
            fitting = [plateau for plateau in plateaus if _is_limit(rate, plateau)]
            fitting += _reaching(rate, fitting)
            yield from (_finding(rate, group) for group in _groups(fitting))


def _reaching(charts: Charts, plateaus: Sequence[Plateau]) -> Iterator[Plateau]:
    """Charts that end with two like values at the limit of another one: that limit is what they reach."""
    known = {id(plateau.curve) for plateau in plateaus}
    for curve in charts.curves:
        end = Plateau(curve, len(curve) - 2, len(curve) - 1)
        if len(curve) > 3 and id(curve) not in known and _spread(curve, end.first, end.last) <= ALIKE:
            at_limit = any(
                plateau.is_upper and abs(log(plateau.value / end.value)) <= 2 * ALIKE for plateau in plateaus
            )
            if at_limit and end.rise >= RISE and max(curve.logs) <= log(end.value) + ALIKE:
                yield end


def _is_limit(charts: Charts, plateau: Plateau) -> bool:
    """Along block sizes, IOPS only stop at the small ones and bandwidth only at the large ones."""
    if charts.comparison.x != BLOCK_SIZE:
        return True
    return plateau.is_upper == (charts.metric.key == "bytes_per_s")


def _groups(plateaus: Sequence[Plateau]) -> Iterator[list[Plateau]]:
    """Those at one end with one value, the highest first."""
    left = sorted(plateaus, key=lambda plateau: -plateau.value)
    while left:
        first = left[0]
        group = [
            plateau
            for plateau in left
            if plateau.is_upper == first.is_upper and log(first.value / plateau.value) <= FLAT
        ]
        left = [plateau for plateau in left if plateau not in group]
        yield group


def _finding(charts: Charts, group: Sequence[Plateau]) -> Finding:
    common = len(group) > 1 and _is_common(charts, group)
    middle = mean_of([plateau.value for plateau in group])
    value = charts.value(middle)
    upper = group[0].is_upper
    ends = [plateau.first if upper else plateau.last for plateau in group]
    levels = sorted(
        {(plateau.curve.xs[end], plateau.curve.levels[end]) for plateau, end in zip(group, ends, strict=True)}
    )
    firsts = [level for _, level in levels]
    level = firsts[-1] if upper else firsts[0]  # where it holds for all of them
    where, label, s = f"{'from' if upper else 'up to'} {charts.at(level)}", charts.label, charts.verb_s
    if common:
        what = f"{label} {'stop' if upper else 'stay'}{s} at the same value, {value}, {where}{' on' if upper else ''}."
    elif upper:
        what = f"{label} level{s} off at {value} {where} on."
    else:
        what = f"{label} stay{s} at {value} {where}, then fall{s} to {_lowest(charts, group)}."
    kind = FindingKind.CEILING if common else FindingKind.SATURATION
    stretches = [(plateau.curve, plateau.first, plateau.last) for plateau in group]
    matches = matching(charts, [plateau.curve for plateau in group], middle)
    what = f"{what}{match_text(charts, matches, middle)}"
    return charts.finding(
        kind, what, stretches, size=max(plateau.rise for plateau in group), value=middle, level=level, matches=matches,
    )  # fmt: skip


def matching(charts: Charts, curves: Sequence[Curve], value: float) -> tuple[CeilingMatch, ...]:
    """The known ceilings of all these curves near the value, the lowest first."""
    unit = charts.value_bytes
    if unit is None:
        return ()
    links = [link for link in charts.links_of(curves) if link.is_matched_by(value * unit)]
    return tuple(
        CeilingMatch(
            name=link.name, value=link.bytes_per_s / unit, low=link.low_bytes_per_s / unit,
            high=link.high_bytes_per_s / unit,
        )
        for link in sorted(links, key=lambda link: link.bytes_per_s)
    )  # fmt: skip


def match_text(charts: Charts, matches: Sequence[CeilingMatch], value: float) -> str:
    """` This is near PCIe 1.0 x8 (91 % of 2.00 GB/s).`, to append to a sentence; "" without matches."""
    unit = charts.value_bytes or 1.0
    texts = (
        f"{each.name} ({100 * value / each.value:.0f} % of {formatting.bytes_per_s(each.value * unit)})"
        for each in matches
    )
    return f" This is near {listed(list(texts))}." if matches else ""


def _lowest(charts: Charts, group: Sequence[Plateau]) -> str:
    """`437 at 4 MiB`, `between 430 and 437 at 4 MiB`; several levels if the curves are lowest at different ones."""
    lowest = [min(zip(plateau.curve.values, plateau.curve.xs, plateau.curve.levels, strict=True)) for plateau in group]
    low, high = (charts.value(of(value for value, _, _ in lowest)) for of in (min, max))
    levels = list(
        dict.fromkeys(charts.at(level) for _, _, level in sorted(lowest, key=lambda lowest_point: lowest_point[1]))
    )
    at = " to ".join(dict.fromkeys((levels[0], levels[-1])))
    return f"{low if low == high else f'between {low} and {high}'} at {at}"


def _is_common(charts: Charts, group: Sequence[Plateau]) -> bool:
    """Whether the curves are of different products, or are apart at some level outside of their plateaus. Levels of
    load, such as jobs, are one thing measured in several ways."""
    series_by = charts.comparison.series_by
    if LOADS.intersection(series_by):
        return False
    if series_by == PRODUCTS:
        return True
    outside = [
        {
            level: curve.logs[place]
            for place, level in enumerate(curve.levels)
            if not plateau.first <= place <= plateau.last
        }
        for plateau in group
        for curve in [plateau.curve]
    ]
    shared = set.intersection(*(set(by_level) for by_level in outside))
    return any(
        max(by_level[level] for by_level in outside) - min(by_level[level] for by_level in outside) >= BEGIN
        for level in shared
    )
