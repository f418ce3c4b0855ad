"""A run from its start to its end, with a real broker and the real ingest."""

import pytest

from webapp.results.models import Result, Sample, StreamRun
from webapp.runs.models import Attempt, Run, RunState, TargetLock, Transition, TrialState
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, queued_orders, run_to_the_end, say
from worker.contract.orders import CloseRunOrder, TrialOrder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def newest() -> Attempt:
    return Attempt.objects.latest("created_at")


def test_it_runs_every_trial_in_order_puts_settings_back_and_ends() -> None:
    target = a_target()
    run = start_run(version=a_version(), targets=[target], by=a_user())
    for index in range(4):
        attempt = newest()
        assert attempt.trial
        assert attempt.trial.index == index
        order = queued_orders(target.host)[-1]
        assert isinstance(order, TrialOrder)
        assert order.attempt == str(attempt.pk)
        reply = run_to_the_end(target.host, attempt)
        assert (reply.confirmed_seq, reply.refusal) == (3, None)
    run.refresh_from_db()
    assert run.state == RunState.CLOSING
    assert isinstance(queued_orders(target.host)[-1], CloseRunOrder)
    say(target.host, newest(), (1, (ACCEPTED, DONE)))
    run.refresh_from_db()
    assert (run.state, run.reason) == (RunState.DONE, "")
    assert run.started_at
    assert run.ended_at
    assert Result.objects.filter(run=run).count() == Sample.objects.count() == StreamRun.objects.count() == 4
    assert not TargetLock.objects.exists()


def test_it_writes_the_whole_history_of_a_trial() -> None:
    target = a_target()
    run = start_run(version=a_version(), targets=[target], by=None)
    run_to_the_end(target.host, newest())
    trial = run.trials.get(index=0)
    assert trial.state == TrialState.DONE
    assert trial.ended_at
    states = list(Transition.objects.filter(trial=trial).values_list("before", "after"))
    assert states == [
        ("planned", "dispatched"),
        ("dispatched", "accepted"),
        ("accepted", "running"),
        ("running", "done"),
    ]


def test_it_numbers_runs_without_gaps() -> None:
    target = a_target()
    assert [start_run(version=a_version(), targets=[target], by=None).number for _ in range(3)] == [1, 2, 3]
    assert Run.objects.count() == 3
