"""Speed within a trial: it runs at another speed at first and settles, or it does not settle.

The rule uses the verdicts of `contract.steadiness`, which has their sources. If a trial is stepped or drifting, its
seconds before the best split are cut off, until the rest is steady. The rest is the settled level, and the seconds
before it are the burst. The two differ by at least `LEAST`, and by `ERRORS` standard errors of their difference. The
errors are those of the settled seconds, which count as fewer because neighbours are alike (Bayley and Hammersley,
1946). All trials at the point have to show it, in one direction; n trials need ERRORS / sqrt(n) each. A single trial
needs `LEAST_SINGLE`, because slow noise makes steps, too. The interval of the level is that of Student's t over the
trials, or, below three trials, over the seconds.

A trial that is not steady up to its end has no settled level, so its mean depends on its length. The limits are the
same for the change of its least-squares line from start to end, with the errors of the seconds around the line.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import expm1, log, sqrt
from statistics import fmean, pstdev
from typing import TypeVar

from webapp.analysis.answer import FindingKind, Sentence
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, TimedFinding, span_text, timed
from webapp.core.formatting import iops as as_iops
from webapp.core.formatting import significant
from webapp.core.statistics import summarise
from worker.contract.steadiness import (
    Verdict,
    autocorrelation,
    independent_seconds,
    line,
    steadiness_of_rates,
    student_t,
)

MOST_STEPS = 6  # cuts until the rest has to be steady
LEAST, LEAST_SINGLE, ERRORS = log(1.2), log(1.35), 7.0
MIN_TRIALS = 3  # for an interval over trials
LOWEST = 0.01  # of the mean, where a line would go below zero
NO_NOISE = 0.001  # a smaller standard deviation, as a share of the level, is not believed
_NOT_STEADY = (Verdict.STEPPED, Verdict.DRIFTING)


@dataclass(frozen=True)
class Settled:
    """The burst lasts `at` seconds. Rates in 1/s."""

    at: int
    burst: float
    level: float
    low: float
    high: float
    errors: float  # standard errors between burst and level

    @property
    def change(self) -> float:
        """ln(level / burst)"""
        return log(self.level / self.burst)


def settled(trial: RecordedTrial) -> Settled | None:
    """None if the trial is steady from its start, or not steady up to its end."""
    rates, at = trial.iops.tolist(), 0
    if not trial.is_complete:
        return None
    for _ in range(MOST_STEPS):
        judged = steadiness_of_rates(rates[at:])
        if judged.verdict not in _NOT_STEADY:
            break
        at += judged.step_at_s
    if judged.verdict is not Verdict.STEADY or at == 0:
        return None
    return _levels(rates, at)


def _levels(rates: Sequence[float], at: int) -> Settled | None:
    """The seconds before and from `at` on. None if the two differ by less than `LEAST`."""
    burst, level = fmean(rates[:at]), fmean(rates[at:])
    if min(burst, level) <= 0 or abs(log(level / burst)) < LEAST:
        return None
    residuals = [rate - level for rate in rates[at:]]
    independent = independent_seconds(len(residuals), autocorrelation(residuals)) / len(residuals)
    before, after = (max(1.0, independent * count) for count in (at, len(residuals)))
    deviation = max(pstdev(residuals), NO_NOISE * level)
    half = student_t(0.975, max(1.0, after - 1)) * deviation / sqrt(after)
    return Settled(
        at=at, burst=burst, level=level, low=level - half, high=level + half,
        errors=abs(level - burst) / (deviation * sqrt(1 / before + 1 / after)),
    )  # fmt: skip


@dataclass(frozen=True)
class Trend:
    """The line through all seconds of a trial that does not settle."""

    change: float  # ln(end / start)
    errors: float


def _unsettled(trial: RecordedTrial) -> Trend | None:
    """None if the trial is steady, settles, or changes by less than `LEAST`."""
    rates = trial.iops.tolist()
    if not trial.is_complete or steadiness_of_rates(rates).verdict not in _NOT_STEADY or settled(trial):
        return None
    change, residuals, _ = line(rates)
    middle = fmean(rates)
    start, end = (max(middle + side * change / 2, LOWEST * middle) for side in (-1, 1))
    if abs(log(end / start)) < LEAST:
        return None
    independent = max(1.0, independent_seconds(len(rates), autocorrelation(residuals)))
    error = max(pstdev(residuals), NO_NOISE * middle) * sqrt(12 / independent)  # of a slope over n seconds, times n
    return Trend(log(end / start), abs(change) / error)


def find(points: Sequence[RecordedPoint]) -> Sequence[TimedFinding]:
    settling = [(point, levels) for point in points if (levels := agreed(point, settled))]
    changing = [(point, trends) for point in points if (trends := agreed(point, _unsettled))]
    return [*_settled_finding(settling), *_unsettled_finding(changing)]


Change = TypeVar("Change", Settled, Trend)


def agreed(point: RecordedPoint, change_of: Callable[[RecordedTrial], Change | None]) -> Sequence[Change]:
    """Of each trial; empty if they are not clear, or do not agree."""
    known = [each for trial in point.trials if (each := change_of(trial))]
    least = LEAST_SINGLE if point.is_single else LEAST
    is_clear = all(each.errors >= ERRORS / sqrt(len(known)) and abs(each.change) >= least for each in known)
    is_one_way = len({each.change > 0 for each in known}) == 1
    return known if len(known) == len(point.trials) and is_clear and is_one_way else []


def _settled_finding(settling: Sequence[tuple[RecordedPoint, Sequence[Settled]]]) -> Sequence[TimedFinding]:
    if not settling:
        return []
    ranked = sorted(settling, key=lambda each: -abs(fmean(level.change for level in each[1])))
    point, levels = ranked[0]
    level, low, high = _interval(levels)
    first = span_text([each.at for each in levels], "s")
    burst = as_iops(fmean(each.burst for each in levels))
    sentence = Sentence(
        (
            f"the first {first} ran at {burst} IOPS, then it settled at {as_iops(level)}",
            f"95 % CI {as_iops(low)} to {as_iops(high)}",
        )
    )
    size = abs(fmean(each.change for each in levels))
    seconds = (
        trial.seconds(each.at, len(trial.iops) - 1)
        for point, levels in ranked
        for trial, each in zip(point.trials, levels, strict=True)
    )
    points = [point for point, _ in ranked]
    return timed(FindingKind.SETTLED, sentence, point, points, size=size, value=level, seconds=seconds)


def _interval(levels: Sequence[Settled]) -> tuple[float, float, float]:
    """The settled level over the trials, and its interval."""
    over_trials = summarise([each.level for each in levels])
    if len(levels) >= MIN_TRIALS and over_trials.low is not None and over_trials.high is not None:
        return over_trials.mean, over_trials.low, over_trials.high
    return over_trials.mean, min(each.low for each in levels), max(each.high for each in levels)


def _unsettled_finding(changing: Sequence[tuple[RecordedPoint, Sequence[Trend]]]) -> Sequence[TimedFinding]:
    if not changing:
        return []
    ranked = sorted(changing, key=lambda each: -abs(fmean(trend.change for trend in each[1])))
    point, trends = ranked[0]
    change = fmean(each.change for each in trends)
    percent = f"{'rose' if change > 0 else 'fell'} by {significant(100 * abs(expm1(change)))} %"
    sentence = f"IOPS {percent} within the trial and did not settle; the mean depends on the length"
    return timed(FindingKind.UNSETTLED, sentence, point, [point for point, _ in ranked], size=abs(change))
