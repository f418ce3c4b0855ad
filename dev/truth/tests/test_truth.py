"""The short form of `make truth-statistics`: fewer pages and scenarios, the same limits."""

from itertools import product

import pytest

from dev.truth.measure import MAX_FALSE_HEADLINES, MAX_FALSE_PAGES, NOISES, false_claims, figures
from dev.truth.pages import Scenario
from webapp.plans.document import Order

SEED, PAGES = 7, 40
ORDERS = (("scheduler", Order.RANDOMISED), ("ioengine", Order.RANDOMISED), ("scheduler", Order.LISTED))


@pytest.mark.parametrize(("factor", "order"), ORDERS)
def test_where_nothing_differs_few_pages_claim_a_difference(factor: str, order: Order) -> None:
    shapes = product(NOISES, ((3, 4, 2), (4, 1, 3)))
    scenarios = [Scenario(noise, *shape, factor, order) for noise, shape in shapes]
    found = [false_claims(scenario, PAGES, SEED) for scenario in scenarios]
    assert [one for one in found if not one.ok] == []
    pages = sum(one.pages for one in found)
    assert sum(one.false_pages for one in found) <= MAX_FALSE_PAGES * pages
    assert sum(one.false_headlines for one in found) <= MAX_FALSE_HEADLINES * pages


def test_two_repeats_claim_nothing() -> None:
    found = [false_claims(Scenario(noise, 2, 4), PAGES, SEED) for noise in ("bimodal", "bucketed", "shared")]
    assert [(one.false_pages, one.false_headlines) for one in found] == [(0, 0)] * 3


def test_intervals_cover_and_true_differences_and_equalities_are_found() -> None:
    assert [one for one in figures(150, SEED) if not one.ok] == []
