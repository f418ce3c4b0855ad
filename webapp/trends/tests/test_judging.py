"""Verdicts row by row: at both sides of the tolerance, in both directions, with too little data."""

from collections.abc import Sequence

import pytest

from webapp.analysis.cells import BUCKET_WIDTH, Measured
from webapp.analysis.conclusions import ZERO
from webapp.analysis.verdicts import (
    COARSE,
    CONTAINS_LIMIT,
    MAY_BE_CHANCE,
    NO_VALUES,
    ONE_VALUE_EACH,
    ONLY_A_BOUND,
    Cells,
    Outcome,
    Row,
    judge,
    outcome_of,
)
from webapp.results.metrics import Missing
from webapp.trends.management.commands.simulate_trends import Case, outcomes
from worker.contract.packing import LAST_BUCKET_NS

IOPS, P99 = {"iops": 5.0}, {"latency_p99": 10.0}


def a_cell(run: int, *values: float, step: float = 1e-6) -> Measured:
    blocks = {(run, repeat): value for repeat, value in enumerate(values, 1)}
    return Measured(blocks, dict.fromkeys(blocks, 0.0), step, balanced=True)


def cells(run: int, *columns: Sequence[float]) -> Cells:
    return {(str(place), "read"): a_cell(run, *values) for place, values in enumerate(columns)}


def spread(level: float, share: float = 0.001) -> tuple[float, float, float]:
    return level * (1 - share), level, level * (1 + share)


def one_row(tolerances: dict[str, float], baseline: Sequence[float], run: Sequence[float]) -> Row:
    (metric,) = tolerances
    (row,) = judge({metric: cells(2, run)}, {metric: cells(1, baseline)}, tolerances)
    return row


@pytest.mark.parametrize(
    ("tolerances", "level", "outcome"),
    [
        (IOPS, 960, Outcome.PASSES),
        (IOPS, 950, Outcome.UNCLEAR),  # exactly at the limit
        (IOPS, 940, Outcome.FAILS),
        (IOPS, 2000, Outcome.PASSES),  # better by any amount
        (P99, 1090, Outcome.PASSES),
        (P99, 1100, Outcome.UNCLEAR),
        (P99, 1110, Outcome.FAILS),
        (P99, 500, Outcome.PASSES),
    ],
)
def test_the_limit_is_the_tolerance_for_the_worse(tolerances: dict[str, float], level: float, outcome: Outcome) -> None:
    row = one_row(tolerances, spread(1000), spread(level))
    assert row.outcome is outcome
    assert row.limit == pytest.approx(0.95 if tolerances is IOPS else 1.1)
    assert row.ratio is not None
    assert row.ratio.value == pytest.approx(level / 1000, rel=1e-3)


def test_the_value_divided_by_the_baselines_is_the_ratio() -> None:
    """The arithmetic mean of the run is higher than the baseline's, its ratio is below 1."""
    row = one_row(IOPS, (100, 100, 100), (60, 60, 250))
    assert row.ratio is not None
    assert row.baseline == pytest.approx(100)
    assert row.value == pytest.approx(100 * row.ratio.value)
    assert row.ratio.value < 1


def test_a_spread_larger_than_the_tolerance_is_unclear() -> None:
    row = one_row(IOPS, spread(1000, 0.1), spread(1000, 0.1))
    assert (row.outcome, row.why) == (Outcome.UNCLEAR, CONTAINS_LIMIT)


@pytest.mark.parametrize("repeats", [1, 2])
def test_too_few_repeats_are_unclear(repeats: int) -> None:
    row = one_row(IOPS, spread(1000), spread(500)[:repeats])
    assert row.outcome is Outcome.UNCLEAR
    assert row.why.startswith(f"{repeats} repeat")
    assert row.baseline == pytest.approx(1000)
    assert row.value == pytest.approx(500, rel=0.01)


