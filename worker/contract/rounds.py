"""Steady state over rounds, after SNIA PTS. A round is a part of one trial, or one repeat of a part of a plan. Pure."""

from collections.abc import Sequence
from math import isfinite
from statistics import fmean
from typing import NamedTuple

from worker.contract.steadiness import line

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
