"""Baseline runs in the database: who is judged by what, and when an outcome is computed again."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.analysis.verdicts import Outcome
from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, User
from webapp.results.models import Result, known
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.trends.models import Baseline
from webapp.trends.selectors import outcomes_on, verdicts_on
from webapp.trends.services import remove_baseline, set_baseline
from webapp.trends.tests.measuring import Nights

TOLERANCES = {"iops": 5.0}


@pytest.fixture
def olga(db: None) -> User:
    return a_user("olga")


@pytest.fixture
def baseline(nights: Nights, olga: User) -> Baseline:
    """Run 2; run 1 is earlier."""
    nights.run(1000, 4000)
    run = nights.run(1000, 4000)
    return set_baseline(run=run, target=nights.target, tolerances=TOLERANCES, by=olga)


def outcome(run: Run) -> Outcome | None:
    return outcomes_on([run]).get(run.pk)


def test_later_runs_are_judged_by_it(baseline: Baseline, nights: Nights) -> None:
    same, slower = nights.run(1000, 4000), nights.run(1000, 3000)
    assert (outcome(same), outcome(slower)) == (Outcome.PASSES, Outcome.FAILS)
    (verdict,) = verdicts_on(slower)
    assert verdict.counts == {Outcome.FAILS: 2, Outcome.UNCLEAR: 0, Outcome.PASSES: 1}  # the mean and one cell
    assert verdict.new_cells == 0


def test_at_a_target_its_own_verdict_counts(baseline: Baseline, nights: Nights) -> None:
    other = a_target(nights.target.host, "other")
    lab = nights.lab()
    lab.run.targets.add(other)
    for target, level in ((nights.target, 1000), (other, 700)):
        for depth, factor in ((1, 1), (2, 4)):
            lab.measure(level * factor, level * factor, level * factor, iodepth=depth, target=target)
    first = known(baseline.run)
    first.targets.add(other)
    Baseline.objects.create(plan=baseline.plan, target=other, run=first, tolerances=TOLERANCES)
    assert outcomes_on([lab.run], nights.target) == {lab.run.pk: Outcome.PASSES}
    assert outcomes_on([lab.run]) != {lab.run.pk: Outcome.PASSES}


def test_earlier_runs_open_runs_and_itself_are_not_judged(baseline: Baseline, nights: Nights) -> None:
    Run.objects.filter(pk=nights.run(500).pk).update(state=RunState.RUNNING)
    assert outcomes_on(list(Run.objects.select_related("version"))) == {}
    assert [verdicts_on(run) for run in Run.objects.all()] == [[], [], []]


def test_a_cell_that_was_not_measured_is_unclear(baseline: Baseline, nights: Nights) -> None:
    run = nights.run(1000)
    assert outcome(run) is Outcome.UNCLEAR


def test_an_outcome_follows_invalid_results_and_new_tolerances(baseline: Baseline, nights: Nights, olga: User) -> None:
    run = nights.run(1000, 3000)
    assert outcome(run) is Outcome.FAILS
    Result.objects.filter(run=run, point__iodepth=2).update(invalid=True)
    assert outcome(run) is Outcome.UNCLEAR
    Result.objects.filter(run=run).update(invalid=False)
    set_baseline(run=known(baseline.run), target=nights.target, tolerances={"iops": 50.0}, by=olga)
    assert outcome(run) is Outcome.PASSES
    assert Baseline.objects.count() == 1


def test_an_outcome_follows_other_invalid_results_of_the_same_number_and_sum_of_ids(
    baseline: Baseline, nights: Nights
) -> None:
    lab = nights.lab()
    lab.measure(1000, 500, 501, 1, 1001, 1002, 502, iodepth=1)
    lab.measure(4000, 4001, 4002, iodepth=2)
    ids = sorted(Result.objects.filter(run=lab.run, point__iodepth=1).values_list("pk", flat=True))
    outcomes = []
    for valid in ((0, 4, 5), (1, 2, 6)):
        Result.objects.filter(pk__in=ids).update(invalid=True)
        Result.objects.filter(pk__in=[ids[place] for place in valid]).update(invalid=False)
        outcomes.append(outcome(lab.run))
    assert outcomes == [Outcome.PASSES, Outcome.FAILS]


def test_known_outcomes_take_four_queries_for_any_number_of_runs(baseline: Baseline, nights: Nights) -> None:
    runs = [nights.run(1000, 4000) for _ in range(4)]
    first = outcomes_on(runs)
    with CaptureQueriesContext(connection) as queries:
        assert outcomes_on(Run.objects.filter(number__gt=2).select_related("version")) == first
    assert len(queries) == 4


def test_removing_it_ends_the_verdicts(baseline: Baseline, nights: Nights, olga: User) -> None:
    run = nights.run(1000, 3000)
    remove_baseline(baseline=baseline, by=olga)
    assert outcome(run) is None
    actions = AuditEntry.objects.order_by("pk").values_list("action", "label")
    assert list(actions) == [("baseline.set", "nightly on a/scratch"), ("baseline.remove", "nightly on a/scratch")]


@pytest.mark.parametrize(
    ("tolerances", "code"),
    [
        ({}, "tolerance_missing"),
        ({"iops": 0.0}, "tolerance_refused"),
        ({"iops": 100.0}, "tolerance_refused"),
        ({"iops": float("nan")}, "tolerance_refused"),
        ({"speed": 5.0}, "metric_unknown"),
        ({"latency_p999": 5.0}, "baseline_refused"),  # the run has no values of it
    ],
)
def test_it_refuses_tolerances_that_judge_nothing(
    nights: Nights, olga: User, tolerances: dict[str, float], code: str
) -> None:
    run = nights.run(1000)
    with pytest.raises(Refusal) as refused:
        set_baseline(run=run, target=nights.target, tolerances=tolerances, by=olga)
    assert refused.value.code == code


def test_it_refuses_a_run_without_valid_results_and_an_open_one(nights: Nights, olga: User) -> None:
    run = nights.run(1000)
    Result.objects.update(invalid=True)
    with pytest.raises(Refusal, match="no valid results"):
        set_baseline(run=run, target=nights.target, tolerances=TOLERANCES, by=olga)
    run.state = RunState.RUNNING
    with pytest.raises(Refusal, match="has not ended"):
        set_baseline(run=run, target=nights.target, tolerances=TOLERANCES, by=olga)
