"""Leases, lost attempts and cancellation, as reports change them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.results.models import Result, Sample, known
from webapp.results.tests.ingesting import BEGUN, state
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import expire_leases
from webapp.runs.models import Attempt, AttemptState, Run, RunState, SettingChange, TargetLock, TrialState
from webapp.runs.services import cancel_run
from webapp.tests.factories.reports import (
    ACCEPTED,
    CANCELLED,
    DONE,
    RESULT,
    failed,
    run_to_the_end,
    sample,
    say,
)
from worker.contract.items import (
    SettingRestored,
)
from worker.contract.tests.examples import AT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def lose(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert expire_leases() == 1


def test_it_renews_the_lease_of_a_silent_attempt(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() + timedelta(seconds=5))
    reply = say(attempt.host, attempt)
    attempt.refresh_from_db()
    assert reply.lease_until == attempt.lease_until.timestamp()
    assert attempt.lease_until > timezone.now() + timedelta(minutes=10)


def test_it_revives_a_lost_attempt_that_reports_again(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    lose(attempt)
    assert state(attempt) == ("lost", "planned")
    reply = say(attempt.host, attempt, (2, (sample(),)))
    assert (reply.confirmed_seq, reply.refusal) == (2, None)
    assert state(attempt) == ("running", "running")
    assert TargetLock.objects.get().attempt == attempt
    say(attempt.host, attempt, (3, (RESULT, DONE)))
    assert state(attempt) == ("done", "done")


def test_it_revives_a_trial_that_had_no_tries_left(attempt: Attempt) -> None:
    assert attempt.trial
    type(attempt.trial).objects.update(attempts_left=0)
    say(attempt.host, attempt, (1, BEGUN))
    lose(attempt)
    assert state(attempt) == ("lost", "failed")
    say(attempt.host, attempt, (2, (RESULT, DONE)))
    assert state(attempt) == ("done", "done")
    assert attempt.trial.reason_code == ""


def test_it_accepts_nothing_from_a_lost_attempt_that_has_a_successor(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    lose(attempt)
    newer = dispatch_host(attempt.host_id)
    assert newer
    assert (newer.trial, newer.number) == (attempt.trial, 2)
    refusal = say(attempt.host, attempt, (2, (sample(),))).refusal
    assert refusal
    assert refusal.code == "superseded"
    assert not Sample.objects.exists()


def test_a_trial_of_a_killed_worker_is_tried_again(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (failed("worker_died", "The worker was killed."),)))
    again = Attempt.objects.latest("created_at")
    assert (again.trial, again.number) == (attempt.trial, 2)
    run_to_the_end(attempt.host, again)
    assert attempt.trial
    attempt.trial.refresh_from_db()
    assert attempt.trial.state == TrialState.DONE
    assert known(Result.objects.get().stream_run).attempt == again


def test_it_passes_on_a_cancellation(attempt: Attempt) -> None:
    assert not say(attempt.host, attempt, (1, BEGUN)).cancel
    assert attempt.run
    cancel_run(run=attempt.run, by=None)
    assert say(attempt.host, attempt).cancel
    say(attempt.host, attempt, (2, (CANCELLED,)))
    assert state(attempt) == ("cancelled", "cancelled")
    close = Attempt.objects.latest("created_at")
    assert not say(attempt.host, close, (1, (ACCEPTED,))).cancel
    say(attempt.host, close, (2, (DONE,)))
    assert Run.objects.get().state == RunState.CANCELLED


def test_a_run_fails_if_its_settings_were_not_restored(attempt: Attempt) -> None:
    for _ in range(3):
        run_to_the_end(attempt.host, Attempt.objects.latest("created_at"))
    stuck = SettingRestored(at=AT, name="scheduler", device="sda", value="none", observed="bfq", restored=False)
    end = failed("settings_not_restored", "scheduler of sda is bfq")
    say(attempt.host, Attempt.objects.latest("created_at"), (1, (ACCEPTED, stuck, end)))
    run = Run.objects.get()
    assert (run.state, run.reason_code) == (RunState.FAILED, "settings_not_restored")
    assert "scheduler of sda is bfq" in run.reason
    assert SettingChange.objects.get().restored is False


def test_it_leaves_a_lease_that_is_nearly_whole(attempt: Attempt) -> None:
    """Its index and the row's place stay as they are then."""
    leases = {say(attempt.host, attempt, (seq, items)).lease_until for seq, items in ((1, BEGUN), (2, (sample(0),)))}
    assert leases == {attempt.lease_until.timestamp()}
    far = timezone.now() + timedelta(days=2)  # the server's clock was set back since
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=far)
    assert say(attempt.host, attempt, (3, (sample(1),))).lease_until < far.timestamp() - 86400
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() + timedelta(minutes=13))
    reply = say(attempt.host, attempt, (4, (sample(2),)))
    attempt.refresh_from_db()
    assert attempt.lease_until.timestamp() == reply.lease_until
    assert attempt.lease_until > timezone.now() + timedelta(minutes=14)


def test_a_cancelled_attempt_is_stopped_by_the_reply_to_a_plain_sample(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(0),)))
    assert attempt.run
    cancel_run(run=attempt.run, by=None)
    reply = say(attempt.host, attempt, (3, (sample(1),)))
    assert (reply.cancel, reply.confirmed_seq) == (True, 3)


def test_it_is_still_active_while_it_runs(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    assert dispatch_host(attempt.host_id) is None
    assert Attempt.objects.filter(state=AttemptState.RUNNING).count() == 1


@pytest.mark.parametrize(
    "code", ["worker_died", "worker_stopped", "order_expired", "order_unreadable", "order_superseded", "spool_full"]
)
def test_it_sends_a_close_run_order_again_that_was_broken_off(attempt: Attempt, code: str) -> None:
    """Settings may still be changed then, and the run must not end before they are put back."""
    for _ in range(3):
        run_to_the_end(attempt.host, Attempt.objects.latest("created_at"))
    first = Attempt.objects.latest("created_at")
    say(first.host, first, (1, (ACCEPTED,)), (2, (failed(code, "broken off"),)))
    again = Attempt.objects.latest("created_at")
    assert (again.kind, again.pk != first.pk) == ("close_run", True)
    assert Run.objects.get().state == RunState.CLOSING
    say(again.host, again, (1, (ACCEPTED, DONE)))
    assert Run.objects.get().state == RunState.DONE
