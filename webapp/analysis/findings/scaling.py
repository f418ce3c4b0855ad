"""More drives, hosts or threads at once: up to how many they scale, by which law, and what the largest number reaches.

Shared limit: from one alone on, the sum stays the same: with repeats within `SAME` plus `HARDLY` standard errors,
without them `FEWEST` levels within `SAME`. So whatever limits one limits the sum, too.

Capped: the first level is one alone. Up to the knee, each reaches `LINEAR` of its share of a straight line, and at
least one level does beyond one. From there on values differ by at most `SAME`, and the last level has at most `CAPPED`
of its share.

Law: X(n) = X1 n / (1 + a (n - 1) + b n (n - 1)), Amdahl's law for b = 0 (G. Amdahl, AFIPS 1967), else the universal
scalability law (N. Gunther, Guerrilla Capacity Planning, 2007). n / X(n) is linear in its parameters, so they come from
weighted least squares with the standard deviation of the repeats, and their 95 % intervals from its covariances. A law
is stated if all its values are within `FITS` (or the noise) of the measured ones, if its parameters are certainly above
0, and if what is simpler is certainly wrong: a straight line, a line up to a cap, and Amdahl's law for the universal
one, each at its best, miss a value by `WRONG` times as much. A power of n, as simple as Amdahl's law, must miss one
beyond `FITS` and by `WORSE` times as much: over few levels, both look alike. The rule has no test of one model against
another, because such tests prefer the richer model far too often. Without repeats no law is stated.

As measured: what the largest number or queue depth reaches, if no other rule of this module and no plateau says it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from statistics import linear_regression

import numpy as np

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.claims import MIN_BLOCKS
from webapp.analysis.findings.breaks import outliers
from webapp.analysis.findings.curves import COUNTED, Charts, Curve, Noise, is_straight
from webapp.analysis.findings.effects import BOUND, HARDLY
from webapp.analysis.findings.plateau import MAX_NOISE, match_text, matching, plateau_of
from webapp.core.formatting import ratio as as_ratio

AT_ONCE = ("at_once", "hosts_at_once")
LINEAR, SAME, CAPPED = 0.93, log1p(0.05), 0.75
DEPTH = "iodepth"
FEWEST, FEWEST_MEASURED = 4, 3
LEFT = 0.97  # the level before the cap is at most so much of it
FITS, WRONG = log1p(0.03), 2.5  # the largest distance of ln(value) from a law, and from what is simpler, in multiples
WORSE = 2.0  # so many times as far off as Amdahl's law is a power of n
SIGMAS_OFF = 3.0  # standard errors of a mean that one of several hardly leaves its law by
CERTAIN = 1.96  # standard errors of a parameter, 95 %
SPARE = 3  # levels beyond the number of parameters


@dataclass(frozen=True)
class Law:
    """`contention` and `coherency` are a and b, with 95 % intervals. `off`: the largest distance of ln(value)."""

    contention: tuple[float, float, float]
    coherency: tuple[float, float, float] | None
    off: float

    @property
    def peak(self) -> float:
        """The number with the highest value; infinite for Amdahl's law."""
        if self.coherency is None or self.contention[0] >= 1:
            return float("inf")
        return sqrt((1 - self.contention[0]) / self.coherency[0])

    @property
    def is_certain(self) -> bool:
        return all(low > 0 for _, low, _ in filter(None, (self.contention, self.coherency)))


def find(charts: Charts) -> Iterator[Finding]:
    x = charts.comparison.x
    if x not in (DEPTH, *COUNTED) or not charts.metric.adds_up:
        return
    explained = set[Curve]()
    for curve in charts.curves if x in COUNTED else ():
        finding = _shared_limit(charts, curve) or _capped(charts, curve) if x in AT_ONCE else None
        if finding := finding or _lawful(charts, curve):
            explained.add(curve)
            yield finding
    for panel in range(len(charts.comparison.panels)):
        curves = [
            curve
            for curve in charts.curves_of(panel)
            if curve not in explained and len(curve) >= FEWEST_MEASURED and curve.xs[0] > 0
            if not is_straight(curve) and plateau_of(charts, curve) is None and not outliers(charts, curve)
        ]
        yield from _as_measured(charts, curves)