@pytest.mark.parametrize(
    ("tolerances", "level", "outcome"),
    [
        (IOPS, 950, Outcome.PASSES),  # exactly at the limit
        (IOPS, 949.9, Outcome.FAILS),
        (IOPS, 2000, Outcome.PASSES),
        ({"iops": 18.0}, 820, Outcome.PASSES),  # 820 / 1000 is a little less than 1 - 18 / 100
        ({"latency_p99": 36.0}, 1360, Outcome.PASSES),
        (P99, 1100, Outcome.PASSES),
        (P99, 1100.1, Outcome.FAILS),
        (P99, 500, Outcome.PASSES),
    ],
)
def test_single_values_are_judged_by_the_tolerance_alone_if_asked(
    tolerances: dict[str, float], level: float, outcome: Outcome
) -> None:
    (metric,) = tolerances
    sides = {metric: cells(2, [level])}, {metric: cells(1, [1000])}
    assert [row.outcome for row in judge(*sides, tolerances)] == [Outcome.UNCLEAR]
    (row,) = judge(*sides, tolerances, single_values=True)
    assert (row.outcome, row.why, row.single_values) == (outcome, ONE_VALUE_EACH, True)
    assert row.ratio is not None
    assert row.ratio.value == pytest.approx(level / 1000)
    assert (row.ratio.low, row.ratio.high) == (None, None)


def test_with_single_values_the_interval_still_decides_where_both_sides_have_repeats() -> None:
    baseline, run = ([1000], spread(1000, 0.1), [1000], [1000]), ([900], spread(900, 0.1), spread(990), [0])
    mean, *rows = judge({"iops": cells(2, *run)}, {"iops": cells(1, *baseline)}, IOPS, single_values=True)
    assert (mean.cells, mean.outcome, mean.single_values) == (1, Outcome.UNCLEAR, False)
    assert [(row.outcome, row.why, row.single_values) for row in rows] == [
        (Outcome.FAILS, ONE_VALUE_EACH, True),
        (Outcome.UNCLEAR, CONTAINS_LIMIT, False),
        (Outcome.PASSES, "number of values: baseline 1, candidate 3; no interval", True),
        (Outcome.UNCLEAR, ZERO, False),
    ]


def test_single_values_have_no_mean_and_a_missing_one_is_unclear() -> None:
    rows = judge({"iops": cells(2, [1000])}, {"iops": cells(1, [1000], [2000])}, IOPS, single_values=True)
    assert [(row.cell, row.outcome, row.missing is Missing.NOT_MEASURED) for row in rows] == [
        (("0", "read"), Outcome.PASSES, False),
        (("1", "read"), Outcome.UNCLEAR, True),
    ]


def test_a_result_without_the_metric_is_told_from_none() -> None:
    rows = judge({"iops": {}}, {"iops": cells(1, spread(1000), spread(1000))}, IOPS, measured=[("0", "read")])
    assert [row.missing for row in rows] == [None, Missing.NO_VALUE, Missing.NOT_MEASURED]
    assert [row.why for row in rows[1:]] == ["no value", "not measured"]


def test_a_cell_without_a_value_is_unclear() -> None:
    missing, zero = judge(
        {"iops": {("1", "read"): a_cell(2, 0.0, 0.0, 0.0)}},
        {"iops": cells(1, spread(1000), spread(1000))},
        IOPS,
    )[1:]
    assert [missing.why, zero.why] == [Missing.NOT_MEASURED, ZERO]
    assert outcome_of([missing, zero]) is Outcome.UNCLEAR


def test_equal_coarse_values_do_not_pass_a_smaller_tolerance() -> None:
    """Percentiles come from buckets that are up to 1.6 % wide."""
    pair = ({"latency_p99": {("0", "read"): a_cell(run, 1000, 1000, 1000, step=1 / 64)}} for run in (2, 1))
    mine, theirs = pair
    assert judge(mine, theirs, {"latency_p99": 1.0})[0].outcome is Outcome.UNCLEAR
    assert judge(mine, theirs, {"latency_p99": 10.0})[0].outcome is Outcome.PASSES


