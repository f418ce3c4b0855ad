"""Checked against values computed by hand and against SciPy's distributions and tests."""

import math

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from webapp.analysis.cells import Block, Measured
from webapp.analysis.claims import (
    Contrast,
    ContrastTest,
    claims,
    contrast,
    holm,
    pooled_freedom,
    same_order,
    within_variance,
)
from webapp.core.statistics import student_t, summarise

positive = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=8)


def cell(*values: float, run: int = 1, step: float = 1e-9, at: float = 0.0) -> Measured:
    """One block for each value."""
    blocks: list[Block] = [(run, repeat) for repeat in range(1, len(values) + 1)]
    times = {block: 1000.0 * block[0] + 10 * block[1] + at for block in blocks}
    return Measured(dict(zip(blocks, values, strict=True)), times, step, balanced=True)


def test_a_ratio_is_computed_once() -> None:
    made = contrast([(cell(9.0, 10.0, 11.0), cell(5.0, 6.0, 7.0))])
    assert made.ratio is made.ratio


def test_the_interval_of_a_mean_is_students_for_its_logarithm() -> None:
    """t(0.975, 2) = 4.302653 from the tables; the logarithms are -ln 2, 0 and ln 2."""
    made = summarise([50.0, 100.0, 200.0])
    assert (made.n, made.mean, made.sd) == pytest.approx((3, 100.0, 76.3763))
    half = 4.302653 * math.log(2) / 3**0.5
    assert (made.low, made.high) == pytest.approx((100 * math.exp(-half), 100 * math.exp(half)), rel=1e-6)


def test_a_mean_leaves_zeros_out_and_has_no_interval() -> None:
    made = summarise([0.0, 50.0, 200.0])
    assert (made.n, made.low, made.high) == (3, None, None)
    assert made.mean == pytest.approx(100.0)
    assert summarise([0.0, 0.0]).mean == 0
    assert summarise([-10.0, 30.0]).mean == 10.0  # degrees, not a rate


@given(positive)
def test_no_interval_reaches_zero(values: list[float]) -> None:
    made = summarise(values)
    assert made.low is not None
    assert made.low >= 0
    assert made.low <= made.mean


def test_one_value_has_no_spread_and_equal_values_have_that_of_their_step() -> None:
    alone = summarise([7.0])
    assert (alone.mean, alone.sd, alone.low, alone.high) == (7.0, None, None, None)
    equal = summarise([7.0, 7.0], step=0.02)
    assert (equal.sd, equal.low, equal.high) == (0.0, 7 * math.exp(-0.01), 7 * math.exp(0.01))
    nothing = summarise([0.0, 0.0])
    assert (nothing.mean, nothing.low, nothing.high) == (0.0, None, None)


@pytest.mark.parametrize("freedom", [1, 2, 3.7, 30, 1000])
def test_quantiles_are_those_of_scipy(freedom: float) -> None:
    assert student_t(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-9)


