"""A run whose plan has a goal, with the real dispatcher and ingest: its batches, its end and its answer."""

from datetime import timedelta

import msgspec
import pytest
from django.db.models import F
from django.utils import timezone

from webapp.analysis.searching import NO_TIME, searches_of
from webapp.analysis.tests.searches import (
    BUDGET,
    DOCUMENT,
    LOADS,
    begun,
    depth,
    loaded,
    measure,
    measured,
    restored,
    under_way,
)
from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.plans.load import MAX
from webapp.results.models import Result
from webapp.runs.actions.run_actions import pause_run, resume_run, run_again, skip_trials
from webapp.runs.models import Attempt, AttemptKind, Run, RunState, Transition, TrialState
from webapp.runs.selectors import progress
from webapp.runs.services import cancel_run, start_run
from webapp.runs.tasks import tick
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, failed, run_to_the_end, sample, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def order(run: Run) -> list[tuple[int | None, str]]:
    return list(run.trials.order_by("index").values_list("batch", "point_key"))


def test_a_search_ends_with_the_best_combination_within_the_limit() -> None:
    host = a_host()
    run = begun(host)
    assert (run.trial_count, run.budget) == (BUDGET, BUDGET)
    assert run.trials.count() == int(0.4 * BUDGET)
    for _ in range(BUDGET):
        measure(host)
    restored(host)
    run.refresh_from_db()
    assert (run.state, run.trials.count(), Result.objects.filter(run=run).count()) == (RunState.DONE, BUDGET, BUDGET)
    (found,) = searches_of(run)
    conclusion = found.conclusion
    assert conclusion is not None
    best = next(trial.trial for trial in found.trials if trial.combination == conclusion.point)
    assert (best.point["block_size"], depth(best)) == (4096, 32)
    assert sum(trial.trial.is_final for trial in found.trials) == 8
    limited = found.limited_at(conclusion.point)
    assert limited is not None
    assert limited <= 1.01e6
    assert len({(trial.point_key, trial.repeat) for trial in run.trials.all()}) == BUDGET


def test_the_same_seed_and_results_give_the_same_trials() -> None:
    first, second = a_host(), a_host()
    runs = [begun(first), begun(second)]
    for host in (first, second):
        for _ in range(BUDGET):
            measure(host)
    assert order(runs[0]) == order(runs[1])
    other = begun(a_host(), seed=8)
    assert order(other) != order(runs[0])[: other.trials.count()]


def test_failed_and_skipped_trials_count_and_the_search_goes_on() -> None:
    host = a_host()
    run = begun(host)
    first = run.trials.count()
    for number in range(first):
        if number % 4 == 1:
            say(host, under_way(host), (1, (ACCEPTED,)), (2, (STARTED, sample())), (3, (failed(),)))
        else:
            measure(host)
    assert run.trials.filter(state=TrialState.FAILED).exists()
    assert set(run.trials.filter(index__gte=first).values_list("batch", flat=True)) == {1}
    (found,) = searches_of(run)
    lost = {trial.combination for trial in found.trials if trial.value is None}
    later = {found.space.number_of(trial.point) for trial in run.trials.filter(batch=1)}
    assert not lost & later


def test_the_tick_adds_a_batch_that_no_report_added(monkeypatch: pytest.MonkeyPatch) -> None:
    host = a_host()
    run = begun(host)
    for _ in range(run.trials.count() - 1):
        measure(host)
    with monkeypatch.context() as patch:
        attempt = under_way(host)
        patch.setattr("webapp.runs.dispatch.dispatcher._idle", lambda _: False)  # the server is killed here
        run_to_the_end(host, attempt)
        assert not run.trials.exclude(state=TrialState.DONE).exists()
    tick()
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    assert run.trials.filter(batch=1).exists()


def test_a_cancelled_search_gets_no_further_trials() -> None:
    host = a_host()
    run = begun(host)
    measure(host)
    count = run.trials.count()
    cancel_run(run=run, by=None)
    attempt = under_way(host)
    say(host, attempt, (1, (ACCEPTED,)), (2, (STARTED,)), (3, (RESULT, DONE)))
    restored(host)
    run.refresh_from_db()
    assert (run.state, run.trials.count()) == (RunState.CANCELLED, count)


def test_each_target_is_searched_by_itself() -> None:
    host = a_host()
    targets = [a_target(host), a_target(host)]
    run = start_run(version=a_version(DOCUMENT), targets=targets, by=None, seed=7)
    assert run.trial_count == 2 * BUDGET
    for _ in range(run.trials.count()):
        measure(host)
    batches = run.trials.filter(batch=1)
    assert {trial.target_id for trial in batches} == {target.pk for target in targets}
    assert [each.target for each in searches_of(run)] == targets


def test_its_progress_counts_all_trials_of_the_budget() -> None:
    host = a_host()
    run = begun(host)
    measure(host)
    assert (progress(run).total, progress(run).done) == (BUDGET, 1)


def test_only_all_of_a_search_runs_again() -> None:
    host = a_host()
    run = begun(host)
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (STARTED, sample())), (3, (failed(),)))
    cancel_run(run=run, by=None)
    with pytest.raises(Refusal) as refused:
        run_again(run=run, by=None, only_failed=True)
    assert refused.value.code == "search_is_whole"


def timed(seconds: int) -> Run:
    """A search with a limit of time: of its 3 s a trial, at most a third as many trials as seconds."""
    return begun(a_host(), msgspec.structs.replace(DOCUMENT, budget=0, budget_s=seconds))


