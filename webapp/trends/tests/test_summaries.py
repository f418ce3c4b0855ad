"""Stored summaries of trends: what they say, and when they are made again."""

import pytest

from webapp.results.models import Result, known
from webapp.results.validity import mark_trial
from webapp.tests.factories.hosts import a_target
from webapp.trends.models import TrendSummary
from webapp.trends.summaries import SHOWN_RUNS, State, Summary, make_due, summaries, worst_by_target
from webapp.trends.tests.measuring import Nights
from worker.contract.steadiness import Verdict


def only() -> Summary:
    make_due(60)
    [row] = summaries()
    return row.summary


def test_a_step_to_lower_iops_is_slower_and_names_what_changed(nights: Nights) -> None:
    for _ in range(8):
        nights.run(1000.0, facts={"kernel.release": "6.1"})
    for _ in range(5):
        nights.run(800.0, facts={"kernel.release": "6.12"})
    summary = only()
    assert summary.state is State.SLOWER
    assert summary.step is not None
    assert summary.step.run == 8
    assert not summary.step.better
    assert summary.step.ratio == pytest.approx(0.8, abs=0.01)
    assert len(summary.step.changed) == 1
    assert summary.ratios[-1] == pytest.approx(0.8, abs=0.02)
    assert summary.spread is not None
    assert summary.spread < 0.02


def test_few_runs_are_no_trend_and_equal_ones_are_steady(nights: Nights) -> None:
    nights.run(1000.0)
    assert only().state is State.SHORT
    for _ in range(13):
        nights.run(1000.0)
    summary = only()
    assert summary.state is State.STEADY
    assert summary.step is None
    assert len(summary.values) == 14


@pytest.mark.parametrize(("newest", "state"), [
    (700.0, State.WORSE), (960.0, State.UNCERTAIN), (1400.0, State.UNCERTAIN),
])  # fmt: skip
def test_the_newest_run_alone_may_be_worse(nights: Nights, newest: float, state: State) -> None:
    """Less than 5 % is no fall, and what is better needs nobody."""
    for _ in range(13):
        nights.run(1000.0, facts={"kernel.release": "6.1"})
    nights.run(newest, facts={"kernel.release": "6.12"})
    summary = only()
    assert summary.state is state
    assert (summary.step is not None) is (state is State.WORSE)
    if summary.step:
        assert (summary.step.run, len(summary.step.changed)) == (13, 1)
        assert summary.step.ratio == pytest.approx(0.7, abs=0.02)


def test_a_fall_within_the_spread_of_the_runs_is_none(nights: Nights) -> None:
    for place in range(14):
        nights.run(1000.0 * (1.2 if place % 2 else 0.8))
    nights.run(750.0)
    assert only().state is State.UNCERTAIN


@pytest.mark.parametrize("rate", [0.99, 0.98, 0.95])
def test_a_gradual_loss_is_slower_by_the_whole_loss(nights: Nights, rate: float) -> None:
    for night in range(30):
        nights.run(100_000 * rate**night, spread=0.005)
    summary = only()
    assert summary.state is State.SLOWER
    assert summary.step is not None
    assert (summary.step.over, summary.step.run, summary.step.better) == (30, 0, False)
    assert summary.step.ratio == pytest.approx(rate**29, rel=0.03)
    assert summary.level == pytest.approx(100_000, rel=0.02)
    assert summary.spread is not None
    assert summary.spread < 0.01


def test_a_gradual_loss_since_a_gain_counts(nights: Nights) -> None:
    for night in range(24):
        nights.run(1000.0 if night < 8 else 2000 * 0.99 ** (night - 8), spread=0.005)
    summary = only()
    assert summary.state is State.SLOWER
    assert summary.step is not None
    assert (summary.step.run, summary.step.over) == (5, 16)


def test_a_small_gradual_change_is_none(nights: Nights) -> None:
    for night in range(20):
        nights.run(1000 * 0.999**night, spread=0.001)
    assert only().state is State.STEADY


def test_a_step_before_the_shown_runs_is_the_level(nights: Nights) -> None:
    for _ in range(8):
        nights.run(1000.0)
    for _ in range(SHOWN_RUNS + 1):
        nights.run(1200.0)
    summary = only()
    assert summary.state is State.STEADY
    assert summary.level == pytest.approx(1200, rel=0.01)
    assert len(summary.values) == SHOWN_RUNS


def test_a_stall_of_the_newest_run_is_more_serious_than_a_step(nights: Nights) -> None:
    nights.run(1000.0)
    newest = nights.run(1000.0)
    Result.objects.filter(pk__in=newest.results.values("pk")[:1]).update(steadiness=Verdict.STALLED)
    assert only().state is State.FROZE


def test_it_is_made_again_for_a_new_run_and_after_a_mark(nights: Nights) -> None:
    run = nights.run(1000.0)
    assert make_due(60) == 1
    assert make_due(60) == 0
    nights.run(1000.0)
    assert make_due(60) == 1
    mark_trial(trial=known(run.results.order_by("pk")[0].trial), reason="x", by=None)
    assert make_due(60) == 1
    assert make_due(60) == 0


def test_a_fault_is_logged_once_and_the_trend_left_out(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ArithmeticError

    nights.run(1000.0)
    monkeypatch.setattr("webapp.trends.summaries.summarise", broken)
    assert make_due(60) == 1
    assert make_due(60) == 0
    assert TrendSummary.objects.count() == 1
    assert summaries() == []


def test_of_several_plans_the_worst_trend_counts(nights: Nights) -> None:
    for level in (1000.0,) * 8 + (700.0,) * 5:
        nights.run(level)
    other = Nights(nights.version, a_target(nights.target.host, "other"), count=nights.count)
    other.run(500.0)
    make_due(60)
    rows = summaries()
    worst = worst_by_target([*rows, *rows])
    assert [(row.target.slug, row.summary.state) for row in worst] == [
        ("other", State.SHORT),
        ("scratch", State.SLOWER),
    ]
