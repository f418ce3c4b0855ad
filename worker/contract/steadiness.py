"""Whether a trial measured one speed: a verdict from the series of its own seconds. Pure.

The server judges results with it, and the worker's stop rules judge the series so far.

    too short   fewer than 10 s, or fewer than 20 I/Os a second: the series says nothing
    stalled     samples of 2 s or more in a row below 5 % of the usual speed (the 0.9 quantile of seconds with I/O), or
                one sample in which a stall of 3 s or more fits beside its I/Os at the usual speed
    stepped     two levels that differ by 20 % or more explain half of the variance, more than a line does, and the
                difference is five standard errors, as the best of many splits is chosen
    drifting    a line explains a change of 10 % or more from start to end, and is significant
    bursty      the seconds vary by 20 % or more around the mean or the line (coefficient of variation), in addition to
                the variation of counting n random I/Os a second, which is 1 / sqrt(n) (Poisson)
    steady      none of these

10 % from start to end is the slope that SNIA's steady state allows (SNIA Solid State Storage Performance Test
Specification 2.0.2, definition of steady state). A line is significant if Student's t of its slope is, at 0.3 %, with
as many independent seconds as n (1 - r) / (1 + r) for an autocorrelation r of the residuals (G. Bayley and
J. Hammersley, "The effective number of independent observations in an autocorrelated time series", 1946). A step is the
split of least squares (as in binary segmentation: A. Scott and M. Knott, 1974). The other limits are our convention.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate, groupby
from math import expm1, isfinite, pi, sqrt, tan
from operator import itemgetter
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

import msgspec

# Quantiles of Student's t distribution. The worker has no SciPy.


def student_t(probability: float, freedom: float) -> float:
    """The value below which the share `probability`, over 0.5, lies, for `freedom` degrees of freedom, 1 or more.

    G. W. Hill, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13 (10), 1970. The error is below
    0.1 % from 2 degrees of freedom, and below 6 % between 1 and 2.
    """
    n, tails = freedom, 2 * (1 - probability)
    if n == 1:
        return 1 / tan(tails * pi / 2)
    if n == 2:
        return sqrt(2 / (tails * (2 - tails)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y > 0.05 + a:
        return sqrt(n * _from_normal(NormalDist().inv_cdf(tails / 2), n, (a, b, c, d)))
    inner = 1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)
    return sqrt(n * ((inner * y - 1) * (n + 1) / (n + 2) + 1 / y))


def _from_normal(x: float, n: float, terms: tuple[float, float, float, float]) -> float:
    """Asymptotic inverse expansion about the normal distribution."""
    a, b, c, d = terms
    y = x**2
    if n < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return expm1(a * y**2)


MIN_SECONDS, MIN_IOS_PER_S = 10, 20
MAX_SECONDS = 1_000_000  # of a series that is judged
NEAR_ZERO, STALL_S = 0.05, 2
SHORT_S = 0.1  # two samples may be shorter than 2 s by this much
STEP, STEP_EXPLAINS, STEP_ERRORS, MIN_LEVEL_S = 0.20, 0.5, 5.0, 3
DRIFT, SIGNIFICANT = 0.10, 0.003
BURSTS = 0.20

Series = Sequence[float]  # a rate for each second
Timed = tuple[int, int, float]  # offset_ms, length_ms, count


class Verdict(StrEnum):
    TOO_SHORT = "too_short"
    STALLED = "stalled"
    STEPPED = "stepped"
    DRIFTING = "drifting"
    BURSTY = "bursty"
    STEADY = "steady"


LABELS = {
    Verdict.TOO_SHORT: "too short to judge", Verdict.STALLED: "stalled", Verdict.STEPPED: "stepped",
    Verdict.DRIFTING: "drifting", Verdict.BURSTY: "bursty", Verdict.STEADY: "steady",
}  # fmt: skip
NOT_STEADY = (Verdict.STALLED, Verdict.STEPPED, Verdict.DRIFTING, Verdict.BURSTY)
_SEVERITY = (*NOT_STEADY, Verdict.STEADY, Verdict.TOO_SHORT)


class Steadiness(msgspec.Struct, frozen=True, kw_only=True):
    """Shares and changes are fractions: 0.1 is 10 %."""

    verdict: Verdict
    seconds: int
    stall_s: int = 0  # the longest
    stalled_s: int = 0  # all seconds near zero
    step_at_s: int = 0  # the split of least squares
    step: float = 0.0  # change of the mean there, of the mean before
    drift: float = 0.0  # change of the fitted line from start to end, of its start
    variation: float = 0.0  # standard deviation around the line, of the mean
    autocorrelation: float = 0.0  # of neighbouring seconds, around the line

    @property
    def numbers(self) -> dict[str, Any]:
        """All but the verdict, to be stored."""
        numbers: dict[str, Any] = msgspec.to_builtins(self)
        del numbers["verdict"]
        return numbers

    @classmethod
    def stored(cls, verdict: str, numbers: Mapping[str, Any]) -> "Steadiness | None":
        """None for a result without samples."""
        return msgspec.convert({"verdict": verdict, **numbers}, cls) if verdict else None


_NOTHING = Steadiness(verdict=Verdict.TOO_SHORT, seconds=0)


def worst(streams: Iterable[Iterable[Timed]]) -> Steadiness:
    """The verdict on a trial: that of its least steady stream. Each is judged over its own time."""
    return least_steady(steadiness(samples) for samples in streams)


def least_steady(judgements: Iterable[Steadiness]) -> Steadiness:
    return min(judgements, key=lambda each: _SEVERITY.index(each.verdict), default=_NOTHING)


def steadiness_in(samples: Sequence[Timed], from_ms: int, to_ms: int) -> Steadiness:
    """The verdict on a window of a stream. A stall before it counts as well."""
    whole = steadiness(samples)
    if whole.verdict is Verdict.STALLED:
        return whole
    inside = [
        (offset_ms - from_ms, length_ms, count)
        for offset_ms, length_ms, count in samples
        if from_ms <= offset_ms - length_ms / 2 < to_ms
    ]
    steady = steadiness(inside)
    return msgspec.structs.replace(steady, step_at_s=steady.step_at_s + from_ms // 1000)


def steadiness(samples: Iterable[Timed]) -> Steadiness:
    """The verdict on a stream from the samples of its directions, with their I/Os."""
    timed = list(samples)
    rates = per_second(timed)
    stalls_s = _stalls(timed, NEAR_ZERO * usual_rate(rates))
    return _judged(rates, stalls_s, _longest_silence(timed, usual_rate(rates)))


def steadiness_of_rates(rates: Series) -> Steadiness:
    """The verdict on a part of a stream, from the rates of its seconds."""
    limit = NEAR_ZERO * usual_rate(rates)
    runs = groupby(rate < limit for rate in rates)
    return _judged(rates, [float(len(list(run))) for is_slow, run in runs if is_slow], silent_s=0)


def _judged(rates: Series, stalls_s: Sequence[float], silent_s: int) -> Steadiness:
    longest_s = max(stalls_s, default=0.0)
    stall_s, stalled_s = round(longest_s), round(sum(stalls_s))
    if silent_s > max(stall_s, STALL_S):  # one long sample: a stall of unknown shape
        longest_s, stall_s, stalled_s = silent_s, silent_s, max(stalled_s, silent_s)
    judgement = Steadiness(verdict=Verdict.TOO_SHORT, seconds=len(rates), stall_s=stall_s, stalled_s=stalled_s)
    if len(rates) < MIN_SECONDS or usual_rate(rates) < MIN_IOS_PER_S:
        return judgement
    mean = fmean(rates)
    at, step, step_explains = _step(rates)
    change, residuals, line_explains = line(rates)
    before, start = fmean(rates[:at]), mean - change / 2
    variation = sqrt(_power(residuals) / (len(residuals) - 2)) / mean
    correlated = autocorrelation(residuals)
    judgement = msgspec.structs.replace(
        judgement, step_at_s=at, step=step / before if before else 0.0, variation=variation,
        drift=max(-1.0, change / start) if start > 0 else 0.0, autocorrelation=correlated,
    )  # fmt: skip
    least = STEP_ERRORS**2 / (STEP_ERRORS**2 + len(rates) - 2)
    verdicts = {
        Verdict.STALLED: longest_s >= STALL_S - SHORT_S,
        Verdict.STEPPED: abs(step) >= STEP * mean and step_explains >= max(STEP_EXPLAINS, line_explains, least),
        Verdict.DRIFTING: abs(change) >= DRIFT * mean and is_significant(change, residuals, SIGNIFICANT),
        Verdict.BURSTY: variation**2 - 1 / mean >= BURSTS**2,
    }
    verdict = next((each for each, is_so in verdicts.items() if is_so), Verdict.STEADY)
    return msgspec.structs.replace(judgement, verdict=verdict)


def usual_rate(rates: Series) -> float:
    """The 0.9 quantile of the seconds with I/O, between the two nearest values; 0 without I/O."""
    working = sorted(rate for rate in rates if rate > 0)
    if not working:
        return 0.0
    place = 0.9 * (len(working) - 1)
    below = int(place)
    above = min(below + 1, len(working) - 1)
    return working[below] + (place - below) * (working[above] - working[below])


def per_second(samples: Iterable[Timed]) -> list[float]:
    """Counts as rates of whole seconds since the measured part began; a sample is spread evenly over its length.

    Directions of a sample have the same offset and add up. The rest of the last second is left out, and what is beyond
    `MAX_SECONDS`.
    """
    counted: dict[int, float] = {0: 0.0}
    for offset_ms, length_ms, count in samples:
        counted.setdefault(offset_ms - length_ms, 0.0)
        counted[offset_ms] = counted.get(offset_ms, 0.0) + count
    offsets = sorted(counted)
    totals = list(accumulate(counted[offset] for offset in offsets))
    seconds = min(offsets[-1] // 1000, MAX_SECONDS)
    rates, at, before = [], 0, 0.0
    for end_ms in range(0, 1000 * seconds + 1, 1000):
        while at + 1 < len(offsets) and offsets[at + 1] <= end_ms:
            at += 1
        total = totals[at]
        if at + 1 < len(offsets) and end_ms > offsets[at]:
            share = (end_ms - offsets[at]) / (offsets[at + 1] - offsets[at])
            total += share * (totals[at + 1] - totals[at])
        rates.append(total - before)
        before = total
    return rates[1:]


def _counted(samples: Iterable[Timed]) -> dict[tuple[int, int], float]:
    """The counts of all directions together, by offset and length."""
    counted: dict[tuple[int, int], float] = {}
    for offset_ms, length_ms, count in samples:
        counted[offset_ms, length_ms] = counted.get((offset_ms, length_ms), 0.0) + count
    return counted


def _longest_silence(samples: Iterable[Timed], usual: float) -> int:
    """Whole seconds of the longest stall that one sample can contain: its length without the time that its I/Os take at
    the usual speed. fio reports late if many jobs share a slow drive, which is no stall."""
    free_s = (
        length_ms / 1000 - (count / usual if usual else 0.0) for (_, length_ms), count in _counted(samples).items()
    )
    return int(max(free_s, default=0.0))


def _stalls(samples: Iterable[Timed], limit: float) -> list[float]:
    """The lengths in s of runs of samples below `limit` I/Os per second."""
    counted = _counted(samples)
    slow = [
        (length_ms, 1000 * counted[offset_ms, length_ms] < limit * length_ms)
        for offset_ms, length_ms in sorted(counted)
    ]
    runs = groupby(slow, key=itemgetter(1))
    return [sum(length_ms for length_ms, _ in run) / 1000 for is_slow, run in runs if is_slow]


def _step(rates: Series) -> tuple[int, float, float]:
    """The second at which the later level begins, the change there, and the share of the variance that it explains."""
    n, mean = len(rates), fmean(rates)
    total = sum((rate - mean) ** 2 for rate in rates)
    best = (-1.0, 0, 0.0)  # explained between the two levels, place, step
    whole, so_far = sum(rates), 0.0
    for before, rate in enumerate(rates, start=1):
        so_far += rate
        if MIN_LEVEL_S <= before <= n - MIN_LEVEL_S:
            step = (whole - so_far) / (n - before) - so_far / before
            best = max(best, (step**2 * before * (n - before) / n, -before, step))
    return -best[1], best[2], best[0] / total if total else 0.0


def line(rates: Series) -> tuple[float, list[float], float]:
    """The change of the least-squares line from start to end, the residuals, and the share that it explains."""
    n, mean = len(rates), fmean(rates)
    middle = (n - 1) / 2
    slope = sum((at - middle) * rate for at, rate in enumerate(rates)) / (n * (n**2 - 1) / 12)
    residuals = [rate - mean - slope * (at - middle) for at, rate in enumerate(rates)]
    total = sum((rate - mean) ** 2 for rate in rates)
    return slope * n, residuals, 1 - _power(residuals) / total if total else 0.0


def _power(residuals: Series) -> float:
    return sum(each * each for each in residuals)


def autocorrelation(residuals: Series) -> float:
    """Of neighbouring seconds, from the differences from the mean or the line."""
    power = _power(residuals)
    return sum(one * other for one, other in zip(residuals[1:], residuals, strict=False)) / power if power else 0.0


def independent_seconds(n: int, correlated: float) -> float:
    """The number of independent seconds that n seconds with this autocorrelation are worth, at most n."""
    return n * (1 - max(0.0, correlated)) / (1 + max(0.0, correlated))


def is_significant(change: float, residuals: Series, probability: float) -> bool:
    """Whether chance makes a change from start to end of this size less often than `probability`."""
    n = len(residuals)
    independent = max(3.0, independent_seconds(n, autocorrelation(residuals)))
    # The variance of a slope over n seconds is 12 s^2 / n^3, so that of the change over them is 12 s^2 / n.
    error = sqrt(12 * _power(residuals) / (n - 2) / independent)
    return abs(change) > student_t(1 - probability / 2, independent - 2) * error


# Steady state over rounds, after SNIA PTS. A round is a part of one trial, or one repeat of a part of a plan. Pure.

MAX_RANGE, MAX_SLOPE = 0.20, 0.10


class Rounds(NamedTuple):
    """Range of the rates, and change of their least-squares line from the first to the last; fractions of the mean."""

    range: float
    change: float

    @property
    def range_percent(self) -> float | None:
        """None for a drive that stands still."""
        return 100 * self.range if isfinite(self.range) else None

    @property
    def change_percent(self) -> float | None:
        return 100 * self.change if isfinite(self.change) else None

    @property
    def steady(self) -> bool:
        """SNIA Solid State Storage Performance Test Specification 2.0.2, definition of steady state: the range is at
        most 20 % of the mean, and the line changes by at most 10 % of it."""
        return self.range <= MAX_RANGE and abs(self.change) <= MAX_SLOPE


def over_rounds(rates: Sequence[float]) -> Rounds:
    """A drive that stands still has no mean, and is not steady."""
    mean = fmean(rates)
    if mean <= 0:
        return Rounds(float("inf"), float("inf"))
    change = line(rates)[0] * (len(rates) - 1) / len(rates)
    return Rounds((max(rates) - min(rates)) / mean, change / mean)
