"""Stop rules, each a pure function of the series so far: no clock, no I/O. Formulas: docs/reference/stop-rules.md.

A rule gets the I/Os of each whole second since the measured part began and returns the window that it accepts, or
None. It is checked at the seconds of `looks`, and `first_window` replays that on a recorded series.
"""

from collections.abc import Iterator
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from worker.contract.steadiness import (
    NEAR_ZERO,
    STALL_S,
    Series,
    Verdict,
    autocorrelation,
    independent_seconds,
    is_significant,
    line,
    over_rounds,
    steadiness_of_rates,
    student_t,
    usual_rate,
)
from worker.contract.workload import SETTLED_LEAST_S, Confidence, Settled, SteadyRounds, StopRule, least_s
from worker.contract.workload import SNIA_ROUNDS as ROUNDS


class Window(NamedTuple):
    """Whole seconds since the measured part began; the end is that of the series."""

    from_s: int
    to_s: int
    interval: float | None = None  # half width of the 95 % interval of the mean, as a fraction of it


# The rule snia: steady state over five rounds, after SNIA PTS 2.0. A round is a part of one trial.


def snia_window(rates: Series, round_s: int) -> Window | None:
    """The last five complete rounds, if they are steady. Rounds count from the start of the measured part."""
    rounds = len(rates) // round_s
    if rounds < ROUNDS:
        return None
    ends = range((rounds - ROUNDS + 1) * round_s, rounds * round_s + 1, round_s)
    means = [fmean(rates[end - round_s : end]) for end in ends]
    window = Window(ends[0] - round_s, ends[-1])
    stalled = steadiness_of_rates(rates[window.from_s : window.to_s]).stall_s >= STALL_S  # also of few, large I/Os
    return window if over_rounds(means).steady and not stalled else None


# The rule settled: since some second, the rate has had no step, drift or stall for a given time.

TRIM = 10  # while the rest drifts, a tenth of it is left out


def settled_window(rates: Series, hold_s: int) -> Window | None:
    settled_s = settled_at_s(rates, hold_s)
    return None if settled_s is None else Window(settled_s, len(rates))


