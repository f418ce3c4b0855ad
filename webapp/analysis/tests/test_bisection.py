"""The search for the highest level within a limit: its trials, and how often its bracket holds."""

import math
from collections.abc import Collection

import numpy as np
import pytest

from webapp.analysis.bisection import bracket, next_levels
from webapp.tuning.search import ROUNDS, Measurement, Search
from webapp.tuning.surface import Factor

LEVELS = 19  # 10 % to 95 % and the maximum
LAST = LEVELS - 1
LIMIT = 1e6


def search(budget: int = 60, seed: int = 0) -> Search:
    factor = Factor("load", LEVELS, tuple(range(LEVELS)), costly=False)
    return Search((factor,), budget, limit=LIMIT, seed=seed)


def latency(level: int, crossing: float) -> float:
    """It rises by 12 % from one level to the next, and is the limit at `crossing`."""
    return LIMIT * math.exp(0.12 * (level - crossing))


def measured(of: Search, crossing: float, noise: float = 0.0, failing: Collection[int] = ()) -> list[Measurement]:
    chance, measurements = np.random.default_rng(of.seed), list[Measurement]()
    for batch in range(100):
        following = next_levels(of, measurements)
        for point in following.points:
            limited = None if point in failing else latency(point, crossing) * math.exp(chance.normal(0, noise))
            value = None if limited is None else 1_000.0 * (point + 1)
            measurements.append(Measurement(point, batch, value, limited, following.is_final))
        if not following.points:
            return measurements
    raise AssertionError("The search does not end.")


def test_it_measures_the_maximum_then_bisects_then_repeats_the_neighbours_of_the_limit() -> None:
    of = search()
    trials = measured(of, crossing=10.5)
    assert [each.point for each in trials[:ROUNDS]] == [LAST] * ROUNDS
    bisection = [each.point for each in trials[ROUNDS:] if not each.is_final]
    assert len(bisection) <= math.ceil(math.log2(LEVELS))
    assert sorted(each.point for each in trials if each.is_final) == [10] * ROUNDS + [11] * ROUNDS
    assert bracket(of, trials[:-1]) is None
    made = bracket(of, trials)
    assert made is not None
    assert (made.point, made.below, made.above, made.rounds) == (10, 10, 11, ROUNDS)
    assert made.value == pytest.approx(11_000)


def test_noise_makes_the_bracket_wider_until_both_sides_are_sure() -> None:
    of = search(budget=100)
    trials = measured(of, crossing=10.5, noise=0.15)
    made = bracket(of, trials)
    assert made is not None
    assert made.below is not None
    assert made.above is not None
    assert made.above - made.below > 1
    assert len({each.point for each in trials if each.is_final}) > 2


def test_the_bracket_holds() -> None:
    crossings = np.random.default_rng(1).uniform(3, 15, 300)
    searches = [search(seed=seed) for seed in range(len(crossings))]
    made = [bracket(of, measured(of, crossing, noise=0.1)) for of, crossing in zip(searches, crossings, strict=True)]
    held = [
        (each.below is None or each.below <= crossing) and (each.above is None or each.above > crossing)
        for each, crossing in zip(made, crossings, strict=True)
        if each
    ]
    assert len(held) == len(crossings)
    assert sum(held) >= 0.93 * len(held)  # 95 %, less two standard deviations of its sample


@pytest.mark.parametrize(("crossing", "expected"), [(-1.0, (None, None, 0)), (30.0, (17, 17, None))])
def test_a_limit_outside_the_levels_has_one_side(crossing: float, expected: tuple[int | None, ...]) -> None:
    of = search()
    made = bracket(of, measured(of, crossing))
    assert made is not None
    assert (made.point, made.below, made.above) == expected


def test_without_the_last_level_nothing_follows() -> None:
    of = search()
    trials = measured(of, 10.5, failing={LAST})
    assert [each.point for each in trials] == [LAST] * ROUNDS
    assert bracket(of, trials) is None


def test_a_level_without_a_value_is_left_out() -> None:
    of = search()
    trials = measured(of, crossing=10.5, failing={8, 10})
    assert sum(each.point in (8, 10) for each in trials) <= 2
    made = bracket(of, trials)
    assert made is not None
    assert (made.point, made.below, made.above) == (9, 9, 11)
    assert bracket(of, measured(of, 10.5, failing=set(range(LAST)))) is None


def test_infinite_values_are_beyond_the_limit_and_sure_only_in_all_rounds() -> None:
    of = search()
    final = [(5, 0.5)] * ROUNDS + [(6, 0.9), (6, 0.9), (6, 0.9), (6, math.inf)] + [(7, math.inf)] * ROUNDS
    made = bracket(of, [Measurement(point, 9, 1.0, share * LIMIT, is_final=True) for point, share in final])
    assert made is not None
    assert (made.point, made.below, made.above) == (5, 5, 7)


def test_the_budget_is_kept() -> None:
    assert len(measured(search(budget=32), 10.2, noise=0.5)) <= 32
