"""The rule confidence: the mean of the rest after the warm-up is known within ± a percentage."""

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
CONFIDENCE = 0.95
DRIFT_PROBABILITY = 0.05
CHANGING = (Verdict.STALLED, Verdict.STEPPED, Verdict.DRIFTING)


def window(rates: Series, percent: float) -> Window | None:
    cut = warm_up_s(rates)
    if cut is None or len(rates) - cut < MIN_KEPT_S:
        return None
    kept, allowed = rates[cut:], percent / 100
    if min(kept) <= NEAR_ZERO * usual_rate(rates) or _changes(kept, allowed):
        return None
    half = interval(kept)
    return Window(cut, len(rates), half) if half <= allowed else None


def interval(rates: Series) -> float:
    """Half width of the 95 % interval of the mean, as a fraction of it.

    Student's t with the number of independent seconds. The autocorrelation of a short series is estimated too low, by
    about (1 + 4 r) / n (M. G. Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954;
    F. H. C. Marriott and J. A. Pope, same volume), so it is corrected first.
    """
    n, mean = len(rates), fmean(rates)
    differences = [rate - mean for rate in rates]
    estimated = autocorrelation(differences)
    correlated = min(1.0, (n * estimated + 1) / (n - 4))
    independent = max(MIN_INDEPENDENT, independent_seconds(n, correlated))
    deviation = sqrt(sum(each * each for each in differences) / (n - 1))
    return student_t((1 + CONFIDENCE) / 2, independent - 1) * deviation / sqrt(independent) / mean


def _changes(kept: Series, allowed: float) -> bool:
    """Whether the series rises or falls by more than the allowed fraction, or is a step, or stands still."""
    change, residuals, _ = line(kept)
    drifts = abs(change) > allowed * fmean(kept) and is_significant(change, residuals, DRIFT_PROBABILITY)
    return drifts or steadiness_of_rates(kept).verdict in CHANGING
