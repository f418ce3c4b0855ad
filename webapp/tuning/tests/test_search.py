"""A search on a small grid, with simulated measurements."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from webapp.tuning.search import (
    COSTLY_CHANGES,
    ROUNDS,
    Batch,
    Measurement,
    NothingMeasured,
    Search,
    conclude,
    next_batch,
)
from webapp.tuning.surface import Factor

FACTORS = (
    Factor("iodepth", 6, (0, 1, 2, 3, 4, 5)), Factor("scheduler", 3), Factor("layout", 4, costly=True),
)  # fmt: skip
SEARCH = Search(FACTORS, budget=48, seed=3)
SHAPE = SEARCH.shape
BEST = (4, 1, 2)
Measure = Callable[[int, np.random.Generator], tuple[float | None, float | None]]


def number_of(*levels: int) -> int:
    return int(np.ravel_multi_index(levels, SHAPE))


def rate(point: int) -> float:
    """Highest at BEST: 1,000."""
    depth, scheduler, layout = np.unravel_index(point, SHAPE)
    return 1000 * math.exp(-0.05 * (int(depth) - 4) ** 2 - 0.2 * (scheduler != 1) - 0.15 * (layout != 2))


def noisy(point: int, chance: np.random.Generator) -> tuple[float | None, float | None]:
    """The rate, and a latency that grows with the depth: 1 at depth 0, 6 at depth 5."""
    value, latency = np.exp(0.01 * chance.standard_normal(2)) * (rate(point), 1 + np.unravel_index(point, SHAPE)[0])
    return float(value), float(latency)


@cache
def searched(search: Search, measure: Measure = noisy) -> tuple[Measurement, ...]:
    chance = np.random.default_rng(search.seed)
    measurements: list[Measurement] = []
    while (batch := next_batch(search, measurements)).points:
        number = 1 + max((each.batch for each in measurements), default=-1)
        measurements += [Measurement(point, number, *measure(point, chance), batch.is_final) for point in batch.points]
    return tuple(measurements)


def test_it_finds_the_best_combination_and_spends_the_budget() -> None:
    measurements = searched(SEARCH)
    conclusion = conclude(SEARCH, measurements)
    assert len(measurements) == SEARCH.budget
    assert conclusion.point == number_of(*BEST)
    assert conclusion.value == pytest.approx(1000, rel=0.02)
    assert conclusion.bound < 0.05
    assert conclusion.within == 1


def test_it_finds_the_lowest_value() -> None:
    search = replace(SEARCH, highest=False)
    measurements = searched(search, lambda point, chance: (1e6 / (noisy(point, chance)[0] or 1), None))
    conclusion = conclude(search, measurements)
    assert conclusion.point == number_of(*BEST)
    assert all(effect.ratio > 1 for effect in conclusion.effects)
    assert all(runner_up.ratio > 1 for runner_up in conclusion.runners_up)


def test_it_stays_within_the_limit() -> None:
    search = replace(SEARCH, limit=3.5)  # depths 0 to 2
    conclusion = conclude(search, searched(search))
    assert conclusion.point == number_of(2, 1, 2)
    assert conclusion.within > 0.95


def test_if_nothing_is_within_the_limit_the_answer_says_so() -> None:
    search = replace(SEARCH, limit=0.5)
    conclusion = conclude(search, searched(search))
    assert np.unravel_index(conclusion.point, SHAPE)[0] == 0
    assert conclusion.within < 0.05
    assert conclusion.bound == 0


def test_the_same_measurements_give_the_same_batch_and_answer() -> None:
    measurements = searched(SEARCH)
    for batch in range(1 + measurements[-1].batch):
        before = [each for each in measurements if each.batch < batch]
        here = [each for each in measurements if each.batch == batch]
        assert next_batch(SEARCH, before) == Batch(tuple(each.point for each in here), here[0].is_final)
    assert conclude(SEARCH, measurements) == conclude(SEARCH, measurements)
    assert searched(replace(SEARCH, seed=4)) != measurements


def test_the_first_batch_has_each_level_about_equally_often() -> None:
    first = next_batch(SEARCH, []).points
    for levels, count in zip(np.unravel_index(first, SHAPE), SHAPE, strict=True):
        assert np.bincount(levels, minlength=count).min() >= len(first) // count - 2
    assert len(set(first)) < len(first)


def test_the_finalists_are_measured_in_rounds() -> None:
    measurements = searched(SEARCH)
    final = [each.point for each in measurements if each.is_final]
    assert len(final) == ROUNDS * SEARCH.finalists
    assert Counter(final) == dict.fromkeys(final, ROUNDS)
    rounds = [final[start : start + SEARCH.finalists] for start in range(0, len(final), SEARCH.finalists)]
    assert all(set(each) == set(final) for each in rounds)


def test_costly_levels_change_rarely_within_a_batch() -> None:
    measurements = searched(replace(SEARCH, budget=96))
    for batch in range(1, measurements[-1].batch):
        layouts = [np.unravel_index(each.point, SHAPE)[2] for each in measurements if each.batch == batch]
        assert sum(before != after for before, after in pairwise(layouts)) < COSTLY_CHANGES


def test_only_allowed_combinations_are_measured() -> None:
    allowed = tuple(point for point in range(math.prod(SHAPE)) if np.unravel_index(point, SHAPE)[0] != BEST[0])
    search = replace(SEARCH, allowed=allowed)
    measurements = searched(search)
    conclusion = conclude(search, measurements)
    assert {each.point for each in measurements} <= set(allowed)
    assert conclusion.point in (number_of(3, 1, 2), number_of(5, 1, 2))
    assert ("iodepth", BEST[0]) not in [(effect.factor, effect.level) for effect in conclusion.effects]


def test_a_combination_that_failed_is_not_measured_in_a_later_batch() -> None:
    def fails_at_best(point: int, chance: np.random.Generator) -> tuple[float | None, float | None]:
        return (None, None) if point == number_of(*BEST) else noisy(point, chance)

    measurements = searched(SEARCH, fails_at_best)
    assert len({each.batch for each in measurements if each.value is None}) == 1
    assert conclude(SEARCH, measurements).point != number_of(*BEST)


def test_a_finalist_that_failed_in_one_round_is_not_the_best() -> None:
    measurements = [*searched(SEARCH)]
    last = max(place for place, each in enumerate(measurements) if each.point == number_of(*BEST))
    measurements[last] = replace(measurements[last], value=None)
    conclusion = conclude(SEARCH, measurements)
    assert number_of(*BEST) not in (conclusion.point, *[each.point for each in conclusion.runners_up])


def test_if_every_trial_fails_the_search_ends_without_an_answer() -> None:
    measurements = searched(SEARCH, lambda _point, _chance: (None, None))
    assert len(measurements) < SEARCH.budget
    with pytest.raises(NothingMeasured):
        conclude(SEARCH, measurements)


def test_runners_up_and_effects_are_compared_with_the_best() -> None:
    conclusion = conclude(SEARCH, searched(SEARCH))
    for runner_up in conclusion.runners_up:
        assert runner_up.low <= rate(runner_up.point) / 1000 <= runner_up.high
    effects = {(effect.factor, effect.level): effect for effect in conclusion.effects}
    assert len(effects) == sum(SHAPE) - len(SHAPE)
    layout = effects["layout", 0]
    assert layout.low <= math.exp(-0.15) <= layout.high < 1


def test_one_combination_is_refused() -> None:
    with pytest.raises(ValueError, match="two combinations"):
        replace(SEARCH, allowed=(5,))


@pytest.mark.parametrize("ended", [10, 30])
def test_a_budget_that_was_lowered_leaves_room_for_final_rounds(ended: int) -> None:
    """As if there were time for so many trials only."""
    measurements = list(searched(SEARCH)[:ended])
    lowered = replace(SEARCH, budget=ended + 2 * ROUNDS)
    final = next_batch(lowered, measurements)
    assert final.is_final
    assert set(Counter(final.points).values()) == {ROUNDS}
    assert len(final.points) == 2 * ROUNDS
    measurements += [Measurement(point, 99, rate(point), None, is_final=True) for point in final.points]
    assert next_batch(SEARCH, measurements) == Batch()
    assert conclude(SEARCH, measurements).point in final.points
