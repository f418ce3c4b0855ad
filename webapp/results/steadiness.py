"""Whether a trial measured one speed: a verdict from the series of its own seconds. Pure.

    too short   fewer than 10 s, or fewer than 20 I/Os a second: the series says nothing
    stalled     samples of 2 s or more in a row below 5 % of the usual speed (the 0.9 quantile of seconds with I/O), or
                one sample of 4 s or more: the engine reported nothing for so long
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

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import groupby
from math import sqrt
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

MIN_SECONDS, MIN_IOS_PER_S = 10, 20
MAX_SECONDS = 1_000_000  # of a series that is judged
NEAR_ZERO, STALL_S = 0.05, 2
SHORT_S = 0.1  # two samples may be shorter than 2 s by this much
STEP, STEP_EXPLAINS, STEP_ERRORS, MIN_LEVEL_S = 0.20, 0.5, 5.0, 3
DRIFT, SIGNIFICANT = 0.10, 0.003
BURSTS = 0.20

Series = NDArray[np.float64]
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
    found = [steadiness(samples) for samples in streams]
    return min(found, key=lambda each: _SEVERITY.index(each.verdict), default=_NOTHING)


def steadiness(samples: Iterable[Timed]) -> Steadiness:
    """The verdict on a stream from the samples of its directions, with their I/Os."""
    timed = list(samples)
    rates = per_second(timed)
    working = rates[rates > 0]
    usual = float(np.quantile(working, 0.9)) if len(working) else 0.0
    stalls_s = _stalls(timed, NEAR_ZERO * usual)
    longest_s = max(stalls_s, default=0.0)
    silent_s = max((length_ms for _, length_ms, _ in timed), default=0) // 1000 - 1
    stall_s, stalled_s = round(longest_s), round(sum(stalls_s))
    if silent_s > max(stall_s, STALL_S):  # one long sample: the engine reported nothing, a stall of unknown shape
        longest_s, stall_s, stalled_s = silent_s, silent_s, max(stalled_s, silent_s)
    found = Steadiness(verdict=Verdict.TOO_SHORT, seconds=len(rates), stall_s=stall_s, stalled_s=stalled_s)
    if len(rates) < MIN_SECONDS or usual < MIN_IOS_PER_S:
        return found
    mean = float(rates.mean())
    at, step, step_explains = _step(rates)
    change, residuals, line_explains = _line(rates)
    before, start = float(rates[:at].mean()), mean - change / 2
    variation = float(residuals.std(ddof=2)) / mean
    autocorrelation = _autocorrelation(residuals)
    found = msgspec.structs.replace(
        found, step_at_s=at, step=step / before if before else 0.0, variation=variation,
        drift=max(-1.0, change / start) if start > 0 else 0.0, autocorrelation=autocorrelation,
    )  # fmt: skip
    least = STEP_ERRORS**2 / (STEP_ERRORS**2 + len(rates) - 2)
    verdicts = {
        Verdict.STALLED: longest_s >= STALL_S - SHORT_S,
        Verdict.STEPPED: abs(step) >= STEP * mean and step_explains >= max(STEP_EXPLAINS, line_explains, least),
        Verdict.DRIFTING: abs(change) >= DRIFT * mean and _is_significant(change, residuals, autocorrelation),
        Verdict.BURSTY: variation**2 - 1 / mean >= BURSTS**2,
    }
    verdict = next((each for each, is_so in verdicts.items() if is_so), Verdict.STEADY)
    return msgspec.structs.replace(found, verdict=verdict)


def per_second(samples: Iterable[Timed]) -> Series:
    """Counts as rates of whole seconds since the measured part began; a sample is spread evenly over its length.

    Directions of a sample have the same offset and add up. The rest of the last second is left out, and what is beyond
    `MAX_SECONDS`.
    """
    counted: dict[int, float] = {0: 0.0}
    for offset_ms, length_ms, count in samples:
        counted.setdefault(offset_ms - length_ms, 0.0)
        counted[offset_ms] = counted.get(offset_ms, 0.0) + count
    offsets = np.array(sorted(counted))
    totals = np.cumsum([counted[int(offset)] for offset in offsets])
    seconds = np.arange(min(int(offsets[-1]) // 1000, MAX_SECONDS) + 1)
    return np.diff(np.interp(seconds * 1000, offsets, totals))


def _stalls(samples: Iterable[Timed], limit: float) -> list[float]:
    """The lengths in s of runs of samples below `limit` I/Os per second."""
    counted: dict[tuple[int, int], float] = {}
    for offset_ms, length_ms, count in samples:
        counted[offset_ms, length_ms] = counted.get((offset_ms, length_ms), 0.0) + count
    slow = [
        (length_ms, 1000 * counted[offset_ms, length_ms] < limit * length_ms)
        for offset_ms, length_ms in sorted(counted)
    ]
    runs = groupby(slow, key=itemgetter(1))
    return [sum(length_ms for length_ms, _ in run) / 1000 for is_slow, run in runs if is_slow]


def _step(rates: Series) -> tuple[int, float, float]:
    """The second at which the later level begins, the change there, and the share of the variance that it explains."""
    n, total = len(rates), float(((rates - rates.mean()) ** 2).sum())
    before = np.arange(MIN_LEVEL_S, n - MIN_LEVEL_S + 1)
    sums = rates.cumsum()[before - 1]
    steps = (rates.sum() - sums) / (n - before) - sums / before
    explained = steps**2 * before * (n - before) / n  # between the two levels
    best = int(explained.argmax())
    return int(before[best]), float(steps[best]), float(explained[best]) / total if total else 0.0


def _line(rates: Series) -> tuple[float, Series, float]:
    """The change of the least-squares line from start to end, the residuals, and the share that it explains."""
    times = np.arange(len(rates)) - (len(rates) - 1) / 2
    slope = float((times * rates).sum() / (times**2).sum())
    residuals = rates - rates.mean() - slope * times
    total = float(((rates - rates.mean()) ** 2).sum())
    return slope * len(rates), residuals, 1 - float((residuals**2).sum()) / total if total else 0.0


def _autocorrelation(residuals: Series) -> float:
    power = float((residuals**2).sum())
    return float((residuals[1:] * residuals[:-1]).sum()) / power if power else 0.0


def _is_significant(change: float, residuals: Series, autocorrelation: float) -> bool:
    n = len(residuals)
    independent = max(3.0, n * (1 - max(0.0, autocorrelation)) / (1 + max(0.0, autocorrelation)))
    # The variance of a slope over n seconds is 12 s^2 / n^3, so that of the change over them is 12 s^2 / n.
    error = sqrt(12 * float((residuals**2).sum()) / (n - 2) / independent)
    return bool(abs(change) > stdtrit(independent - 2, 1 - SIGNIFICANT / 2) * error)