def test_series_of_one_run_are_compared_in_pairs() -> None:
    one, other = (90.0, 100.0, 115.0), (49.0, 50.0, 51.0)
    made = contrast([(cell(*one), cell(*other))])
    known = scipy.stats.ttest_rel([math.log(v) for v in one], [math.log(v) for v in other])
    assert made.p_different() == pytest.approx(known.pvalue)
    interval = known.confidence_interval()
    assert (made.ratio.low, made.ratio.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    assert (made.n, made.freedom) == (3, 2)


def test_series_of_two_runs_have_welchs_interval() -> None:
    one, other = (90.0, 100.0, 115.0), (49.0, 50.0, 51.0, 52.0)
    made = contrast([(cell(*one), cell(*other, run=2))])
    known = scipy.stats.ttest_ind([math.log(v) for v in one], [math.log(v) for v in other], equal_var=False)
    assert made.p_different() == pytest.approx(known.pvalue)
    assert made.freedom == pytest.approx(known.df)
    assert made.n == 3


def test_with_three_runs_on_each_side_a_run_is_one_observation() -> None:
    def runs(*means: float, first: int) -> Measured:
        cells = [cell(mean, mean * 1.01, run=first + n) for n, mean in enumerate(means)]
        values = {block: value for one in cells for block, value in one.values.items()}
        return Measured(values, dict.fromkeys(values, 0.0), 1e-9, balanced=True)

    made = contrast([(runs(90.0, 100.0, 115.0, first=1), runs(49.0, 50.0, 51.0, first=4))])
    known = scipy.stats.ttest_ind(
        [math.log(v) for v in (90.0, 100.0, 115.0)], [math.log(v) for v in (49.0, 50.0, 51.0)], equal_var=False
    )
    assert made.p_different() == pytest.approx(known.pvalue)
    assert made.n == 3


def test_a_block_is_one_observation_however_many_points_it_has() -> None:
    """Every point has the same noise, so fourteen points know no more than one."""
    one, other = cell(90.0, 100.0, 115.0), cell(50.0, 50.0, 50.0)
    alone, many = contrast([(one, other)]), contrast([(one, other)] * 14)
    assert (many.value, many.variance, many.freedom) == pytest.approx((alone.value, alone.variance, alone.freedom))
    assert pooled_freedom([alone] * 14, many) == pytest.approx(2)
    assert within_variance([alone] * 14, many) == pytest.approx(0, abs=1e-12)


def test_points_with_noise_of_their_own_share_their_degrees_of_freedom() -> None:
    base = cell(100.0, 100.0, 100.0)
    pairs = [(cell(90.0, 100.0, 110.0), base), (cell(110.0, 100.0, 90.0), base)]
    points = [contrast([pair]) for pair in pairs]
    mean = contrast(pairs)
    assert mean.variance < points[0].variance / 10
    assert within_variance(points, mean) > points[0].variance
    assert 2 <= pooled_freedom(points, mean) <= 4


def test_a_larger_own_variance_keeps_the_freedom_that_the_pooled_part_lends_it() -> None:
    quiet = Contrast(value=0.05, variance=1.0, freedom=2, n=3, step=1e-9).at_least(4.0, 10)
    assert (quiet.variance, quiet.freedom) == (4.0, 10)
    noisy = Contrast(value=0.05, variance=8.0, freedom=2, n=3, step=1e-9).at_least(4.0, 10)
    # 8 is the sum of 4 with 10 degrees of freedom and of 4 with 2: 64 / (16 / 10 + 16 / 2)
    assert noisy.variance == 8.0
    assert noisy.freedom == pytest.approx(64 / 9.6)


def test_a_repeat_that_failed_on_one_side_still_counts_on_the_other() -> None:
    """The ratio is that of the means that pages show. The repeat without a partner widens the interval."""
    full, missing = cell(90.0, 100.0, 110.0, 105.0), cell(45.0, 50.0, 55.0)
    made, pairs = contrast([(full, missing)]), contrast([(cell(90.0, 100.0, 110.0), missing)])
    assert math.exp(made.value) == pytest.approx(full.mean / missing.mean)
    assert (made.n, made.freedom) == (pairs.n, pairs.freedom) == (3, 2)
    assert made.variance > 100 * pairs.variance


def test_without_repeats_a_ratio_has_no_interval() -> None:
    made = contrast([(cell(30.0), cell(10.0, 11.0, 9.0, run=2))])
    ratio = made.ratio
    assert ratio.value == pytest.approx(3.01, abs=0.01)
    assert (ratio.low, ratio.high, made.n) == (None, None, 1)
    assert (made.p_different(), made.p_unequal(0.05)) == (1.0, 1.0)


def test_equal_values_of_coarse_steps_are_not_exact() -> None:
    """A percentile is a bucket: two equal ones may differ by a bucket, and neighbours may be equal."""
    same = contrast([(cell(2.0, 2.0, 2.0, step=1 / 64), cell(2.0, 2.0, 2.0))]).ratio
    assert same.low is not None
    assert same.high is not None
    assert same.low <= math.exp(-1 / 64) < math.exp(1 / 64) <= same.high
    neighbours = contrast([(cell(2.03, 2.03, 2.03, step=1 / 64), cell(2.0, 2.0, 2.0))])
    assert neighbours.p_different() == 1.0


def test_points_are_combined_by_their_geometric_mean() -> None:
    pairs = [(cell(20.0, 20.0), cell(10.0, 10.0)), (cell(8.0, 8.0), cell(1.0, 1.0))]
    assert contrast(pairs).ratio.value == pytest.approx(4.0)


@given(positive, positive)
def test_exchanging_the_series_inverts_the_interval(one: list[float], other: list[float]) -> None:
    there, back = contrast([(cell(*one), cell(*other))]).ratio, contrast([(cell(*other), cell(*one))]).ratio
    assert there.value == pytest.approx(1 / back.value)
    assert there.low is not None
    assert back.high is not None
    if math.isfinite(back.high) and there.low > 1e-300:
        assert there.low == pytest.approx(1 / back.high)


def test_equivalence_is_two_one_sided_tests() -> None:
    made = Contrast(value=0.01, variance=0.01**2, freedom=4, n=5, step=1e-9)
    upper = scipy.stats.t.sf((math.log(1.05) - 0.01) / 0.01, 4)
    lower = scipy.stats.t.sf((math.log(1.05) + 0.01) / 0.01, 4)
    assert made.p_unequal(0.05) == pytest.approx(max(upper, lower))
    assert made.p_unequal(0.005) == 1.0


def test_holm_corrects_each_p_value_for_those_that_are_left() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_same_difference_is_claimed_alone_but_not_among_many() -> None:
    made = Contrast(value=0.05, variance=0.014**2, freedom=4, n=5, step=1e-9)
    noise = Contrast(value=0.001, variance=0.014**2, freedom=4, n=5, step=1e-9)
    alone, *_ = claims([ContrastTest(made, made)], 0.05)
    among, *_ = claims([ContrastTest(made, made), *[ContrastTest(noise, noise)] * 13], 0.05)
    assert (alone.different, among.different) == (True, False)


def test_two_blocks_claim_nothing() -> None:
    made = Contrast(value=1.0, variance=1e-12, freedom=1, n=2, step=1e-9)
    (claim,) = claims([ContrastTest(made, made)], 0.05)
    assert (claim.different, claim.equal) == (False, False)


def test_the_same_order_in_every_block_is_seen() -> None:
    first, second = cell(1.0, 1.0), cell(1.0, 1.0, at=1.0)
    assert (same_order([(second, first)]), same_order([(first, second)])) == ("after", "before")
    turned = Measured(second.values, {block: at - 2 * (block[1] == 2) for block, at in second.at.items()}, 1e-9, True)
    assert same_order([(turned, first)]) == ""
    assert same_order([(cell(1.0, run=2), first)]) == "after"
    assert same_order([(cell(1.0), cell(1.0))]) == ""


def test_a_block_in_which_both_series_lead_about_equally_has_no_order() -> None:
    """A series that is 10 s before at one point and 9 s after at the next one meets the same drift."""

    def at(*seconds: float) -> Measured:
        blocks = [(1, repeat) for repeat in range(len(seconds))]
        return Measured(dict.fromkeys(blocks, 1.0), dict(zip(blocks, seconds, strict=True)), step=0.0, balanced=True)

    baseline = at(0.0, 100.0)
    assert same_order([(at(-10.0, 90.0), baseline), (at(9.0, 109.0), baseline)]) == ""
    assert same_order([(at(-10.0, 90.0), baseline), (at(-9.0, 91.0), baseline)]) == "before"
