"""Held against values worked out by hand and against SciPy's distributions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from webapp.compare.statistics import combined, ratio, student_t, summarise

positive = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=8)


def test_the_interval_of_a_mean_is_students() -> None:
    made = summarise([10.0, 12.0, 14.0])
    assert (made.n, made.mean, made.sd) == (3, 12.0, 2.0)
    # t(0.975, 2) = 4.302653 from the tables; 4.302653 * 2 / sqrt(3) = 4.968276
    assert made.low == pytest.approx(12 - 4.968276, abs=1e-5)
    assert made.high == pytest.approx(12 + 4.968276, abs=1e-5)


def test_one_value_has_no_spread_and_equal_values_have_none() -> None:
    alone = summarise([7.0])
    assert (alone.mean, alone.sd, alone.low, alone.high) == (7.0, None, None, None)
    equal = summarise([7.0, 7.0])
    assert (equal.sd, equal.low, equal.high) == (0.0, 7.0, 7.0)


@pytest.mark.parametrize("freedom", [1, 2, 3.7, 30, 1000])
def test_quantiles_are_those_of_scipy(freedom: float) -> None:
    assert student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_a_ratio_is_that_of_the_means_with_welchs_interval_of_its_logarithm() -> None:
    made = ratio(summarise([90.0, 100.0, 110.0]), summarise([49.0, 50.0, 51.0]))
    assert made is not None
    # var = 10^2/(3*100^2) + 1^2/(3*50^2) = 0.00333333 + 0.00013333; freedom = var^2 / (v1^2/2 + v2^2/2)
    v1, v2 = 100 / 30000, 1 / 7500
    freedom = (v1 + v2) ** 2 / (v1**2 / 2 + v2**2 / 2)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(v1 + v2)
    assert freedom == pytest.approx(2.1599, abs=1e-3)
    assert made.value == pytest.approx(2.0)
    assert made.low == pytest.approx(2 * math.exp(-half))
    assert made.high == pytest.approx(2 * math.exp(half))
    assert made.resolved


def test_without_repeats_on_both_sides_a_ratio_has_no_interval() -> None:
    made = ratio(summarise([30.0]), summarise([10.0, 11.0, 9.0]))
    assert made is not None
    assert (made.value, made.low, made.high, made.resolved, made.resolution) == (3.0, None, None, False, None)


def test_there_is_no_ratio_to_nothing() -> None:
    assert ratio(summarise([1.0, 2.0]), summarise([0.0, 0.0])) is None
    nothing = ratio(summarise([0.0, 0.0]), summarise([1.0, 2.0]))
    assert nothing is not None
    assert (nothing.value, nothing.low) == (0.0, None)


def test_what_does_not_vary_is_exact() -> None:
    made = ratio(summarise([2.0, 2.0]), summarise([4.0, 4.0]))
    assert made is not None
    assert (made.value, made.low, made.high) == pytest.approx((0.5, 0.5, 0.5))


def test_places_are_combined_by_their_geometric_mean() -> None:
    one = (summarise([19.0, 20.0, 21.0]), summarise([10.0, 10.0, 10.0]))
    two = (summarise([7.6, 8.0, 8.4]), summarise([1.0, 1.0, 1.0]))
    made = combined([one, two])
    assert made is not None
    assert made.value == pytest.approx(4.0)
    # each ln has variance 0.05^2/3 with 2 degrees of freedom; of their mean 2 * that / 4, with 4
    half = stats.t.ppf(0.975, 4) * math.sqrt(0.0025 / 3 / 2)
    assert made.low == pytest.approx(4 * math.exp(-half))
    assert combined([one, (summarise([1.0]), two[1])]) is None
    assert combined([]) is None


def test_the_resolution_is_half_the_width_of_the_interval() -> None:
    made = ratio(summarise([90.0, 100.0, 110.0]), summarise([90.0, 100.0, 110.0]))
    assert made is not None
    assert not made.resolved
    assert made.high == pytest.approx(1 + made.resolution)  # type: ignore[operator]


@given(positive, positive)
def test_turning_a_ratio_round_turns_its_interval_round(one: list[float], other: list[float]) -> None:
    there, back = ratio(summarise(one), summarise(other)), ratio(summarise(other), summarise(one))
    assert there is not None
    assert back is not None
    assert there.value == pytest.approx(1 / back.value)
    assert there.low is not None
    assert there.high is not None
    assert there.low <= there.value * (1 + 1e-9)
    if back.high is not None and math.isfinite(back.high) and there.low > 1e-300:
        assert there.low == pytest.approx(1 / back.high)


def test_the_interval_covers_the_true_ratio_about_as_often_as_it_says() -> None:
    """4,000 experiments of three repeats each with a spread of 5 % and 10 %, seed fixed."""
    import numpy

    chance = numpy.random.default_rng(1)
    hits = 0
    for _ in range(4000):
        made = ratio(summarise(list(chance.normal(200, 10, 3))), summarise(list(chance.normal(100, 10, 3))))
        assert made is not None
        assert made.low is not None
        assert made.high is not None
        hits += made.low <= 2 <= made.high
    assert 0.93 < hits / 4000 < 0.985
