"""The rule confidence: the mean of the rest after the warm-up is known within ± a percentage.

A second near zero, anywhere, is a stall and no warm-up: the stream then runs to its maximum time.
"""

from math import sqrt
from statistics import fmean

from worker.contract.steadiness import (
    NEAR_ZERO,
    Series,
    Verdict,
    autocorrelation,
    independent_seconds,
    is_significant,
    line,
    steadiness_of_rates,
    usual_rate,
)
from worker.contract.student import student_t
from worker.stop_rules.warm_up import warm_up_s
from worker.stop_rules.window import Window

MIN_KEPT_S = 5
MIN_INDEPENDENT = 2.0
R_ERRORS = 2.0  # standard errors that are added to the autocorrelation
CONFIDENCE = 0.95
DRIFT_PROBABILITY = 0.05
CHANGING = (Verdict.STALLED, Verdict.STEPPED, Verdict.DRIFTING)


def window(rates: Series, percent: float) -> Window | None:
    cut = warm_up_s(rates)
    if cut is None or len(rates) - cut < MIN_KEPT_S:
        return None
    kept, allowed = rates[cut:], percent / 100
    if min(rates) <= NEAR_ZERO * usual_rate(rates) or _changes(kept, allowed):
        return None
    half = interval(kept)
    return Window(cut, len(rates), half) if half <= allowed else None


def interval(rates: Series) -> float:
    """Half width of the 95 % interval of the mean, as a fraction of it.

    Student's t with the number of independent seconds. A short series says little about its autocorrelation r, so the
    upper limit of r counts: the estimate is too low by about (1 + 4 r) / n (M. G. Kendall, "Note on bias in the
    estimation of autocorrelation", Biometrika 41, 1954). Its standard error is 1 / sqrt(n) (M. S. Bartlett, 1946).
    """
    n, mean = len(rates), fmean(rates)
    differences = [rate - mean for rate in rates]
    unbiased = (n * autocorrelation(differences) + 1) / (n - 4)
    correlated = min(1.0, unbiased + R_ERRORS / sqrt(n))
    independent = max(MIN_INDEPENDENT, independent_seconds(n, correlated))
    deviation = sqrt(sum(each * each for each in differences) / (n - 1))
    return student_t((1 + CONFIDENCE) / 2, independent - 1) * deviation / sqrt(independent) / mean


def _changes(kept: Series, allowed: float) -> bool:
    """Whether the series rises or falls by more than the allowed fraction, or has a step or a stall."""
    change, residuals, _ = line(kept)
    drifts = abs(change) > allowed * fmean(kept) and is_significant(change, residuals, DRIFT_PROBABILITY)
    return drifts or steadiness_of_rates(kept).verdict in CHANGING
