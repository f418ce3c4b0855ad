"""Pause, resume, skip, arm: what is sent afterwards, what is refused, and two people at once."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.models import Target
from webapp.runs.actions.run_actions import arm_run, pause_run, resume_run, skip_trials
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import expire_leases, publish_again
from webapp.runs.models import Attempt, AttemptKind, Run, RunState, Transition, Trial, TrialState
from webapp.runs.services import cancel_run
from webapp.runs.tasks import tick
from webapp.tests.factories.attempts import make_overdue
from webapp.tests.factories.hosts import a_drive, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import ACCEPTED, CANCELLED, DONE, STARTED, failed, run_to_the_end, say
from webapp.tests.factories.runs import a_run
from webapp.tests.refusals import refuses
from webapp.tests.threads import at_once
from worker.contract.workload import Pattern

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def target() -> Target:
    return a_target()


def start(target: Target, **options: Any) -> tuple[Run, Attempt]:
    """A run whose first trial was sent."""
    run = a_run(target, **options)
    attempt = dispatch_host(target.host_id)
    assert attempt
    run.refresh_from_db()
    return run, attempt


def states(run: Run) -> list[str]:
    return list(run.trials.order_by("index").values_list("state", flat=True))


def active() -> Attempt | None:
    return Attempt.objects.filter(ended_at=None).first()


# ---- pause and resume


def test_a_paused_run_ends_what_is_under_way_and_sends_nothing_more(target: Target) -> None:
    run, attempt = start(target, trials=3)
    pause_run(run=run, by=a_user("olga"))
    run_to_the_end(target.host, attempt)
    tick()
    assert states(run) == ["done", "planned", "planned"]
    assert active() is None
    run.refresh_from_db()
    assert (run.state, run.paused_by.username if run.paused_by else "") == (RunState.PAUSED, "olga")
    assert "olga paused" in Transition.objects.get(after="paused").reason


def test_it_goes_on_where_it_was(target: Target) -> None:
    run, attempt = start(target, trials=3)
    pause_run(run=run, by=None)
    run_to_the_end(target.host, attempt)
    resume_run(run=run, by=None)
    assert (run.state, run.paused_at) == (RunState.RUNNING, None)
    assert states(run) == ["done", "dispatched", "planned"]


def test_a_run_that_never_began_is_queued_again_afterwards(target: Target) -> None:
    run = a_run(target)
    pause_run(run=run, by=None)
    assert dispatch_host(target.host_id) is None
    target.host.last_seen_at = timezone.now() - timedelta(hours=1)
    target.host.save()
    resume_run(run=run, by=None)
    assert run.state == RunState.QUEUED


def test_pausing_and_resuming_twice_is_once(target: Target) -> None:
    run, _ = start(target)
    for action in (pause_run, pause_run, resume_run, resume_run):
        action(run=run, by=None)
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == ["run.pause", "run.resume"]


def test_two_people_at_once_pause_it_once_and_no_trial_slips_through(target: Target) -> None:
    run = a_run(target, trials=3)
    at_once(
        *(lambda: pause_run(run=Run.objects.get(), by=None) for _ in range(3)),
        *(lambda: dispatch_host(target.host_id) for _ in range(3)),
    )
    run.refresh_from_db()
    assert run.state == RunState.PAUSED
    assert AuditEntry.objects.filter(action="run.pause").count() == 1
    sent_before = Transition.objects.filter(after="dispatched").count()
    assert sent_before in (0, 1)
    assert dispatch_host(target.host_id) is None


@pytest.mark.parametrize(("state", "words"), [("done", "has ended"), ("closing", "being restored")])
def test_it_refuses_in_words_what_the_state_does_not_allow(target: Target, state: str, words: str) -> None:
    run = a_run(target, state=state)
    for action in (pause_run, resume_run):
        with pytest.raises(Refusal, match=words):
            action(run=run, by=None)
    with pytest.raises(Refusal, match=words):
        skip_trials(run=run, numbers=[1], reason="", by=None)
    assert not AuditEntry.objects.exists()


def test_a_run_that_is_being_cancelled_cannot_be_paused(target: Target) -> None:
    run, _ = start(target)
    cancel_run(run=run, by=None)
    with pytest.raises(Refusal, match="being cancelled"):
        pause_run(run=run, by=None)


def test_a_long_pause_puts_settings_back_and_the_run_still_closes_at_its_end(target: Target) -> None:
    run, attempt = start(target, trials=2)
    pause_run(run=run, by=None)
    run_to_the_end(target.host, attempt)
    Run.objects.update(paused_at=timezone.now() - timedelta(seconds=61))
    tick()
    closing = active()
    assert closing
    assert closing.kind == AttemptKind.CLOSE_RUN
    say(target.host, closing, (1, (ACCEPTED, DONE)))
    tick()
    assert active() is None, "it is put back once, not again and again"
    run.refresh_from_db()
    assert run.state == RunState.PAUSED

    resume_run(run=run, by=None)
    second = active()
    assert second
    run_to_the_end(target.host, second)
    run.refresh_from_db()
    assert run.state == RunState.CLOSING, "what the second trial changed is put back too"
    last = active()
    assert last
    assert last.kind == AttemptKind.CLOSE_RUN
    say(target.host, last, (1, (ACCEPTED, DONE)))
    run.refresh_from_db()
    assert run.state == RunState.DONE


def test_another_run_gets_a_paused_ones_host_after_its_settings_are_put_back(target: Target) -> None:
    paused, attempt = start(target, trials=2)
    other = a_run(target, trials=1)
    pause_run(run=paused, by=None)
    run_to_the_end(target.host, attempt)
    closing = active()
    assert closing
    assert (closing.kind, closing.run) == (AttemptKind.CLOSE_RUN, paused)
    say(target.host, closing, (1, (ACCEPTED, DONE)))
    trial = active()
    assert trial
    assert (trial.kind, trial.run) == (AttemptKind.TRIAL, other)
    resume_run(run=paused, by=None)
    run_to_the_end(target.host, trial)
    assert [(a.kind, a.run) for a in Attempt.objects.filter(ended_at=None)] == [(AttemptKind.CLOSE_RUN, other)]


def test_a_paused_run_can_be_cancelled(target: Target) -> None:
    run, attempt = start(target, trials=2)
    pause_run(run=run, by=None)
    run_to_the_end(target.host, attempt)
    cancel_run(run=run, by=None)
    closing = active()
    assert closing
    say(target.host, closing, (1, (ACCEPTED, DONE)))
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert states(run) == ["done", "cancelled"]


def test_what_destroys_is_armed_again_after_a_pause_longer_than_an_arming_lasts() -> None:
    drive = a_drive()
    run, attempt = start(drive, trials=2, pattern=Pattern.RANDWRITE, armed_serials=[drive.serial])
    pause_run(run=run, by=None)
    run_to_the_end(drive.host, attempt)
    now = timezone.now()
    Run.objects.update(paused_at=now - timedelta(hours=2), armed_until=now - timedelta(hours=1))
    resume_run(run=run, by=None)
    assert not Trial.objects.filter(state=TrialState.DISPATCHED).exists()
    closing = active()
    assert closing
    say(drive.host, closing, (1, (ACCEPTED, DONE)))
    with pytest.raises(Refusal, match=drive.serial):
        arm_run(run=run, serials=["another"], by=None)
    arm_run(run=run, serials=[drive.serial], by=None)
    assert states(run) == ["done", "dispatched"]


# ---- skip


def test_it_skips_the_running_trial_and_goes_on_with_the_next(target: Target) -> None:
    run, attempt = start(target, trials=2)
    say(target.host, attempt, (1, (ACCEPTED,)), (2, (STARTED,)))
    skipped = skip_trials(run=run, numbers=[1], reason="too slow", by=a_user("olga"))
    assert (skipped.unstarted, skipped.stopping) == (0, 1)
    assert say(target.host, attempt).cancel
    say(target.host, attempt, (3, (CANCELLED,)))
    trial = run.trials.get(index=0)
    assert (trial.state, trial.reason_code, trial.reason) == ("cancelled", "skipped", "Skipped by olga: too slow")
    assert states(run) == ["cancelled", "dispatched"]


def test_a_trial_that_ends_before_it_hears_of_the_skip_keeps_its_result(target: Target) -> None:
    run, attempt = start(target, trials=2)
    skip_trials(run=run, numbers=[1], reason="", by=None)
    run_to_the_end(target.host, attempt)
    assert states(run) == ["done", "dispatched"]
    assert run.results.count() > 0


def test_it_skips_planned_trials_and_twice_is_once(target: Target) -> None:
    run, _ = start(target, trials=4)
    for _ in range(2):
        skip_trials(run=run, numbers=[3, 4], reason="no use", by=None)
    assert states(run) == ["dispatched", "planned", "cancelled", "cancelled"]
    assert AuditEntry.objects.get().detail == {"trials": [3, 4], "reason": "no use"}
    assert Transition.objects.filter(code="skipped").count() == 2


def test_a_trial_that_has_ended_cannot_be_skipped(target: Target) -> None:
    run, attempt = start(target, trials=2)
    run_to_the_end(target.host, attempt)
    with refuses("trial_ended"):
        skip_trials(run=run, numbers=[1], reason="", by=None)
    with refuses("trial_unknown"):
        skip_trials(run=run, numbers=[8], reason="", by=None)


def test_a_skipped_trial_is_not_tried_again_when_its_worker_dies(target: Target) -> None:
    run, attempt = start(target, trials=2)
    say(target.host, attempt, (1, (ACCEPTED,)))
    skip_trials(run=run, numbers=[1], reason="", by=None)
    say(target.host, attempt, (2, (failed("worker_died", "gone"),)))
    assert states(run) == ["cancelled", "dispatched"]


def test_a_skipped_order_that_nobody_accepted_is_neither_sent_again_nor_waited_for_a_lease(target: Target) -> None:
    run, attempt = start(target, trials=2)
    skip_trials(run=run, numbers=[1], reason="", by=None)
    make_overdue(attempt)
    assert publish_again() == 0
    attempt.refresh_from_db()
    assert attempt.lease_until < timezone.now() + timedelta(seconds=31)
    Attempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    expire_leases()
    assert run.trials.get(index=0).reason_code == "skipped"
    late = say(target.host, attempt, (1, (ACCEPTED,)))
    assert late.refusal is not None
    assert run.trials.get(index=0).state == TrialState.CANCELLED


def test_a_run_all_of_whose_trials_are_skipped_is_cancelled(target: Target) -> None:
    run = a_run(target, trials=2)
    skip_trials(run=run, numbers=[1, 2], reason="", by=None)
    run.refresh_from_db()
    assert (run.state, run.reason_code) == (RunState.CANCELLED, "skipped")


def test_skipping_and_dispatching_at_once_never_both_win(target: Target) -> None:
    run = a_run(target, trials=3)
    at_once(
        *(lambda: skip_trials(run=Run.objects.get(), numbers=[1, 2], reason="", by=None) for _ in range(2)),
        *(lambda: dispatch_host(target.host_id) for _ in range(2)),
    )
    first = run.trials.get(index=0)
    assert first.state == TrialState.CANCELLED or first.skip_requested_at is not None
    assert run.trials.get(index=1).state == TrialState.CANCELLED
    assert AuditEntry.objects.filter(action="run.skip").count() == 1