def settled_at_s(rates: Series, hold_s: int) -> int | None:
    """The second since which the verdict is steady or bursty, if that is at least `hold_s` ago.

    The series is cut at its change points, each the best split of the rest (binary segmentation: A. J. Scott and
    M. Knott, 1974); then at its start while the rest drifts. The criteria are those of the verdict on a result.
    """
    start = _after_stall(rates)
    while len(rates) - start >= max(hold_s, SETTLED_LEAST_S):
        steadiness = steadiness_of_rates(rates[start:])
        match steadiness.verdict:
            case Verdict.STEPPED:
                start += steadiness.step_at_s
            case Verdict.DRIFTING:
                start += max(1, (len(rates) - start) // TRIM)
            case Verdict.STEADY | Verdict.BURSTY:
                return start
            case _:
                return None
    return None


def _after_stall(rates: Series) -> int:
    """The second after the last one near zero."""
    limit = NEAR_ZERO * usual_rate(rates)
    return max((at + 1 for at, rate in enumerate(rates) if rate <= limit), default=0)


MIN_LOOK_S = 5  # no rule ends a shorter series
# The next check is 5 % of the length later: fewer chances to stop by accident, and less work. After a round: 1 %.
LOOK_GROWTH, ROUND_GROWTH = 0.05, 0.01


def find_window(rule: StopRule, rates: Series, most_s: int = 0) -> Window | None:
    """The window that the rule accepts at the end of this series; None: the stream continues. `most_s`: the maximum
    time of the stream; 0: unknown."""
    if len(rates) < MIN_LOOK_S:
        return None
    match rule:
        case Confidence():
            return confidence_window(rates, rule.percent, most_s)
        case SteadyRounds():
            return snia_window(rates, rule.round_s)
        case Settled():
            return settled_window(rates, rule.hold_s)


def first_look(rule: StopRule, least_runtime_s: int) -> int:
    """The length of the series in seconds at the first check."""
    return _round_end(rule, max(MIN_LOOK_S, least_s(rule, least_runtime_s)))


def next_look(rule: StopRule, seconds: int) -> int:
    """The length of the series at the next check, after a check at `seconds`."""
    growth = ROUND_GROWTH if isinstance(rule, SteadyRounds) else LOOK_GROWTH
    return _round_end(rule, seconds + max(1, int(seconds * growth)))


def _round_end(rule: StopRule, seconds: int) -> int:
    """The first end of a round from `seconds` on; `seconds` without rounds."""
    return -(-seconds // rule.round_s) * rule.round_s if isinstance(rule, SteadyRounds) else seconds


def looks(rule: StopRule, least_runtime_s: int, most_s: int) -> Iterator[int]:
    """The lengths in seconds at which a rule is checked."""
    at = first_look(rule, least_runtime_s)
    while at <= most_s:
        yield at
        at = next_look(rule, at)


def first_window(rule: StopRule, rates: Series, *, least_runtime_s: int = MIN_LOOK_S) -> Window | None:
    """The window with which the rule ends a recorded series; None if it never does."""
    windows = (find_window(rule, rates[:at], len(rates)) for at in looks(rule, least_runtime_s, len(rates)))
    return next((window for window in windows if window), None)


# The warm-up of a series: the seconds at its start that its mean should not contain.

GAIN = 0.5  # a cut must reduce the squared error to this share: chance alone finds small gains


def warm_up_s(rates: Series) -> int | None:
    """The cut that minimises the squared standard error of the mean of the rest; None if the warm-up is not over.

    MSER: K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69 (6),
    1997, with one second as the batch. A minimum in the second half of the series means that it is too short.
    """
    n = len(rates)
    best, cut = float("inf"), 0
    total = squares = error = 0.0
    shift = rates[-1]  # against cancellation in the squares
    for at in range(n - 1, -1, -1):
        each = rates[at] - shift
        total, squares, count = total + each, squares + each * each, n - at
        error = max(0.0, squares - total * total / count) / count**2
        if at <= n // 2 and error <= best:
            best, cut = error, at
    if cut == n // 2:
        return None
    return cut if best <= GAIN * error else 0


# The rule confidence: the mean of the rest after the warm-up is known within ± a percentage.
#
# A second near zero, anywhere, is a stall and no warm-up: the stream then runs to its maximum time.

MIN_KEPT_S = 5
MIN_INDEPENDENT = 2.0
R_ERRORS = 2.0  # standard errors that are added to the autocorrelation
CONFIDENCE = 0.95
DRIFT_PROBABILITY = 0.05
CHANGING = (Verdict.STALLED, Verdict.STEPPED, Verdict.DRIFTING)


def confidence_window(rates: Series, percent: float, most_s: int = 0) -> Window | None:
    cut = warm_up_s(rates)
    if cut is None or len(rates) - cut < MIN_KEPT_S:
        return None
    measured, allowed = rates[cut:], percent / 100
    if min(rates) <= NEAR_ZERO * usual_rate(rates) or _changes(measured, allowed, most_s - cut):
        return None
    half = interval(measured)
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


def _changes(measured: Series, allowed: float, most_s: int) -> bool:
    """Whether the series rises or falls by more than the allowed fraction, or would have another mean by this fraction
    if it went on like this until `most_s`; or has a step or a stall."""
    change, residuals, _ = line(measured)
    until_end = change * (most_s / len(measured) - 1) / 2  # of the mean
    largest = max(abs(change), abs(until_end))
    drifts = largest > allowed * fmean(measured) and is_significant(change, residuals, DRIFT_PROBABILITY)
    return drifts or steadiness_of_rates(measured).verdict in CHANGING
