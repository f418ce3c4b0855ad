"""Schedules that are due after another schedule or after a run."""

import pytest

from webapp.hosts.models import Target
from webapp.runs.models import Run, RunState
from webapp.runs.services import start_run
from webapp.schedules.models import Condition, Occurrence, OccurrenceState, Overlap, Trigger
from webapp.schedules.services import change_schedule, make_due
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.occurrences import latest, run_of
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_schedule, a_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_two_due_times_that_end_at_the_same_moment_are_followed_twice(at_noon: Clock, target: Target) -> None:
    fill = a_schedule(targets=[target], name="fill", cron="0 * * * *", overlap=Overlap.WAIT)
    a_schedule(targets=[target], name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill, condition="any")
    at_noon.after(hours=1)
    at_noon.set(at_noon.now)
    Occurrence.objects.create(
        schedule=fill, due_at=NOON, state="started", run=start_run(version=fill.version, targets=[target], by=None)
    )
    for run in Run.objects.all():
        finish(run)
    at_noon.after(seconds=5)
    assert Occurrence.objects.filter(schedule__name="read").count() == 2


def test_chains_follow_each_run_that_is_done(at_noon: Clock, target: Target) -> None:
    fill = a_schedule(targets=[target], name="fill")
    read = a_schedule(targets=[target], name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    verify = a_schedule(
        targets=[target], name="verify", trigger=Trigger.AFTER_SCHEDULE, after_schedule=read, condition=Condition.ANY
    )
    at_noon.to(DUE)
    finish(run_of(latest()))
    at_noon.after(minutes=1)
    assert (latest().schedule, latest().state) == (read, OccurrenceState.STARTED)
    finish(run_of(latest()), RunState.FAILED, "None of its trials was done; each says why.")
    at_noon.after(minutes=1)
    assert (latest().schedule, latest().state) == (verify, OccurrenceState.STARTED)


def test_what_follows_is_missed_where_the_run_before_is_not_done_or_was_missed(at_noon: Clock, target: Target) -> None:
    fill = a_schedule(targets=[target], name="fill")
    read = a_schedule(targets=[target], name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    a_schedule(targets=[target], name="any", trigger=Trigger.AFTER_SCHEDULE, after_schedule=read, condition="any")
    at_noon.to(DUE)
    run = run_of(latest())
    finish(run, RunState.FAILED, "broken")
    at_noon.after(minutes=1)
    missed = Occurrence.objects.get(schedule=read)
    assert missed.reason == f"It follows schedule “fill”, whose run {run.number} failed."
    last = Occurrence.objects.get(schedule__name="any")
    assert last.reason == f"It follows schedule “read”, which did not run: {missed.reason}"


def test_a_schedule_with_a_history_follows_one_run_too(at_noon: Clock, target: Target) -> None:
    person = a_user()
    schedule = a_schedule(person, targets=[target])
    at_noon.to(DUE)
    finish(run_of(latest()))
    at_noon.after(minutes=1)
    for _ in range(2):
        run = start_run(version=schedule.version, targets=[target], by=None)
        spec = a_spec(version=schedule.version, targets=[target], trigger=Trigger.AFTER_RUN, after_run=run)
        change_schedule(schedule=schedule, spec=spec, by=person)
        make_due(schedule=schedule, by=person)
        at_noon.after(minutes=1)
        finish(run_of(latest()))
        finish(run)
        at_noon.after(minutes=1)
        assert (latest().state, latest().due_at) == (OccurrenceState.STARTED, run.ended_at)
        finish(run_of(latest()))
        at_noon.after(minutes=1)


def test_it_follows_one_run_once(at_noon: Clock, target: Target) -> None:
    run = start_run(version=a_schedule(targets=[target]).version, targets=[target], by=None)
    after = a_schedule(targets=[target], name="after", trigger=Trigger.AFTER_RUN, after_run=run)
    at_noon.after(minutes=1)
    assert not after.occurrences.exists()
    finish(run)
    at_noon.after(minutes=1)
    at_noon.after(minutes=1)
    assert after.occurrences.get().state == OccurrenceState.STARTED
