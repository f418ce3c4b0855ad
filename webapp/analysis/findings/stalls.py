"""Stalls: seconds near zero in a trial that otherwise works.

A second is near zero if its rate is below 5 % of the median of the trial, as in `contract.steadiness`, and also further
below it than `SIGMAS` robust standard deviations of ln(rate) (1.4826 times the median absolute deviation), so that
a noisy trial has no stalls. A median below `MIN_IOS_PER_S` says nothing about single seconds. The last second of a
trial can be incomplete, so it does not count. A stall of one second counts if another trial of the point, or the
same one, has a second stall; otherwise it has to last `ALONE_S`.

The counters of the same seconds say where the I/O waited: in the device, which had I/O in flight, or above it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from webapp.analysis.answer import FindingKind
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, TimedFinding, timed
from worker.contract.steadiness import MIN_IOS_PER_S, NEAR_ZERO

SIGMAS = 6.0
ALONE_S = 2
LATE_S = 2  # the kernel may log an error so long after the stall
BUSY, IDLE = 90.0, 10.0  # percent of the time with I/O in flight
MIN_SECONDS = 10


@dataclass(frozen=True)
class Stall:
    trial: RecordedTrial
    first: int  # index of its first second
    last: int

    @property
    def length_s(self) -> int:
        return self.last - self.first + 1

    @property
    def errors(self) -> int:
        """Lines of the kernel log in the same seconds."""
        return sum(self.first <= second <= self.last + LATE_S for second in self.trial.errors)

    @property
    def utilisation(self) -> float | None:
        """Of the device in the stall, in percent; None if it was not recorded in every second."""
        values = self.trial.utilisation[self.first : self.last + 1]
        return float(values.mean()) if len(values) == self.length_s and not np.isnan(values).any() else None


def stalls(trial: RecordedTrial) -> Iterator[Stall]:
    rates = trial.iops[:-1]
    working = rates[rates > 0]
    if not trial.is_complete or len(rates) < MIN_SECONDS or not len(working):
        return
    middle = float(np.median(rates))
    if middle < MIN_IOS_PER_S:
        return
    logs = np.log(working)
    sigma = 1.4826 * float(np.median(np.abs(logs - np.log(middle))))
    limit = min(NEAR_ZERO * middle, middle * np.exp(-SIGMAS * sigma))
    seconds = enumerate((rates < limit).tolist())
    for is_slow, run in groupby(seconds, key=lambda second: second[1]):
        if is_slow:
            places = [place for place, _ in run]
            yield Stall(trial, places[0], places[-1])


def find(points: Sequence[RecordedPoint]) -> Sequence[TimedFinding]:
    """One finding about the trials with stalls, at the point with the longest one."""
    by_point = [(point, [stall for trial in point.trials for stall in stalls(trial)]) for point in points]
    clear = [
        (point, each) for point, each in by_point if len(each) > 1 or any(stall.length_s >= ALONE_S for stall in each)
    ]
    if not clear:
        return []
    point, first = max(clear, key=lambda each: max(stall.length_s for stall in each[1]))
    longest, total = max(stall.length_s for stall in first), sum(stall.length_s for stall in first)
    stalled, trials = len({stall.trial.number for stall in first}), len(point.trials)
    often = f"for {total} s" if len(first) == 1 else f"{len(first)} times, up to {longest} s and {total} s in all"
    where = f" in {stalled} of {trials} trials" if trials > 1 else ""
    seconds = sum(len(trial.iops) for trial in point.trials)
    ranked = sorted((stall for _, each in clear for stall in each), key=lambda stall: -stall.length_s)
    return timed(
        FindingKind.STALLED, f"I/O stalled {often}{where}{_beside(first)}", point, [point for point, _ in clear],
        size=total / seconds, value=float(longest),
        seconds=(stall.trial.seconds(stall.first, stall.last) for stall in ranked),
    )  # fmt: skip


def _beside(stalled: Sequence[Stall]) -> str:
    """Errors of the kernel in the same seconds, else where the I/O waited, if all stalls agree."""
    if errors := sum(stall.errors for stall in stalled):
        return f"; the kernel logged {errors} error{'s' if errors > 1 else ''} at that time"
    shares = [stall.utilisation for stall in stalled]
    if all(share is not None and share >= BUSY for share in shares):
        return "; the device had I/O in flight"
    if all(share is not None and share <= IDLE for share in shares):
        return "; the device was idle"
    return ""
