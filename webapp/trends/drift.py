"""A gradual change in a series: the straight line through its logarithms, and whether chance explains its slope. Pure.

Least squares give the slope and its standard error. Values that depend on the ones before make that error too small.
For an autoregression of order 1 with correlation r, the variance grows by (1 + r) / (1 - r). The plain estimate of r
is too low, as in `trends.steps`, and gets the same corrections, with a line as two levels.

A change that began lately fits no line through all values. So the newest half of the values, the newest quarter and so
on have lines of their own, and a line is certain only after Bonferroni's correction for their number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webapp.core.statistics import student_t, tail
from webapp.trends.steps import correlation

MIN_RUNS = 10
FALSE_ALARMS = 0.01  # and 5 % for a correlation of up to 0.5 (`manage.py simulate_trends`)


@dataclass(frozen=True)
class Drift:
    """`change` is that of the line, from the first of the `runs` values to the last; `low` and `high` are its 95 %
    interval. `spread` is the standard deviation around the line. `chance` is how often a series without a slope has one
    as large."""

    runs: int
    start: float
    change: float
    low: float
    high: float
    spread: float
    chance: float


def drift(values: Sequence[float]) -> Drift | None:
    """None for too few values. Rates and latencies are given as logarithms."""
    n = len(values)
    if n < MIN_RUNS:
        return None
    series, at = np.asarray(values, dtype=np.float64), np.arange(n) - (n - 1) / 2
    squares = float(at @ at)
    slope, mean = float(at @ series) / squares, float(series.mean())
    off = series - mean - slope * at
    r = correlation(off, 2)
    spread = math.sqrt(float(off @ off) / (n - 2))
    error = spread * math.sqrt((1 + r) / (1 - r) / squares)
    change, half = slope * (n - 1), student_t(n - 2) * error * (n - 1)
    chance = 2 * tail(n - 2, abs(slope) / error) if error else float(slope == 0)
    return Drift(n, mean - change / 2, change, change - half, change + half, spread, chance)


def certain(values: Sequence[float]) -> Drift | None:
    """The most certain change of the newest values; None if chance explains all."""
    lengths = [len(values)]
    while lengths[-1] > MIN_RUNS:
        lengths.append(max(MIN_RUNS, lengths[-1] // 2))
    lines = [line for length in lengths if (line := drift(values[-length:]))]
    best = min(lines, key=lambda line: line.chance, default=None)
    return best if best and best.chance * len(lines) <= FALSE_ALARMS else None
