"""A gradual change is found; chance makes one in at most 1 % of series, and 5 % if the values depend on each other."""

import math

import numpy as np
import pytest

from webapp.trends.drift import FALSE_ALARMS, MIN_RUNS, certain, drift
from webapp.trends.management.commands.simulate_trends import DRIFT_LENGTHS, false_drifts
from webapp.trends.steps import FALSE_ALARMS_DEPENDENT

INDEPENDENT, DEPENDENT = "normal", "each depends on the one before, r = 0.5"


@pytest.mark.parametrize("rate", [0.99, 0.98, 0.95])
@pytest.mark.parametrize("runs", [10, 30, 60])
def test_a_change_each_night_is_found_with_its_size(rate: float, runs: int) -> None:
    random = np.random.default_rng(1)
    line = drift([night * math.log(rate) + random.normal(0, 0.005) for night in range(runs)])
    assert line is not None
    assert line.chance < FALSE_ALARMS
    assert line.change == pytest.approx((runs - 1) * math.log(rate), abs=0.02)
    assert line.low < line.change < line.high < 0
    assert line.spread == pytest.approx(0.005, rel=0.6)


@pytest.mark.parametrize("runs", DRIFT_LENGTHS)
@pytest.mark.parametrize(("kind", "most"), [(INDEPENDENT, FALSE_ALARMS), (DEPENDENT, FALSE_ALARMS_DEPENDENT)])
def test_chance_makes_a_slope_at_most_at_the_stated_rate(kind: str, most: float, runs: int) -> None:
    assert false_drifts(kind, runs=runs, series=2000) <= most


@pytest.mark.parametrize("before", [10, 20])
def test_a_change_that_began_lately_is_found(before: int) -> None:
    random = np.random.default_rng(1)
    nights = [max(0, night - before) * math.log(0.98) + random.normal(0, 0.005) for night in range(before + 20)]
    found = certain(nights)
    assert found is not None
    assert found.runs < len(nights)
    assert found.change == pytest.approx((found.runs - 1) * math.log(0.98), abs=0.05)


def test_equal_values_have_no_slope_and_a_straight_line_is_certain() -> None:
    flat, straight = drift([1.0] * MIN_RUNS), drift([float(place) for place in range(MIN_RUNS)])
    assert flat is not None
    assert (flat.change, flat.low, flat.high, flat.chance) == (0, 0, 0, 1)
    assert straight is not None
    assert (round(straight.change, 9), straight.chance < 1e-9) == (MIN_RUNS - 1, True)
    assert drift([1.0] * (MIN_RUNS - 1)) is None
