"""Steps in a series: the places from which the level is another one. Pure.

The method is circular binary segmentation (A. B. Olshen, E. S. Venkatraman, R. Lucito, M. Wigler: Circular binary
segmentation for the analysis of array-based DNA copy number data, Biostatistics 5, 2004). Of all pieces of the series,
take the one whose mean differs most from the mean of the rest, in standard errors. Its ends are steps if at most
`FALSE_ALARMS` of the random orders of the same values have a piece that differs as much: a permutation test, so no
distribution is assumed. An end is dropped if the levels on both of its sides do not differ by the same test. Then
search the parts between the steps in the same way.

Of series whose values come in random order, at most `FALSE_ALARMS` get any step. Values that depend on the ones before
would get more of them. So a piece must also differ more than in random series with the same dependence
(`Noise`). So does much of a slow drift: it may get steps or none, and `trends.drift` judges it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# Whether a piece of a series differs more than values that depend on the ones before would explain. Pure.
#
# The model is an autoregression of order 1: each deviation from the level is r times the one before, plus chance.
# `noise` estimates r from the deviations of a series from its levels. `Noise.explains` compares a piece with random
# series of the same r.

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
    """Of a series whose levels begin at `ends`."""
    levels = [series[start:end] for start, end in pairwise([0, *ends, len(series)])]
    off = np.concatenate([level - level.mean() for level in levels])
    r = correlation(off, len(levels))
    chance = np.concatenate([[off[0] * math.sqrt(1 - r**2)], off[1:] - r * off[:-1]])
    return Noise(r, chance - chance.mean())


def correlation(off: Series, m: int) -> float:
    """r of deviations from m levels.

    The plain estimate of r is too low, because the levels follow the values. For m levels among n values,
    (n r + m) / (n - 2.5 m) is right on average (by simulation). One standard error, 1 / √n, is added: an r that is too
    low makes false steps, one that is too high hides small ones.
    """
    n = len(off)
    plain = float(off[1:] @ off[:-1] / (off @ off)) if off.any() else 0.0
    likely = (n * plain + m) / max(n - 2.5 * m, 1) + 1 / math.sqrt(n)
    return min(max(likely, 0.0), MAX_R)


def shares(scores: Callable[[Series], Series], orders: Series) -> Series:
    """The score of each series (one a row) as a share of its sum of squares."""
    squares: Series = ((orders - orders.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return scores(orders) / np.maximum(squares, np.finfo(np.float64).tiny)


FALSE_ALARMS = 0.01
FALSE_ALARMS_DEPENDENT = 0.05  # measured for an autocorrelation of up to 0.5 (`manage.py simulate_trends`)
MIN_RUNS = 13  # the shortest series in which the test can reach FALSE_ALARMS
MIN_LEVEL = 3  # values of a level
ORDERS = 999  # random orders
_ALLOWED = int(FALSE_ALARMS * (ORDERS + 1)) - 1  # orders that may differ as much: (1 + 9) / 1000
_BATCH = 100
KEPT = 1_000  # series whose steps this process remembers


def steps(values: Sequence[float]) -> list[int]:
    """Indices of the first value of each new level, ascending. Rates and latencies are given as logarithms."""
    return list(_steps(tuple(values)))


@lru_cache(maxsize=KEPT)
def _steps(values: tuple[float, ...]) -> tuple[int, ...]:
    """Fewer levels leave more dependence between the values, so this is repeated until no step is dropped."""
    series = np.asarray(values, dtype=np.float64)
    places = _inside(series, np.random.default_rng(len(values)), None)
    while places:
        fewer = _inside(series, np.random.default_rng(len(values)), noise(series, places))
        if len(fewer) >= len(places):
            break
        places = fewer
    return tuple(places)


def _inside(series: Series, random: np.random.Generator, like: Noise | None) -> list[int]:
    ends = _ends(series, random, like)
    if not ends:
        return []
    parts = pairwise([0, *ends, len(series)])
    inner = [start + step for start, end in parts for step in _inside(series[start:end], random, like)]
    return sorted([*ends, *inner])


def _ends(series: Series, random: np.random.Generator, like: Noise | None) -> list[int]:
    """The ends of the piece that differs most; none if that may be chance, or noise `like` this."""
    if len(series) < MIN_RUNS or np.ptp(series) == 0:
        return []
    score, start, end = max(_best_pieces(series))
    if _by_chance(series, score, _highest, random) or (like is not None and _by_noise(series, score, like, random)):
        return []
    inside = [at for at in (start, end) if 0 < at < len(series)]
    if len(inside) < 2:
        return inside
    certain = [
        *([start] if _differs(series[:end], start, random) else []),
        *([end] if _differs(series[start:], end - start, random) else []),
    ]
    return certain or [max(inside, key=lambda at: _split_scores(series[None, :], at)[0])]


def _best_pieces(series: Series) -> list[tuple[float, int, int]]:
    """Of each length, the piece with the highest score: score, start, end."""
    best = []
    for length, scores in _piece_scores(series[None, :]):
        start = int(scores[0].argmax())
        best.append((float(scores[0, start]), start, start + length))
    return best


def _highest(orders: Series) -> Series:
    """The highest score of each order."""
    best: Series = np.max([scores.max(axis=1) for _, scores in _piece_scores(orders)], axis=0)
    return best


def _piece_scores(orders: Series) -> Iterator[tuple[int, Series]]:
    """For each length of a piece, the scores by order and start. A score is the part of the sum of squares that two
    means explain, which grows with |t|. Where fewer than `MIN_LEVEL` values are left before or after, it is 0."""
    total = orders.shape[1]
    centred = orders - orders.mean(axis=1, keepdims=True)
    sums = np.concatenate([np.zeros((len(orders), 1)), centred.cumsum(axis=1)], axis=1)
    for length in range(MIN_LEVEL, total - MIN_LEVEL + 1):
        scores: Series = (sums[:, length:] - sums[:, :-length]) ** 2 * (total / (length * (total - length)))
        scores[:, 1:MIN_LEVEL] = 0
        scores[:, -MIN_LEVEL:-1] = 0
        yield length, scores


def _split_scores(orders: Series, at: int) -> Series:
    """The scores of the piece before `at`."""
    total = orders.shape[1]
    sums: Series = (orders[:, :at] - orders.mean(axis=1, keepdims=True)).sum(axis=1)
    scores: Series = sums**2 * (total / (at * (total - at)))
    return scores


def _differs(series: Series, at: int, random: np.random.Generator) -> bool:
    """Whether the levels before and after `at` differ."""
    score = float(_split_scores(series[None, :], at)[0])
    return not _by_chance(series, score, lambda orders: _split_scores(orders, at), random)


def _by_noise(series: Series, score: float, like: Noise, random: np.random.Generator) -> bool:
    """Whether too many random series of this noise have a piece that explains as much of their squares."""
    if like.r == 0:
        return False  # the random orders are such series
    share, reached = score / float(((series - series.mean()) ** 2).sum()), 0
    for done in range(0, ORDERS, _BATCH):
        drawn = like.orders(min(_BATCH, ORDERS - done), len(series), random)
        reached += int((shares(_highest, drawn) >= share).sum())
        if reached > _ALLOWED:
            return True
    return False


def _by_chance(series: Series, score: float, score_of: Callable[[Series], Series], random: np.random.Generator) -> bool:
    """Whether too many random orders reach the score. It stops as soon as that is certain."""
    reached, limit = 0, score * (1 - 1e-9)  # equal values may differ by rounding
    for done in range(0, ORDERS, _BATCH):
        orders = random.permuted(np.tile(series, (min(_BATCH, ORDERS - done), 1)), axis=1)
        reached += int((score_of(orders) >= limit).sum())
        if reached > _ALLOWED:
            return True
    return False
