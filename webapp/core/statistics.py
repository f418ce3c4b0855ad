"""Means of repeats and ratios of two series, with 95 % confidence intervals.

Rates and latencies are positive, so all intervals are symmetric for the logarithm and never reach 0. Ratios of several
points are averaged as logarithms, which is their geometric mean (P. J. Fleming, J. J. Wallace: How not to lie with
statistics: the correct way to summarize benchmark results, Communications of the ACM 29, 1986).
"""

import math
from collections.abc import Sequence

import msgspec
from scipy.special import stdtr, stdtrit

CONFIDENCE = 0.95


class Summary(msgspec.Struct, frozen=True):
    """One cell: a value for each block. One value has neither `sd` nor an interval."""

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


def summarise(values: Sequence[float], step: float = 0.0) -> Summary:
    """Mean and sample standard deviation (n - 1); the interval is mean * exp(+- t(0.975, n - 1) sd / (mean sqrt(n))).

    This is Student's t for ln(mean) by the delta method: var(ln m) = var(m) / m^2 (G. W. Oehlert: A note on the delta
    method, The American Statistician 46, 1992). `step` is the resolution of a value, as 0.016: the interval is never
    narrower, because equal values of coarse steps are not exact.
    """
    n, mean = len(values), math.fsum(values) / len(values)
    if n < 2:
        return Summary(tuple(values), n, mean, None, None, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if mean <= 0:
        return Summary(tuple(values), n, mean, sd, None, None)
    half = max(student_t(n - 1) * sd / (mean * math.sqrt(n)), step / 2)
    return Summary(tuple(values), n, mean, sd, mean * math.exp(-half), mean * math.exp(half))


def student_t(freedom: float) -> float:
    """The quantile that leaves 2.5 % above it."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def tail(freedom: float, t: float) -> float:
    """The probability that Student's t exceeds `t`."""
    return float(stdtr(freedom, -t))
