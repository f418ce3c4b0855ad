"""Means of repeats and ratios of two series, with 95 % confidence intervals.

Rates and latencies are positive, so the mean of repeats is their geometric mean everywhere: the ratio of two means is
then the mean of the ratios (P. J. Fleming, J. J. Wallace: How not to lie with statistics: the correct way to summarize
benchmark results, Communications of the ACM 29, 1986). A page that shows arithmetic means beside ratios contradicts
itself. All intervals are symmetric for the logarithm and never reach 0.
"""

import math
from collections.abc import Sequence

import msgspec
from scipy.special import stdtr, stdtrit

CONFIDENCE = 0.95


class Summary(msgspec.Struct, frozen=True):
    """One cell: a value for each block. One value has neither `sd` nor an interval; with a 0 there is no interval.

    `mean` is `mean_of` the values."""

    values: tuple[float, ...]
    n: int
    mean: float
    sd: float | None
    low: float | None  # of the mean's 95 % confidence interval
    high: float | None


class Ratio(msgspec.Struct, frozen=True):
    """The ratio of two series, with its 95 % confidence interval if both sides have repeats."""

    value: float
    low: float | None
    high: float | None


def mean_of(values: Sequence[float]) -> float:
    """The geometric mean of the values above 0; 0 if all are 0. Who shows it also states the number of zeros.

    Values below 0 (temperatures) have the arithmetic mean: they have no ratios.
    """
    least, most = min(values), max(values)
    if least == most:
        return float(least)  # without the rounding of a logarithm
    if least < 0:
        return math.fsum(values) / len(values)
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(math.fsum(logs) / len(logs))


def summarise(values: Sequence[float], step: float = 0.0) -> Summary:
    """Geometric mean and sample standard deviation (n - 1). The interval is Student's t for the mean of the logarithms:
    mean * exp(+- t(0.975, n - 1) s / sqrt(n)), where s is the standard deviation of the logarithms.

    `step` is the resolution of a value, as 0.016: the interval is never narrower, because equal values of coarse steps
    are not exact.
    """
    n, mean = len(values), mean_of(values)
    if n < 2:
        return Summary(tuple(values), n, mean, None, None, None)
    if min(values) <= 0:
        return Summary(tuple(values), n, mean, _deviation(values), None, None)
    half = max(student_t(n - 1) * _deviation([math.log(value) for value in values]) / math.sqrt(n), step / 2)
    return Summary(tuple(values), n, mean, _deviation(values), mean * math.exp(-half), mean * math.exp(half))


def _deviation(values: Sequence[float]) -> float:
    """The sample standard deviation. `statistics.stdev` calculates with fractions, which takes ten times as long."""
    if min(values) == max(values):
        return 0.0  # without the rounding of a mean
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def ratio_of(values: Sequence[float], baseline: Sequence[float], *, compared: int = 1) -> Ratio:
    """The ratio of two means of independent repeats, all above 0, with Welch's interval of the logarithms. `compared`:
    the number of ratios that all intervals together cover (Bonferroni)."""
    sides = [[math.log(value) for value in side] for side in (values, baseline)]
    squares = [_deviation(side) ** 2 / len(side) for side in sides]
    total, variance = math.fsum(sides[0]) / len(sides[0]) - math.fsum(sides[1]) / len(sides[1]), math.fsum(squares)
    below = math.fsum(square**2 / (len(side) - 1) for square, side in zip(squares, sides, strict=True))
    freedom = variance**2 / below if below else float(sum(map(len, sides)) - 2)
    half = student_t(freedom, compared) * math.sqrt(variance)
    return Ratio(math.exp(total), math.exp(total - half), math.exp(total + half))


def student_t(freedom: float, compared: int = 1) -> float:
    """The quantile that leaves 2.5 % above it, divided by the number of compared values."""
    return float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / compared))


def tail(freedom: float, t: float) -> float:
    """The probability that Student's t exceeds `t`."""
    return float(stdtr(freedom, -t))