def _shared_limit(charts: Charts, curve: Curve) -> Finding | None:
    noise, last = charts.noise(curve), len(curve) - 1
    if last < 1 or curve.xs[0] != 1 or (noise and noise.sigma > MAX_NOISE * sqrt(min(curve.counts))):
        return None
    if len(curve) < FEWEST and not _has_repeats(charts, curve):
        return None
    off = max(curve.logs) - min(curve.logs)
    sigma = noise.sigma if noise and noise.of_repeats else 0.0
    bound = off + HARDLY * sigma * sqrt(1 / curve.counts[0] + 1 / min(curve.counts[1:]))
    if off > SAME or bound > BOUND:
        return None
    cap = curve.mean(0, last)
    matches = matching(charts, [curve], cap)
    sentence = (
        f"{'Up to ' if last > 1 else ''}{charts.at(curve.levels[last])} reach together what one reaches alone, "
        f"{charts.value(cap)} (within {100 * (exp(bound) - 1):.1f} %). They share a limit."
        f"{match_text(charts, matches, cap)}"
    )
    return charts.finding(
        FindingKind.SHARED_LIMIT, sentence, [(curve, 0, last)], size=log(curve.xs[last]), value=cap, matches=matches
    )


def _capped(charts: Charts, curve: Curve) -> Finding | None:
    if len(curve) < FEWEST or curve.xs[0] != 1:
        return None
    shares = [value / (x * curve.values[0]) for x, value in zip(curve.xs, curve.values, strict=True)]
    linear = max(place for place in range(len(shares)) if min(shares[: place + 1]) >= LINEAR)
    first = linear + 1
    if not 0 < linear < len(curve) - 2 or shares[-1] > CAPPED:
        return None
    tail = curve.logs[first:]
    slack = max(SAME, charts.least(curve, first, -1) if _has_repeats(charts, curve) else 0.0)
    if max(tail) - min(tail) > slack or curve.values[linear] > LEFT * curve.values[first]:
        return None
    cap = curve.mean(first, len(curve) - 1)
    matches = matching(charts, [curve], cap)
    sentence = (
        f"{charts.at(curve.levels[linear])} reach {100 * shares[linear]:.0f} % of linear scaling. "
        f"From {charts.at(curve.levels[first])} on, the sum stays at {charts.value(cap)} "
        f"({100 * shares[-1]:.0f} % of linear scaling with {charts.at(curve.levels[-1])})."
        f"{match_text(charts, matches, cap)}"
    )
    return charts.finding(
        FindingKind.CAPPED, sentence, [(curve, first, len(curve) - 1)], size=-log(shares[-1]), value=cap,
        level=curve.levels[first], matches=matches,
    )  # fmt: skip


def _has_repeats(charts: Charts, curve: Curve) -> bool:
    noise = charts.noise(curve)
    return bool(noise and noise.of_repeats)


# ---- the law


def _lawful(charts: Charts, curve: Curve) -> Finding | None:
    noise = charts.noise(curve)
    if noise is None or not noise.of_repeats or len(curve) < FEWEST or curve.xs[0] != 1:
        return None
    if min(curve.counts) < MIN_BLOCKS:
        return None
    law = law_of(curve, noise)
    if law is None:
        return None
    last = len(curve) - 1
    reached = exp(curve.logs[last] - curve.logs[0])
    sentence = (
        f"{charts.at(curve.levels[last])} reach {as_ratio(reached)} the {charts.subject} of one "
        f"({100 * reached / curve.xs[last]:.0f} % of linear scaling). {_in_words(law, charts.x_subject)}."
    )
    return charts.finding(
        FindingKind.SCALING, sentence, [(curve, 0, last)], size=log(curve.xs[last] / reached), value=law.contention[0]
    )


def _in_words(law: Law, count: str) -> str:
    share = f"{_percent(law.contention)} of the work did not scale"
    if law.coherency is None:
        return f"Amdahl’s law fits within {100 * law.off:.1f} %, as if {share}"
    return (
        f"The universal scalability law fits within {100 * law.off:.1f} %, as if {share} and each pair cost "
        f"{_percent(law.coherency)}: highest near {law.peak:.0f} {count}"
    )


def _percent(parameter: tuple[float, float, float]) -> str:
    value, low, high = (f"{100 * each:.2g}" for each in parameter)
    return f"{value} % ({low} to {high} %)"


def law_of(curve: Curve, noise: Noise) -> Law | None:
    """The simplest law that fits if what is simpler does not; else None."""
    errors = [noise.sigma / sqrt(count) for count in curve.counts]
    fits = max(FITS, SIGMAS_OFF * max(errors))
    if min(_off_line(curve), _off_capped(curve)) < WRONG * fits:
        return None
    amdahl = _fitted(curve, errors, with_coherency=False)
    if amdahl is not None and amdahl.off <= fits:
        return amdahl if amdahl.is_certain and _off_power(curve) >= max(fits, WORSE * amdahl.off) else None
    law = _fitted(curve, errors, with_coherency=True)
    if law is None or law.off > fits or not law.is_certain or (amdahl is not None and amdahl.off < WRONG * fits):
        return None
    return law if law.peak <= curve.xs[-1] else None


