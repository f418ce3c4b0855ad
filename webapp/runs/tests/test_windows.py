"""What a maintenance window of a host does to runs: no trials, settings put back, and on when it closes."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.hosts.maintenance_windows import add_single_window, delete_window
from webapp.hosts.models import Host, MaintenanceWindow, Target
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.host_queues import queues
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind, RunState, TrialState
from webapp.runs.services import start_run
from webapp.runs.tasks import tick
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, run_to_the_end, say
from webapp.tests.factories.runs import a_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def target() -> Target:
    return a_target()


def open_now(host: Host, note: str = "") -> MaintenanceWindow:
    now = timezone.now()
    ends_at = now + timedelta(hours=1)
    return add_single_window(host=host, starts_at=now - timedelta(minutes=1), ends_at=ends_at, note=note, by=None)


def close_now(window: MaintenanceWindow) -> None:
    MaintenanceWindow.objects.filter(pk=window.pk).update(ends_at=timezone.now())


def active() -> Attempt | None:
    return Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).first()


def test_a_host_in_a_window_gets_no_trial_until_it_closes(target: Target) -> None:
    run, other = a_run(target), a_target()
    a_run(other)
    window = open_now(target.host)
    assert dispatch_host(target.host_id) is None
    assert dispatch_host(other.host_id)
    tick()
    assert not Attempt.objects.filter(host=target.host).exists()
    close_now(window)
    tick()
    attempt = Attempt.objects.get(host=target.host)
    assert (attempt.run, attempt.kind) == (run, AttemptKind.TRIAL)


@pytest.mark.parametrize("in_window", [False, True])
def test_its_windows_are_read_once_for_each_order(target: Target, in_window: bool) -> None:
    a_run(target)
    if in_window:
        open_now(target.host)
    with CaptureQueriesContext(connection) as queries:
        assert (dispatch_host(target.host_id) is None) == in_window
    assert sum("hosts_maintenancewindow" in query["sql"] for query in queries) == 1


def test_a_deleted_window_is_over_at_once(target: Target) -> None:
    a_run(target)
    window = open_now(target.host)
    assert dispatch_host(target.host_id) is None
    delete_window(window=window, by=None)
    assert dispatch_host(target.host_id)


def test_settings_are_put_back_when_it_opens_and_the_run_goes_on_when_it_closes(target: Target) -> None:
    run = a_run(target, trials=2)
    first = dispatch_host(target.host_id)
    assert first
    say(target.host, first, (1, (ACCEPTED,)))
    window = open_now(target.host)
    first.refresh_from_db()
    assert first.state == "accepted"  # the trial under way goes on to its end
    run_to_the_end(target.host, first)
    closing = active()
    assert closing
    assert (closing.kind, closing.run) == (AttemptKind.CLOSE_RUN, run)
    say(target.host, closing, (1, (ACCEPTED, DONE)))
    tick()
    assert active() is None
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    close_now(window)
    tick()
    second = active()
    assert second
    assert (second.kind, second.trial.index if second.trial else None) == (AttemptKind.TRIAL, 1)
    run_to_the_end(target.host, second)
    last = active()
    assert last
    assert last.kind == AttemptKind.CLOSE_RUN
    say(target.host, last, (1, (ACCEPTED, DONE)))
    run.refresh_from_db()
    assert run.state == RunState.DONE
    assert not run.trials.exclude(state=TrialState.DONE).exists()


def test_no_run_starts_on_a_host_in_a_window(target: Target) -> None:
    window = open_now(target.host, "Firmware")
    version, by = a_version(), a_user()
    with pytest.raises(Refusal) as caught:
        start_run(version=version, targets=[target], by=by)
    assert caught.value.code == "host_unavailable"
    assert f"{target.host} is in a maintenance window until {window.ends_at:%Y-%m-%d %H:%M} UTC (Firmware)" in str(
        caught.value
    )
    close_now(window)
    assert start_run(version=version, targets=[target], by=by).trial_count


def test_the_queue_says_why_nothing_goes_on(target: Target) -> None:
    a_run(target)
    open_now(target.host)
    (queue,) = queues()
    assert "is in a maintenance window until" in queue.trouble