def spend(run: Run, seconds: float) -> None:
    """As if the run had begun so many seconds ago. The time that the test takes does not count."""
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(seconds=seconds))


def measure_for(run: Run, each_s: float, most: int = 1000, spent_s: float = 0.0) -> int:
    """Measure until the search ends; the number of trials. `each_s`: the time of one; `spent_s`: that before them."""
    (host,) = {target.host for target in run.targets.all()}
    for number in range(most):
        attempt = under_way(host)
        if attempt.kind == AttemptKind.CLOSE_RUN:
            return number
        spend(run, spent_s + each_s * (number + 1))
        measured(host, attempt)
    return most


@pytest.mark.parametrize("each_s", [3.2, 6.0, 20.0])
def test_a_search_ends_within_its_time(each_s: float) -> None:
    """Also if trials take longer than expected. The final rounds are complete."""
    run = timed(300)
    assert (run.budget, run.budget_s) == (100, 300)
    count = measure_for(run, each_s)
    assert 0.75 * 300 <= each_s * count <= 300 + each_s
    (found,) = searches_of(Run.objects.get(pk=run.pk))
    finals = run.trials.filter(is_final=True)
    assert finals.count() % 4 == 0
    assert finals.count() >= 8
    assert not finals.exclude(state=TrialState.DONE).exists()
    assert found.conclusion is not None
    run.refresh_from_db()
    assert run.trial_count == run.trials.count()
    assert run.budget == count
    keys = list(run.trials.values_list("point_key", "repeat"))
    assert len(set(keys)) == len(keys)


def test_trials_without_time_are_no_failures() -> None:
    run = timed(300)
    measure_for(run, 20.0)
    dropped = run.trials.filter(reason_code=NO_TIME)
    assert dropped.exists()
    assert set(dropped.values_list("state", flat=True)) == {TrialState.CANCELLED}
    (found,) = searches_of(Run.objects.get(pk=run.pk))
    assert {trial.trial.pk for trial in found.trials}.isdisjoint(dropped.values_list("pk", flat=True))
    assert AuditEntry.objects.filter(action="run.end_exploration").exists()


def test_a_pause_costs_no_time() -> None:
    run = timed(300)
    measure_for(run, 6.0, most=3)
    pause_run(run=run, by=None)
    Transition.objects.filter(run=run, trial=None, after=RunState.PAUSED).update(at=F("at") - timedelta(hours=1))
    spend(run, 3 * 6.0 + 3600)
    resume_run(run=run, by=None)
    assert 0.75 * 300 <= 6.0 * (3 + measure_for(run, 6.0, spent_s=3 * 6.0 + 3600)) <= 306


def test_a_paused_search_gets_no_batch_until_it_is_resumed() -> None:
    host = a_host()
    run = begun(host)
    first = run.trials.count()
    for _ in range(first - 1):
        measure(host)
    attempt = under_way(host)
    pause_run(run=run, by=None)
    measured(host, attempt)
    tick()
    waiting = run.trials.filter(batch=1)
    assert not waiting.exclude(state=TrialState.PLANNED).exists()
    resume_run(run=run, by=None)
    assert measure(host).trial in run.trials.filter(batch=1)


def test_a_lost_trial_is_retried_and_counts_once() -> None:
    host = a_host()
    run = begun(host)
    attempt = under_way(host)
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() - timedelta(hours=1))
    tick()
    again = measure(host)
    assert (again.trial, again.number) == (attempt.trial, 2)
    for _ in range(BUDGET - 1):
        measure(host)
    (found,) = searches_of(run)
    assert len(found.trials) == BUDGET
    assert found.conclusion is not None


def test_skipped_trials_count_and_the_search_goes_on() -> None:
    host = a_host()
    run = begun(host)
    first = run.trials.count()
    skip_trials(run=run, numbers=[2, 3], reason="", by=None)
    for _ in range(first - 2):
        measure(host)
    (found,) = searches_of(run)
    assert sum(trial.value is None for trial in found.trials) == 2
    assert run.trials.filter(batch=1).exists()


def test_the_highest_load_within_a_latency_is_bisected_and_repeated() -> None:
    host = a_host()
    run = begun(host, LOADS)
    assert set(run.trials.values_list("point__load", flat=True)) == {MAX}
    while (attempt := loaded(host)) and not attempt.trial.is_final:  # type: ignore[union-attr]
        pass
    first = run.trials.filter(is_final=True)
    assert set(first.values_list("point__load", flat=True)) == {60, 65}
    for _ in range(first.count() - 1):
        loaded(host)
    restored(host)
    run.refresh_from_db()
    assert run.state == RunState.DONE
    assert run.trials.count() < 20
    (found,) = searches_of(run)
    bracket = found.bracket
    assert bracket is not None
    ends = [
        found.levels(number)["load"] for number in (bracket.point, bracket.below, bracket.above) if number is not None
    ]
    assert ends == [60, 60, 65]
    assert bracket.value == pytest.approx(6_000, rel=0.02)
    assert found.conclusion is None


def test_a_share_that_cannot_keep_up_is_beyond_the_limit() -> None:
    host = a_host()
    run = begun(host, LOADS)
    for _ in range(20):
        loaded(host, most=4_600)
        (found,) = searches_of(run)
        if found.bracket:
            break
    bracket = found.bracket
    assert bracket is not None
    ends = [found.levels(number)["load"] for number in (bracket.point, bracket.above) if number is not None]
    assert ends == [45, 50]
