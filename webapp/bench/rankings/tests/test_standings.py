"""Order and leader of values with known truth."""

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.analysis.cells import Measured
from webapp.bench.rankings.standings import Lead, Standing, order_of
from webapp.bench.rankings.tests.values import a_value


def standings_of(*entries: Measured, lower_is_better: bool = False) -> dict[int, Standing]:
    order = order_of([[entry] for entry in entries], lower_is_better=lower_is_better)
    return {ranked.place: ranked.standing for ranked in order.ranked}


def test_a_leader_beyond_the_margin_is_claimed() -> None:
    order = order_of([[a_value(100, 101, 99)], [a_value(200, 201, 199, run=2)], [a_value(150, 151, 149, run=3)]])
    assert [ranked.place for ranked in order.ranked] == [1, 2, 0]
    assert order.lead is Lead.CLAIMED
    assert order.ranked[1].ratio
    assert order.ranked[1].ratio.value == pytest.approx(4 / 3, rel=1e-3)


def test_a_difference_within_the_margin_is_no_lead() -> None:
    order = order_of([[a_value(100, 100.1, 99.9, 100)], [a_value(103, 103.1, 102.9, 103, run=2)]])
    assert order.lead is Lead.NONE
    assert order.ranked[1].standing is Standing.LEVEL


def test_all_that_cannot_be_told_from_the_first_are_level_with_it() -> None:
    noisy, clear, first = a_value(90, 120, 100, run=2), a_value(50, 51, 49, run=3), a_value(110, 112, 111)
    assert standings_of(first, noisy, clear) == {0: Standing.FIRST, 1: Standing.LEVEL, 2: Standing.BEHIND}


@pytest.mark.parametrize("repeats", [1, 2])
def test_few_repeats_are_no_claim(repeats: int) -> None:
    order = order_of([[a_value(*[200.0, 201.0][:repeats])], [a_value(*[100.0, 101.0][:repeats], run=2)]])
    assert order.lead is Lead.SEEN
    assert order.ranked[1].standing is Standing.SEEN_BEHIND


def test_single_values_within_the_margin_are_level() -> None:
    assert standings_of(a_value(100), a_value(104, run=2)) == {1: Standing.FIRST, 0: Standing.LEVEL}


def test_of_latencies_the_lowest_is_first() -> None:
    found = standings_of(a_value(100, 101, 99), a_value(50, 51, 49, run=2), lower_is_better=True)
    assert found == {1: Standing.FIRST, 0: Standing.BEHIND}


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_a_value_of_0_is_last(*, lower_is_better: bool) -> None:
    found = standings_of(a_value(0, 0, 0), a_value(50, 51, 49, run=2), lower_is_better=lower_is_better)
    assert list(found) == [1, 0]


def test_an_entry_with_a_value_of_0_is_not_compared() -> None:
    order = order_of([[a_value(100, 101, 99, 100)], [a_value(0, 101, 99, 100, run=2)]])
    assert (order.ranked[1].standing, order.ranked[1].ratio) == (Standing.NOT_COMPARED, None)
    assert order.lead is Lead.NONE


def test_one_entry_leads_nobody() -> None:
    assert order_of([[a_value(1, 2, 3)]]).lead is Lead.ALONE


def test_a_leader_that_was_always_measured_later_may_be_drift() -> None:
    early, late = a_value(100, 101, 99), a_value(200, 201, 199, run=2)
    later = Measured(late.values, dict.fromkeys(late.values, 3600.0), 0.0, balanced=True)
    assert order_of([[early], [later]]).in_one_order


def test_the_true_best_is_rarely_passed_over_for_a_false_leader() -> None:
    """Six equal drives with noise of 10 %: any leader is false. At most 5 % of pages may name one."""
    noise = random.Random(7)
    pages = 400
    false = 0
    for _ in range(pages):
        entries = [[a_value(*(math.exp(noise.gauss(0, 0.1)) for _ in range(5)), run=run)] for run in range(6)]
        false += order_of(entries).lead is Lead.CLAIMED
    assert false <= 0.05 * pages


def test_a_true_leader_is_found() -> None:
    """20 % ahead with noise of 2 %: this page is for it."""
    noise = random.Random(8)

    def drawn(run: int, level: float) -> list[Measured]:
        return [a_value(*(level * math.exp(noise.gauss(0, 0.02)) for _ in range(5)), run=run)]

    found = [order_of([drawn(run, 1.2 if run == 3 else 1.0) for run in range(6)]) for _ in range(100)]
    assert sum(order.lead is Lead.CLAIMED and order.ranked[0].place == 3 for order in found) >= 95


rates = st.floats(1e-3, 1e7, allow_nan=False)
entries_of_rates = st.lists(st.lists(rates, min_size=1, max_size=4), min_size=1, max_size=7)


def _measured(lists: Sequence[Sequence[float]]) -> list[list[Measured]]:
    return [[a_value(*values, run=run)] for run, values in enumerate(lists)]


@given(entries_of_rates)
def test_values_are_sorted(lists: list[list[float]]) -> None:
    entries = _measured(lists)
    means = [entries[ranked.place][0].mean for ranked in order_of(entries).ranked]
    assert all(first >= second * (1 - 1e-12) for first, second in pairwise(means))
    assert sorted(ranked.place for ranked in order_of(entries).ranked) == list(range(len(lists)))


@given(entries_of_rates, st.randoms())
def test_the_given_order_does_not_matter(lists: list[list[float]], chance: random.Random) -> None:
    shuffled = list(range(len(lists)))
    chance.shuffle(shuffled)
    entries = _measured(lists)
    means = [entry[0].mean for entry in entries]
    if len(set(means)) < len(means):
        return  # equal values keep the order that was given
    again = order_of([entries[place] for place in shuffled])
    assert [shuffled[ranked.place] for ranked in again.ranked] == [ranked.place for ranked in order_of(entries).ranked]
    assert again.lead is order_of(entries).lead


@given(st.lists(st.lists(rates, min_size=3, max_size=4), min_size=2, max_size=5))
def test_a_leader_is_ahead_of_everybody_by_more_than_the_margin(lists: list[list[float]]) -> None:
    order = order_of(_measured(lists))
    if order.lead is Lead.CLAIMED:
        assert all(ranked.ratio and ranked.ratio.low and ranked.ratio.low > 1.05 for ranked in order.ranked[1:])
