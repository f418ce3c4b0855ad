"""Every transition of every table, and every transition that is in none."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptState, Run, RunState, Transition, Trial, TrialState
from webapp.runs.states import (
    ATTEMPT_TRANSITIONS,
    RUN_TRANSITIONS,
    TRIAL_REVIVALS,
    TRIAL_TRANSITIONS,
    IllegalTransition,
    StaleTransition,
    revive_trial,
    transition_attempt,
    transition_run,
    transition_trial,
)
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.runs import a_run

pytestmark = pytest.mark.django_db


def a_single_trial() -> Trial:
    return a_run(a_target(), trials=1).trials.get()


@contextmanager
def undone() -> Iterator[None]:
    """Tests of one row for all states it can move to."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("before", RunState)
def test_it_moves_runs_only_as_the_table_says(before: RunState) -> None:
    a_run(a_target(), trials=1, state=before)
    for after in RunState:
        run = Run.objects.get()
        if after not in RUN_TRANSITIONS[before]:
            with pytest.raises(IllegalTransition):
                transition_run(run, after)
            assert Run.objects.get().state == before
            assert not Transition.objects.exists()
            continue
        with undone():
            transition_run(run, after, code="why", fields={"message": "because"})
            assert Run.objects.get().state == after
            assert Transition.objects.values_list("before", "after", "code").get() == (before, after, "why")
            assert Transition.objects.get().reason == "because"


@pytest.mark.parametrize("before", TrialState)
def test_it_moves_trials_only_as_the_table_says(before: TrialState) -> None:
    a_run(a_target(), trials=1)
    Trial.objects.update(state=before, reason_code="why")
    for after in TrialState:
        trial = Trial.objects.get()
        if after not in TRIAL_TRANSITIONS[before]:
            with pytest.raises(IllegalTransition):
                transition_trial(trial, after)
            assert Trial.objects.get().state == before
            continue
        with undone():
            transition_trial(trial, after, code="why")
            assert Trial.objects.get().state == after
            assert Transition.objects.values_list("trial", "before", "after").get() == (trial.pk, before, after)
            assert (trial.ended_at is not None) == (after in (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED))


@pytest.mark.parametrize("before", AttemptState)
def test_it_moves_attempts_only_as_the_table_says(before: AttemptState) -> None:
    run = a_run(a_target(), trials=1)
    assert dispatch_host(run.targets.get().host_id)
    Attempt.objects.update(state=before)
    for after in AttemptState:
        attempt = Attempt.objects.get()
        if after not in ATTEMPT_TRANSITIONS[before]:
            with pytest.raises(IllegalTransition):
                transition_attempt(attempt, after)
            continue
        with undone():
            transition_attempt(attempt, after)
            attempt.refresh_from_db()
            assert attempt.state == after
            ended = after in (AttemptState.DONE, AttemptState.FAILED, AttemptState.CANCELLED, AttemptState.LOST)
            assert (attempt.ended_at is not None) == ended


@pytest.mark.parametrize("before", TrialState)
def test_it_revives_only_what_was_lost_with_its_lease(before: TrialState) -> None:
    run = a_run(a_target(), trials=1)
    attempt = dispatch_host(run.targets.get().host_id)
    assert attempt
    Trial.objects.update(state=before, reason_code="lease_expired")
    trial = Trial.objects.get()
    if before in TRIAL_REVIVALS:
        revive_trial(trial, TrialState.RUNNING, attempt=attempt)
        assert Trial.objects.get().state == TrialState.RUNNING
    else:
        with pytest.raises(IllegalTransition):
            revive_trial(trial, TrialState.RUNNING, attempt=attempt)


def test_it_does_not_revive_a_trial_that_failed_by_itself() -> None:
    run = a_run(a_target(), trials=1)
    attempt = dispatch_host(run.targets.get().host_id)
    assert attempt
    Trial.objects.update(state=TrialState.FAILED, reason_code="fio_error")
    with pytest.raises(IllegalTransition):
        revive_trial(Trial.objects.get(), TrialState.RUNNING, attempt=attempt)


def test_it_refuses_to_move_what_somebody_else_has_moved() -> None:
    trial = a_single_trial()
    Trial.objects.update(state=TrialState.CANCELLED)
    with pytest.raises(StaleTransition), transaction.atomic():
        transition_trial(trial, TrialState.DISPATCHED)
    assert not Transition.objects.exists()
    run = Run.objects.get()
    Run.objects.update(state=RunState.CANCELLED)
    with pytest.raises(StaleTransition):
        transition_run(run, RunState.RUNNING)


def test_it_writes_an_attempt_and_its_trial_with_their_history() -> None:
    run = a_run(a_target(), trials=1)
    attempt = dispatch_host(run.targets.get().host_id)
    assert attempt
    trial, before = Trial.objects.get(), Transition.objects.count()
    for state in ("accepted", "running"):
        transition_attempt(attempt, AttemptState(state))
        transition_trial(trial, TrialState(state), attempt=attempt)
    assert (attempt.state, trial.state) == ("running", "running")
    with pytest.raises(IllegalTransition):
        transition_trial(trial, TrialState.PLANNED)
    assert (Attempt.objects.get().state, Trial.objects.get().state) == ("running", "running")
    assert Attempt.objects.get().accepted_at
    assert list(Transition.objects.values_list("after", flat=True))[before:] == ["accepted", "running"]