def _fitted(curve: Curve, errors: Sequence[float], *, with_coherency: bool) -> Law | None:
    """None if the levels are too few, or the law has no value at one of them."""
    n, values = np.array(curve.xs), np.array(curve.values)
    columns = [np.ones_like(n), n - 1, *([n * (n - 1)] if with_coherency else [])]
    if len(n) < len(columns) + SPARE:
        return None
    target = n / values
    weights = 1 / (target * np.array(errors))
    design = np.stack(columns, axis=1) * weights[:, None]
    theta, _, rank, _ = np.linalg.lstsq(design, target * weights, rcond=None)
    fitted = np.stack(columns, axis=1) @ theta
    if rank < len(columns) or theta[0] <= 0 or fitted.min() <= 0:
        return None
    covariances = np.linalg.inv(design.T @ design)
    parameters = [_ratio(theta, covariances, place) for place in range(1, len(columns))]
    off = float(np.abs(np.log(target / fitted)).max())
    return Law(parameters[0], parameters[1] if with_coherency else None, off)


def _ratio(theta: np.ndarray, covariances: np.ndarray, place: int) -> tuple[float, float, float]:
    """theta[place] / theta[0] with its 95 % interval, by the delta method."""
    value = theta[place] / theta[0]
    variance = covariances[place, place] - 2 * value * covariances[0, place] + value**2 * covariances[0, 0]
    margin = CERTAIN * sqrt(max(float(variance), 0.0)) / float(theta[0])
    return float(value), float(value) - margin, float(value) + margin


def _off_line(curve: Curve) -> float:
    """The smallest largest distance of ln(value) from a line through 0."""
    shares = [log(value / x) for x, value in zip(curve.xs, curve.values, strict=True)]
    return (max(shares) - min(shares)) / 2


def _off_power(curve: Curve) -> float:
    """About the same from a power of n, which is as simple as Amdahl's law."""
    places = [log(x) for x in curve.xs]
    slope, start = linear_regression(places, curve.logs)
    off = [value - start - slope * place for place, value in zip(places, curve.logs, strict=True)]
    return (max(off) - min(off)) / 2


def _off_capped(curve: Curve) -> float:
    """The same from a line through 0 up to a cap that begins at any level."""
    shares = [log(value / x) for x, value in zip(curve.xs, curve.values, strict=True)]
    halves = (
        max(max(shares[:first]) - min(shares[:first]), max(curve.logs[first:]) - min(curve.logs[first:])) / 2
        for first in range(1, len(curve))
    )
    return min(halves)


# ---- as measured


def _as_measured(charts: Charts, curves: Sequence[Curve]) -> Iterator[Finding]:
    """One for the curves of a chart that have the same ends."""
    groups: dict[tuple[int, int], list[Curve]] = {}
    for curve in curves:
        groups.setdefault((curve.levels[0], curve.levels[-1]), []).append(curve)
    for (first, last), group in groups.items():
        reached = sorted(exp(curve.logs[-1] - curve.logs[0]) for curve in group)
        ends = " to ".join(dict.fromkeys(as_ratio(each) for each in (reached[0], reached[-1])))
        those = "those" if charts.are == "are" else "that"
        sentence = (
            f"{charts.label} at {charts.at(last)} {charts.are} {ends} of {those} at {charts.at(first)}"
            f"{_share(charts, group[0], reached)}{_highest(charts, group)}."
        )
        stretches = [(curve, 0, len(curve) - 1) for curve in group]
        yield charts.finding(FindingKind.GROWTH, sentence, stretches, size=max(abs(log(each)) for each in reached))


def _share(charts: Charts, curve: Curve, reached: Sequence[float]) -> str:
    """Of linear scaling, for a count that brings more."""
    if charts.comparison.x not in COUNTED or reached[0] < 1:
        return ""
    times = curve.xs[-1] / curve.xs[0]
    shares = dict.fromkeys(f"{100 * each / times:.0f}" for each in (reached[0], reached[-1]))
    return f" ({' to '.join(shares)} % of linear scaling)"


def _highest(charts: Charts, group: Sequence[Curve]) -> str:
    """Of a single curve, if its highest value is inside."""
    curve = group[0]
    top = max(range(len(curve)), key=lambda place: curve.values[place])
    if len(group) > 1 or top in (0, len(curve) - 1):
        return ""
    return f"; highest is {charts.value(curve.values[top])} at {charts.at(curve.levels[top])}"
