"""The order of trials in the blocks of a run with `order: randomised`. Pure.

Each block is shuffled anew, from ranks: one for each target and costly level of a part, and one for each cell. Of
CANDIDATES such orders, the run takes the one in which no level coincides with what a host may do in the meantime: a
linear drift, or a disturbance that comes back, such as garbage collection or a timer. This is restricted randomisation
(K. L. Morgan, D. B. Rubin: Rerandomization to improve covariate balance in experiments, Annals of Statistics 40, 2012)
with waves of all periods as covariates. Decision 26 has the measured rates of false claims.
"""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webapp.plans.values import Value

CANDIDATES = 20
MAX_SINGLE = 64  # cells of a block that are placed one by one; more are placed in groups with the same costly levels
MAX_LEVELS = 64  # over all factors; the costly ones first
MAX_PLACED = 20_000  # units over all candidates: a run of many trials has fewer candidates
_BINS = 512  # of a run, for its spectrum
_FINE = 4  # frequencies for each one of the bins: a wave need not fit into the run as a whole


class Cell(NamedTuple):
    """A point on its targets: a trial in every block."""

    part: int
    targets: tuple[str, ...]
    point: Mapping[str, Value]
    key: str  # of the point


class _Ranks:
    """Random numbers of one block, drawn when they are first used."""

    def __init__(self, seed: str, costly: Sequence[str]) -> None:
        self._chance, self._costly = random.Random(seed), frozenset(costly)  # noqa: S311 - an order, not a secret
        self._ranks: dict[tuple[object, ...], float] = {}

    def _rank(self, *what: object) -> float:
        return self._ranks.setdefault(what, self._chance.random())

    def cell(self, cell: Cell) -> tuple[float, ...]:
        """Its place in the block: by part, targets and costly levels, then by chance."""
        levels = (self._rank(cell.part, name, level) for name, level in cell.point.items() if name in self._costly)
        point_rank = self._rank(cell.part, cell.targets, "point", cell.key)
        return cell.part, self._rank(cell.part, cell.targets), *levels, point_rank


def shuffled_blocks(cells: Sequence[Cell], repeats: int, seed: int, costly: Sequence[str]) -> list[list[int]]:
    """For each block the indexes of all cells, in the order in which they run.

    `costly`: factors whose levels stay together inside a block.
    """
    units = _units(cells, costly)
    names = _varying([cell for cell, _ in units], costly)
    most = max(1, min(CANDIDATES, MAX_PLACED // max(1, len(units) * repeats))) if any(names) else 1
    candidates = [
        [_Ranks(f"{seed} {candidate} {block}", costly) for block in range(repeats)] for candidate in range(most)
    ]
    best = min(candidates, key=lambda blocks: _coincidences(blocks, units, names)) if any(names) else candidates[0]
    return [sorted(range(len(cells)), key=lambda index: ranks.cell(cells[index])) for ranks in best]


def _units(cells: Sequence[Cell], costly: Sequence[str]) -> list[tuple[Cell, int]]:
    """What is placed to compare candidates, with its number of trials: each cell, or each group of many cells."""
    if len(cells) <= MAX_SINGLE:
        return [(cell, 1) for cell in cells]
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.part, cell.targets, *(cell.point.get(name) for name in costly)), []).append(cell)
    return [(members[0], len(members)) for members in groups.values()]


def _varying(cells: Sequence[Cell], costly: Sequence[str]) -> tuple[list[str], list[str]]:
    """The costly factors with several levels in these cells, and the other ones. In groups of many cells, the others
    are shuffled, among so many trials that they coincide with nothing."""
    others = dict.fromkeys(name for cell in cells for name in cell.point if name not in costly)
    several = [[name for name in names if len({c.point.get(name) for c in cells}) > 1] for names in (costly, others)]
    return several[0], several[1]


def _coincidences(
    blocks: Sequence[_Ranks], units: Sequence[tuple[Cell, int]], names: Sequence[Sequence[str]]
) -> list[float]:
    """Of the costly factors, whose few changes coincide most easily, then of the others."""
    order = [unit for ranks in blocks for unit in sorted(units, key=lambda unit: ranks.cell(unit[0]))]
    points, counts = [cell.point for cell, _ in order], [count for _, count in order]
    return [round(coincidence(points, counts, factors), 3) for factors in names]


def coincidence(points: Sequence[Mapping[str, Value]], counts: Sequence[int], names: Sequence[str]) -> float:
    """The largest share of a level's variation over the run that one wave or a linear drift explains, from 0 to 1.

    `points` in the order of running, each for so many trials in a row.
    """
    total = sum(counts)
    bins = min(total, _BINS)
    ends = np.cumsum(counts)
    at = np.searchsorted(ends, (np.arange(bins) + 0.5) * total / bins)
    drift = np.arange(bins, dtype=np.float64) - (bins - 1) / 2
    worst, left = 0.0, MAX_LEVELS
    for name in names:
        levels = [point.get(name) for point in points]
        numbers = {level: number for number, level in enumerate(dict.fromkeys(levels))}
        level_numbers = np.asarray([numbers[level] for level in levels])[at]
        signals = (level_numbers == np.arange(len(numbers))[:left, None]).astype(float)  # one row a level
        worst = max(worst, _largest_share(signals - signals.mean(axis=1, keepdims=True), drift))
        left -= len(signals)
        if left <= 0:
            break
    return worst


def _largest_share(signals: NDArray[np.float64], drift: NDArray[np.float64]) -> float:
    """By the spectrum: a wave of one frequency explains 2 |F|^2 / (N e) of a signal with N bins and the energy e."""
    energies = (signals**2).sum(axis=1)
    signals, energies = signals[energies > 0], energies[energies > 0]
    if not len(signals):
        return 0.0
    bins = signals.shape[1]
    spectrum = np.abs(np.fft.rfft(signals, _FINE * bins)) ** 2
    waves = 2 * spectrum[:, 2:].max(axis=1) / (bins * energies)
    trends = (signals @ drift) ** 2 / (drift @ drift * energies)
    return float(min(1.0, max(waves.max(), trends.max())))
