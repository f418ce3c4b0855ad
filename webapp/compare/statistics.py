"""Means of repeats and their ratios, with 95 % confidence intervals.

Repeats are assumed independent and approximately normal. A single repeat has no spread.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from scipy.special import stdtrit

CONFIDENCE = 0.95


class Summary(msgspec.Struct, frozen=True):
    """The repeats of one cell. One value has neither `sd` nor an interval."""

    values: tuple[float, ...]
    n: int
    mean: float
    sd: float | None
    low: float | None  # of the mean's 95 % confidence interval
    high: float | None


class Ratio(msgspec.Struct, frozen=True):
    """The ratio of two means, with its 95 % confidence interval if both sides have repeats."""

    value: float
    low: float | None
    high: float | None

    @property
    def resolved(self) -> bool:
        """The interval excludes 1: there is a difference."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    @property
    def resolution(self) -> float | None:
        """The smallest relative difference that the repeats can detect: half the width of the interval, as 0.04."""
        if self.low is None or self.high is None:
            return None
        return math.sqrt(self.high / self.low) - 1


@dataclass(frozen=True)
class _LogRatio:
    value: float
    variance: float  # of `value`
    freedom: float  # degrees of freedom of that variance


def summarise(values: Sequence[float]) -> Summary:
    """Mean and sample standard deviation (n - 1); mean +- t(0.975, n - 1) sd / sqrt(n), Student's t."""
    n, mean = len(values), math.fsum(values) / len(values)
    if n < 2:
        return Summary(tuple(values), n, mean, None, None, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = student_t(n - 1) * sd / math.sqrt(n)
    return Summary(tuple(values), n, mean, sd, mean - half, mean + half)


def student_t(freedom: float) -> float:
    """The quantile that leaves 2.5 % above it."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def ratio(value: Summary, baseline: Summary) -> Ratio | None:
    """mean / baseline's mean; None where the baseline's is 0.

    The interval is symmetric for the logarithm: var(ln r) = s1^2 / (n1 m1^2) + s2^2 / (n2 m2^2), the delta method
    for a ratio of independent means (V. H. Franz, Ratios: a short guide to confidence limits and proper use,
    arXiv:0710.2024, section on the Taylor method, here for ln r so that it can not reach below 0 and r and 1/r agree),
    with Welch's and Satterthwaite's degrees of freedom (B. L. Welch, Biometrika 34, 1947) for unequal variances.
    Fieller's interval is not used: with three repeats it may be unbounded, which no table can show.
    """
    if not baseline.mean:
        return None
    log = _log_ratio(value, baseline)
    if log is None:
        return Ratio(value.mean / baseline.mean, None, None)
    return _interval(log)


def combined(pairs: Sequence[tuple[Summary, Summary]]) -> Ratio | None:
    """The geometric mean of several ratios, each of its own cell; None if any of them has none.

    The variances of the logarithms add up, over the square of their number; degrees of freedom by Satterthwaite.
    """
    logs = [_log_ratio(value, baseline) for value, baseline in pairs]
    whole = [log for log in logs if log is not None]
    if not logs or len(whole) < len(logs):
        return None
    count = len(whole)
    parts = [(log.variance / count**2, log.freedom) for log in whole]
    return _interval(_LogRatio(math.fsum(log.value for log in whole) / count, *_welch(parts)))


def _log_ratio(value: Summary, baseline: Summary) -> _LogRatio | None:
    """None where a mean is not above 0, or a side has one value only."""
    if value.mean <= 0 or baseline.mean <= 0 or value.sd is None or baseline.sd is None:
        return None
    parts = [((one.sd or 0.0) ** 2 / (one.n * one.mean**2), one.n - 1.0) for one in (value, baseline)]
    return _LogRatio(math.log(value.mean / baseline.mean), *_welch(parts))


def _welch(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The sum of variances and its degrees of freedom: (sum v)^2 / sum(v^2 / freedom)."""
    total = math.fsum(variance for variance, _ in parts)
    below = math.fsum(variance**2 / freedom for variance, freedom in parts)
    return total, total**2 / below if below else math.fsum(freedom for _, freedom in parts)


def _interval(log: _LogRatio) -> Ratio:
    half = student_t(log.freedom) * math.sqrt(log.variance)
    return Ratio(math.exp(log.value), math.exp(log.value - half), math.exp(log.value + half))