def test_a_mean_over_the_cells_comes_first_and_fails_where_no_cell_alone_does() -> None:
    baseline, run = [spread(1000, 0.01)] * 14, [spread(915, 0.01)] * 14
    mean, *others = judge({"iops": cells(2, *run)}, {"iops": cells(1, *baseline)}, IOPS)
    assert (mean.cell, mean.cells, mean.outcome) == (None, 14, Outcome.FAILS)
    assert {row.outcome for row in others} == {Outcome.UNCLEAR}
    assert {row.why for row in others} <= {MAY_BE_CHANCE, CONTAINS_LIMIT}
    assert outcome_of([mean, *others]) is Outcome.FAILS


def test_a_run_passes_only_if_all_rows_pass() -> None:
    good, unclear = (one_row(IOPS, spread(1000), spread(level)) for level in (1000, 950))
    assert outcome_of([good, good]) is Outcome.PASSES
    assert outcome_of([good, unclear]) is Outcome.UNCLEAR
    assert outcome_of([]) is Outcome.UNCLEAR


def test_equal_runs_rarely_fail() -> None:
    """At the limit itself, at most 5 % fail: more than 18 of 200 with a probability below 0.5 %. Without a change, none
    do."""
    assert outcomes(Case(), pairs=200)[Outcome.FAILS] == 0
    assert outcomes(Case(repeats=5), pairs=200)[Outcome.PASSES] > 0.95
    assert outcomes(Case(loss=0.05), pairs=200)[Outcome.FAILS] <= 18 / 200
    assert outcomes(Case(loss=0.05), pairs=200)[Outcome.PASSES] == 0
    assert outcomes(Case(loss=0.10), pairs=50)[Outcome.FAILS] == 1


def test_a_metric_that_the_baseline_never_measured_is_unclear() -> None:
    same = {"iops": cells(1, spread(1000))}
    rows = judge(same, same, IOPS | P99)
    assert [(row.metric.key, row.outcome, row.why) for row in rows] == [
        ("iops", Outcome.PASSES, ""),
        ("latency_p99", Outcome.UNCLEAR, NO_VALUES),
    ]
    assert outcome_of(rows) is Outcome.UNCLEAR


@pytest.mark.parametrize("sides", [(10e9, LAST_BUCKET_NS), (LAST_BUCKET_NS, 10e9), (LAST_BUCKET_NS, LAST_BUCKET_NS)])
def test_a_single_percentile_above_the_histogram_is_unclear(sides: tuple[float, float]) -> None:
    """Its true value may be any above 17 s."""
    (row,) = judge(
        {"latency_p99": cells(2, sides[1:])},
        {"latency_p99": cells(1, sides[:1])},
        {"latency_p99": 100.0},
        single_values=True,
    )
    assert (row.outcome, row.why, row.ratio) == (Outcome.UNCLEAR, ONLY_A_BOUND, None)


def one_single_percentile(value: float, step: float) -> Row:
    """Against 1000 ns, with a tolerance of 10 %."""
    mine, theirs = ({("0", "read"): a_cell(run, one, step=step)} for run, one in ((2, value), (1, 1000)))
    (row,) = judge({"latency_p99": mine}, {"latency_p99": theirs}, P99, single_values=True)
    return row


@pytest.mark.parametrize(
    ("value", "outcome"), [(1080, "passes"), (1090, "unclear"), (1110, "unclear"), (1120, "fails")]
)
def test_a_single_percentile_within_a_step_of_the_histogram_is_unclear(value: float, outcome: str) -> None:
    row = one_single_percentile(value, step=BUCKET_WIDTH)
    assert (row.outcome, row.why) == (outcome, COARSE if outcome == "unclear" else ONE_VALUE_EACH)


def test_a_printed_percentile_counts_as_it_was_printed() -> None:
    assert one_single_percentile(1100, step=0.1).outcome is Outcome.PASSES
