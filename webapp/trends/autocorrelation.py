"""Whether a piece of a series differs more than values that depend on the ones before would explain. Pure.

The model is an autoregression of order 1: each deviation from the level is r times the one before, plus chance. `noise`
estimates r from the deviations of a series from its levels. `Noise.explains` compares a piece with random series of
the same r.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MAX_R = 0.95

Series = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """`r` is the correlation of a deviation with the one before; `chance` has what r does not explain."""

    r: float
    chance: Series

    def orders(self, count: int, length: int, random: np.random.Generator) -> Series:
        """Random series of this noise, one a row."""
        drawn: Series = random.permuted(np.tile(self.chance, (count, 1)), axis=1)[:, :length]
        drawn[:, 0] /= math.sqrt(1 - self.r**2)  # the variance of all later values
        for at in range(1, length):
            drawn[:, at] += self.r * drawn[:, at - 1]
        return drawn


def noise(series: Series, ends: Sequence[int]) -> Noise:
    """Of a series whose levels begin at `ends`.

    The plain estimate of r is too low, because the levels follow the values. For m levels among n values,
    (n r + m) / (n - 2.5 m) is right on average (by simulation). One standard error, 1 / √n, is added: an r that is too
    low makes false steps, one that is too high hides small ones.
    """
    levels = [series[start:end] for start, end in pairwise([0, *ends, len(series)])]
    off = np.concatenate([level - level.mean() for level in levels])
    n, m = len(series), len(levels)
    plain = float(off[1:] @ off[:-1] / (off @ off)) if off.any() else 0.0
    likely = (n * plain + m) / max(n - 2.5 * m, 1) + 1 / math.sqrt(n)
    r = min(max(likely, 0.0), MAX_R)
    chance = np.concatenate([[off[0] * math.sqrt(1 - r**2)], off[1:] - r * off[:-1]])
    return Noise(r, chance - chance.mean())


def shares(scores: Callable[[Series], Series], orders: Series) -> Series:
    """The score of each series (one a row) as a share of its sum of squares."""
    squares: Series = ((orders - orders.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return scores(orders) / np.maximum(squares, np.finfo(np.float64).tiny)
