"""What happens when nobody is heard, and when somebody is heard again."""

from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.utils import timezone

from webapp.celery import redis_client
from webapp.hosts.models import Host, Target
from webapp.hosts.services import revoke_host
from webapp.runs.dispatch import leases
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import expire_leases, lose_forgotten, revive_unfinished
from webapp.runs.models import Attempt, AttemptKind, Run, RunState, TargetLock, TrialState
from webapp.runs.services import cancel_run
from webapp.runs.tasks import tick
from webapp.tests.factories.hosts import a_drive, a_target
from webapp.tests.factories.reports import ACCEPTED, DONE, STARTED, run_to_the_end, say
from webapp.tests.factories.runs import a_run
from worker.contract.orders import queue_name
from worker.contract.workload import Pattern

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def dispatched(target: Target, **changes: object) -> Attempt:
    a_run(target, **{"trials": 1, **changes})  # type: ignore[arg-type]
    attempt = dispatch_host(target.host_id)
    assert attempt
    return attempt


def let_lapse() -> None:
    Attempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def away(host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(last_seen_at=timezone.now() - timedelta(hours=1))


def test_it_plans_a_lost_trial_again_and_sends_it_once_the_host_is_back() -> None:
    attempt = dispatched(a_target())
    say(attempt.host, attempt, (1, (ACCEPTED, STARTED)))
    away(attempt.host)
    let_lapse()
    tick()
    attempt.refresh_from_db()
    assert (attempt.state, attempt.outcome_code) == ("lost", "lease_expired")
    assert not TargetLock.objects.exists()
    assert Attempt.objects.count() == 1
    Host.objects.update(last_seen_at=timezone.now())
    tick()
    again = Attempt.objects.latest("created_at")
    assert (again.trial_id, again.number) == (attempt.trial_id, 2)


def test_it_fails_a_trial_that_has_no_tries_left() -> None:
    first = dispatched(a_target())
    let_lapse()
    expire_leases()
    second = dispatch_host(first.host_id)
    assert second
    let_lapse()
    expire_leases()
    trial = Run.objects.get().trials.get()
    assert (trial.state, trial.reason_code) == (TrialState.FAILED, "lease_expired")


def test_it_never_repeats_a_destructive_trial_by_itself() -> None:
    target = a_drive()
    dispatched(target, pattern=Pattern.RANDWRITE, armed_serials=[target.serial])
    Run.objects.get().trials.update(attempts_left=3)
    let_lapse()
    expire_leases()
    trial = Run.objects.get().trials.get()
    assert (trial.state, trial.reason_code) == (TrialState.FAILED, "lease_expired")
    assert "not retried" in trial.reason


def test_it_cancels_a_lost_trial_of_a_cancelled_run() -> None:
    attempt = dispatched(a_target(), trials=2)
    run = Run.objects.get()
    cancel_run(run=run, by=None)
    attempt.refresh_from_db()
    assert attempt.lease_until < timezone.now() + timedelta(minutes=1)
    let_lapse()
    tick()
    assert set(run.trials.values_list("state", flat=True)) == {TrialState.CANCELLED}
    close = Attempt.objects.latest("created_at")
    assert close.kind == AttemptKind.CLOSE_RUN
    say(close.host, close, (1, (ACCEPTED, DONE)))
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED


def test_it_asks_again_to_put_settings_back_when_that_was_lost() -> None:
    attempt = dispatched(a_target())
    run_to_the_end(attempt.host, attempt)
    let_lapse()
    tick()
    closings = list(Attempt.objects.filter(kind=AttemptKind.CLOSE_RUN).order_by("created_at"))
    assert [close.state for close in closings] == ["lost", "dispatched"]
    say(attempt.host, closings[1], (1, (ACCEPTED, DONE)))
    assert Run.objects.get().state == RunState.DONE


def test_it_revives_what_a_greeting_host_still_has() -> None:
    attempt = dispatched(a_target())
    say(attempt.host, attempt, (1, (ACCEPTED, STARTED)))
    let_lapse()
    expire_leases()
    assert revive_unfinished(host=attempt.host, journal=["no uuid", str(attempt.pk)]) == 1
    attempt.refresh_from_db()
    assert attempt.state == "running"
    assert attempt.lease_until > timezone.now()
    assert Run.objects.get().trials.get().state == TrialState.RUNNING
    assert TargetLock.objects.count() == 1


def test_it_does_not_wait_for_the_lease_of_an_attempt_that_a_greeting_host_no_longer_has() -> None:
    attempt = dispatched(a_target())
    Run.objects.get().trials.update(attempts_left=1)
    say(attempt.host, attempt, (1, (ACCEPTED, STARTED)))
    assert lose_forgotten(host=attempt.host, journal=[]) == 0  # it may have been accepted after the host listed them
    Attempt.objects.update(accepted_at=timezone.now() - timedelta(minutes=2))
    assert lose_forgotten(host=attempt.host, journal=["no uuid", str(attempt.pk)]) == 0
    assert lose_forgotten(host=attempt.host, journal=[]) == 1
    attempt.refresh_from_db()
    assert (attempt.state, attempt.outcome_code) == ("lost", "not_on_host")
    assert Run.objects.get().trials.get().state == TrialState.PLANNED
    assert not TargetLock.objects.exists()


def test_an_order_that_a_host_has_not_accepted_waits_for_its_lease() -> None:
    attempt = dispatched(a_target())
    Attempt.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    assert lose_forgotten(host=attempt.host, journal=[]) == 0


def test_it_does_not_wait_for_the_lease_of_an_order_that_a_host_finished_after_the_backup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host took the order, and ignores it now: for it, it is done."""
    attempt = dispatched(a_target())
    Run.objects.get().trials.update(attempts_left=1)
    with redis_client() as server:
        server.delete(queue_name(str(attempt.host_id)))
    assert lose_forgotten(host=attempt.host, journal=[]) == 0  # it may have taken the order after it listed the others
    Attempt.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    assert lose_forgotten(host=attempt.host, journal=[str(attempt.pk)]) == 0
    monkeypatch.setattr(leases, "waiting_orders", Mock(side_effect=OSError))  # without a broker
    assert lose_forgotten(host=attempt.host, journal=[]) == 0
    monkeypatch.undo()
    assert lose_forgotten(host=attempt.host, journal=[]) == 1
    attempt.refresh_from_db()
    assert (attempt.state, attempt.outcome_code) == ("lost", "not_on_host")
    assert Run.objects.get().trials.get().state == TrialState.PLANNED


def test_it_does_not_revive_what_uses_a_drive_that_another_host_has_now() -> None:
    shared = "eui.shared"
    attempt = dispatched(a_drive(lock_keys=[shared], stable_id=shared, serial="S"))
    say(attempt.host, attempt, (1, (ACCEPTED, STARTED)))
    let_lapse()
    expire_leases()
    dispatched(a_drive(lock_keys=[shared], stable_id=shared, serial="S"))
    reply = say(attempt.host, attempt)
    assert reply.refusal
    assert reply.refusal.code == "superseded"
    attempt.refresh_from_db()
    assert attempt.state == "lost"


def test_it_revives_nothing_of_a_run_that_has_ended() -> None:
    attempt = dispatched(a_target())
    let_lapse()
    expire_leases()
    Run.objects.update(state=RunState.FAILED)
    assert revive_unfinished(host=attempt.host, journal=[str(attempt.pk)]) == 0


def test_it_ends_the_run_of_a_revoked_host() -> None:
    attempt = dispatched(a_target(), trials=2)
    revoke_host(host=attempt.host, by=None)
    tick()
    run = Run.objects.get()
    assert run.state == RunState.FAILED
    assert "revoked" in run.reason
    assert {trial.reason_code for trial in run.trials.all()} == {"host_revoked"}


def test_it_does_nothing_when_there_is_nothing() -> None:
    tick()
    tick()
    assert not Attempt.objects.exists()
