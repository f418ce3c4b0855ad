"""Blocks are shuffled so that no level coincides with a drift or with a disturbance that comes back."""

import random
from itertools import groupby, product

import numpy as np
import pytest
from numpy.typing import NDArray

from webapp.plans.trial_order import MAX_SINGLE, Cell, coincidence, shuffled_blocks


def cells(schedulers: int = 2, sizes: int = 4, targets: int = 1) -> list[Cell]:
    return [
        Cell(1, (f"t{target}",), {"scheduler": f"s{scheduler}", "block_size": size}, f"{scheduler} {size}")
        for target, scheduler, size in product(range(targets), range(schedulers), range(sizes))
    ]


def explained(signal: NDArray[np.float64], *covariates: NDArray[np.float64]) -> float:
    """The share of the variation that a least-squares fit of the covariates explains."""
    signal = signal - signal.mean()
    matrix = np.column_stack(covariates)
    fitted = matrix @ np.linalg.lstsq(matrix, signal, rcond=None)[0]
    return float(fitted @ fitted / (signal @ signal))


def coincidence_of(order: list[Cell]) -> float:
    return coincidence([cell.point for cell in order], [1] * len(order), ["scheduler"])


@pytest.mark.parametrize(("schedulers", "sizes"), [(2, 4), (3, 1), (2, MAX_SINGLE)])
def test_each_block_has_every_cell_once_and_costly_levels_together(schedulers: int, sizes: int) -> None:
    placed = cells(schedulers, sizes)
    for block in shuffled_blocks(placed, 5, 1, ["scheduler"]):
        assert sorted(block) == list(range(len(placed)))
        changes = [level for level, _ in groupby(placed[index].point["scheduler"] for index in block)]
        assert len(changes) == schedulers


def test_the_order_follows_from_the_seed() -> None:
    orders = [shuffled_blocks(cells(), 4, seed, ["scheduler"]) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_parts_keep_their_order_in_each_block() -> None:
    placed = [cell._replace(part=part) for part in (1, 2) for cell in cells()]
    for block in shuffled_blocks(placed, 3, 1, ["scheduler"]):
        assert [placed[index].part for index in block] == [1] * 8 + [2] * 8


def test_a_coincidence_is_the_share_that_one_wave_or_a_drift_explains() -> None:
    """Blocks that mirror each other (ABBA ABBA) have the period of two blocks."""
    a, b = cells(2, 4)[:4], cells(2, 4)[4:]
    mirrored = [*a, *b, *b, *a] * 2
    at = np.arange(len(mirrored))
    signal = np.asarray([cell.point["scheduler"] == "s0" for cell in mirrored], dtype=float)
    wave = 2 * np.pi * at / 16
    assert coincidence_of(mirrored) == pytest.approx(explained(signal, np.sin(wave), np.cos(wave)), abs=0.03)
    assert coincidence_of(mirrored) > 0.8
    sorted_levels = [*a, *a, *b, *b]
    signal = np.asarray([cell.point["scheduler"] == "s0" for cell in sorted_levels], dtype=float)
    drift = np.arange(16, dtype=np.float64) - 7.5
    assert coincidence_of(sorted_levels) >= explained(signal, drift) > 0.7


@pytest.mark.parametrize("repeats", [3, 4, 5, 8])
def test_the_chosen_order_coincides_less_than_a_shuffled_one(repeats: int) -> None:
    placed, chance = cells(), random.Random(7)
    chosen, shuffled = [], []
    for seed in range(30):
        blocks = shuffled_blocks(placed, repeats, seed, ["scheduler"])
        chosen.append(coincidence_of([placed[index] for block in blocks for index in block]))
        halves = [[placed[:4], placed[4:]] for _ in range(repeats)]
        for pair in halves:
            chance.shuffle(pair)
        shuffled.append(coincidence_of([cell for pair in halves for half in pair for cell in half]))
    assert max(chosen) <= np.quantile(shuffled, 0.3) + 1e-9
    assert max(chosen) < 0.9 * max(shuffled)


def test_many_cells_are_compared_by_their_costly_levels() -> None:
    """Of 10,000 trials, three schedulers in three blocks are nine groups."""
    placed = cells(3, 1000)
    blocks = shuffled_blocks(placed, 3, 1, ["scheduler"])
    order = [placed[index] for block in blocks for index in block]
    assert coincidence_of(order) < 0.7
    assert len({cell.point["block_size"] for cell in order[:1000]}) == 1000
