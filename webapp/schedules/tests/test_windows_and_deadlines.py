"""Windows and deadlines under a set clock: runs are paused, go on, are late."""

from datetime import timedelta

import pytest

from webapp.hosts.maintenance_windows import add_single_window
from webapp.hosts.models import Target
from webapp.hosts.services import begin_maintenance, end_maintenance
from webapp.runs.actions.run_actions import pause_run, resume_run
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, Run, RunState
from webapp.runs.reasons import sentence
from webapp.runs.services import cancel_run
from webapp.schedules.models import AtDeadline, Occurrence, OccurrenceState
from webapp.schedules.services import change_schedule
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NIGHT
from webapp.schedules.tests.occurrences import latest, run_of, states
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_schedule, a_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_outside_its_window_a_run_is_paused_and_goes_on_when_it_opens(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    run = run_of(latest())
    at_noon.to(DUE + timedelta(hours=8))
    assert run_of(latest()).state == RunState.PAUSED
    words = "The window of its schedule is closed (22:00 to 06:00, every day (Europe/Berlin))."
    assert run_of(latest()).pause_reason == words
    at_noon.to(DUE + timedelta(days=1, seconds=-1))
    assert run_of(latest()).state == RunState.PAUSED
    at_noon.to(DUE + timedelta(days=1))
    run.refresh_from_db()
    assert run.state in (RunState.QUEUED, RunState.RUNNING)
    assert run.pause_reason == ""


def test_a_person_who_resumes_outside_the_window_or_pauses_within_is_not_overruled(
    at_noon: Clock, target: Target
) -> None:
    person = a_user()
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    run = run_of(latest())
    at_noon.after(hours=8)
    resume_run(run=run_of(latest()), by=person)
    at_noon.after(hours=1)
    assert run_of(latest()).state != RunState.PAUSED
    at_noon.to(DUE + timedelta(days=1))
    pause_run(run=run, by=person)
    at_noon.after(hours=8)  # closes
    at_noon.to(DUE + timedelta(days=2))  # opens
    assert run_of(latest_with(run)).state == RunState.PAUSED


def latest_with(run: Run) -> Occurrence:
    return Occurrence.objects.select_related("run").get(run=run)


def test_a_person_who_pauses_a_run_that_the_window_paused_keeps_it_paused(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    run = run_of(latest())
    at_noon.after(hours=8)
    pause_run(run=run, by=a_user())
    at_noon.to(DUE + timedelta(days=1))
    assert run_of(latest_with(run)).state == RunState.PAUSED


def test_a_run_goes_on_when_its_window_is_taken_away(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target], window=NIGHT), a_user()
    at_noon.to(DUE)
    at_noon.after(hours=8)
    assert run_of(latest()).state == RunState.PAUSED
    change_schedule(schedule=schedule, spec=a_spec(version=schedule.version, targets=[target]), by=person)
    at_noon.after(seconds=5)
    assert run_of(latest()).state != RunState.PAUSED


def test_a_due_time_outside_the_window_waits_for_it(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 21 * * *", window=NIGHT, start_within_s=7200)
    at_noon.to(DUE - timedelta(hours=1))
    assert latest().reason == "The window opens 2026-03-10 22:00 (Europe/Berlin)."
    at_noon.to(DUE)
    assert latest().state == OccurrenceState.STARTED


def test_it_waits_for_a_host_in_maintenance_and_in_a_maintenance_window(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=4 * 3600)
    add_single_window(host=target.host, starts_at=DUE, ends_at=DUE + timedelta(hours=1), note="new fans", by=None)
    at_noon.to(DUE)
    assert "in a maintenance window until 2026-03-10 23:00 Europe/Berlin (new fans)" in latest().reason
    begin_maintenance(host=target.host, note="", by=None)
    at_noon.after(hours=1)
    assert latest().reason.endswith("is maintenance and takes no runs.")
    end_maintenance(host=target.host, by=None)
    at_noon.after(seconds=5)
    assert latest().state == OccurrenceState.STARTED


def test_a_run_gets_no_trial_while_its_host_is_in_a_maintenance_window(at_noon: Clock, target: Target) -> None:
    at = {"starts_at": DUE + timedelta(hours=1), "ends_at": DUE + timedelta(hours=2)}
    a_schedule(targets=[target])
    add_single_window(host=target.host, note="", by=None, **at)
    at_noon.to(DUE)
    assert Attempt.objects.filter(kind="trial").count() == 1
    Attempt.objects.all().delete()
    at_noon.after(hours=1)
    assert dispatch_host(target.host.pk) is None
    at_noon.after(hours=1)
    found = dispatch_host(target.host.pk)
    assert found is not None


def test_a_run_past_its_deadline_is_late_and_cancelled_if_told_to(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target], deadline_s=4 * 3600)
    at_noon.to(DUE)
    at_noon.after(hours=4)
    assert latest().late_at is None
    at_noon.after(seconds=1)
    assert latest().late_at == at_noon.now
    assert run_of(latest()).cancel_requested_at is None
    finish(run_of(latest()))
    schedule.at_deadline = AtDeadline.CANCEL
    schedule.save()
    at_noon.to(DUE + timedelta(days=1))
    at_noon.after(hours=4, seconds=1)
    run = run_of(latest())
    assert run.cancel_requested_at == at_noon.now
    assert "cancelled the run at its deadline, 2026-03-12 02:00 (Europe/Berlin)" in sentence(
        run.cancel_code, run.cancel_fields
    )


def test_a_cancelled_run_ends_its_occurrence(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    Attempt.objects.all().delete()
    run = run_of(latest())
    run.trials.update(state="planned")
    cancel_run(run=run, by=None)
    at_noon.after(seconds=5)
    assert run_of(latest()).state == RunState.CANCELLED
    assert states() == ["ended"]
