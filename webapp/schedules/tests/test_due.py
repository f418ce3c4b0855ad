"""Due times under a set clock: started, late, missed, and why."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.hosts.models import Target
from webapp.notices.models import Notice, Subscription
from webapp.plans.services import delete_plan
from webapp.runs.models import Priority, Run, RunState
from webapp.runs.services import start_run
from webapp.schedules.models import Occurrence, OccurrenceState, Overlap, Trigger
from webapp.schedules.selectors import last_occurrences
from webapp.schedules.services import delete_schedule, make_due, skip_occurrence, switch_off, switch_on
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.occurrences import latest, run_of, states
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_it_starts_at_its_time_and_is_due_again(at_noon: Clock, target: Target) -> None:
    owner = a_user()
    schedule = a_schedule(owner, targets=[target], note="every night")
    at_noon.to(DUE - timedelta(seconds=1))
    assert not Occurrence.objects.exists()
    at_noon.to(DUE)
    started = latest()
    run = run_of(started)
    assert (started.state, started.due_at) == (OccurrenceState.STARTED, DUE)
    assert (run.created_by, run.note, list(run.targets.all())) == (owner, "every night", [target])
    assert run.version == schedule.version
    at_noon.after(seconds=5)
    assert Run.objects.count() == 1
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE + timedelta(days=1)
    finish(run)
    at_noon.after(seconds=5)
    assert states() == ["ended"]


def test_once_is_once(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target], trigger=Trigger.ONCE, once_at=DUE)
    at_noon.to(DUE)
    at_noon.after(days=3)
    assert len(states()) == 1
    schedule.refresh_from_db()
    assert schedule.next_due_at is None


def test_a_host_that_is_away_is_waited_for_until_the_latest_start(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=3600)
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    assert latest().state == OccurrenceState.WAITING
    assert "is offline" in latest().reason
    at_noon.away = set()
    at_noon.after(minutes=50)
    assert latest().state == OccurrenceState.STARTED
    assert latest().reason == ""


def test_a_host_that_stays_away_is_missed_with_its_reason(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=3600)
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    at_noon.to(DUE + timedelta(minutes=60))
    assert latest().state == OccurrenceState.WAITING
    at_noon.after(seconds=1)
    missed = latest()
    assert (missed.state, missed.reason_code) == (OccurrenceState.MISSED, "latest_start_passed")
    assert missed.reason.startswith("It could not start by its latest start, 2026-03-10 23:00 (Europe/Berlin). Host ")
    assert not Run.objects.exists()


def test_a_run_still_going_skips_the_next(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *")
    at_noon.after(hours=1)
    number = run_of(latest()).number
    at_noon.after(hours=1)
    missed = latest()
    assert (missed.state, missed.reason_code) == (OccurrenceState.MISSED, "still_going")
    assert missed.reason == f"Run {number} of this schedule had not ended."


def test_a_run_still_going_is_waited_for_if_the_schedule_says_so(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *", overlap=Overlap.WAIT)
    at_noon.after(hours=1)
    first = run_of(latest())
    at_noon.after(hours=1)
    assert latest().reason == f"Run {first.number} of this schedule has not ended."
    at_noon.after(minutes=20)
    finish(first)
    at_noon.after(seconds=5)
    assert states() == ["ended", "started"]


def test_priority_decides_where_runs_enter_the_queue(at_noon: Clock, target: Target) -> None:
    for name, priority in (("low", Priority.LOW), ("normal", Priority.NORMAL), ("high", Priority.HIGH)):
        a_schedule(targets=[target], name=name, priority=priority)
    at_noon.to(DUE)
    by_place = Run.objects.order_by("queue_position").values_list("occurrence__schedule__name", flat=True)
    assert list(by_place) == ["high", "normal", "low"]
    Run.objects.update(state=RunState.QUEUED)
    hand = start_run(version=Run.objects.get(occurrence__schedule__name="low").version, targets=[target], by=None)
    ahead = Run.objects.filter(queue_position__gt=hand.queue_position).values_list(
        "occurrence__schedule__name", flat=True
    )
    assert list(ahead) == ["low"]


def test_what_waits_is_missed_when_the_schedule_is_switched_off_or_deleted(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target]), a_user("olga")
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    switch_off(schedule=schedule, by=person)
    assert (latest().state, latest().reason) == ("missed", "olga switched the schedule off.")
    at_noon.after(days=1)
    assert len(states()) == 1
    switch_on(schedule=schedule, by=person)
    at_noon.to(DUE + timedelta(days=2))
    delete_schedule(schedule=schedule, by=person)
    assert latest().reason == "olga deleted the schedule."


def test_one_that_waits_can_be_skipped_and_one_can_be_made_due(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target]), a_user("olga")
    at_noon.away = {target.host.slug}
    at_noon.after(minutes=5)
    make_due(schedule=schedule, by=person)
    at_noon.after(seconds=5)
    skip_occurrence(occurrence=latest(), by=person)
    assert (latest().reason_code, latest().reason) == ("skipped", "olga skipped it.")


def test_the_same_reason_is_told_once_an_hour(at_noon: Clock, target: Target) -> None:
    person = a_user()
    Subscription.objects.create(user=person, channel="webhook", url="https://x.example/", events=["missed"])
    a_schedule(targets=[target], cron="* * * * *")
    for _ in range(62):
        at_noon.after(minutes=1)
    assert states().count("missed") == 61
    assert list(Notice.objects.order_by("created_at").values_list("event", flat=True)) == ["missed", "missed"]


def test_a_deleted_plan_is_not_run(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target])
    delete_plan(plan=schedule.version.plan, by=a_user())
    at_noon.to(DUE)
    assert latest().reason_code == "plan_deleted"


def test_one_schedule_that_breaks_does_not_keep_the_others_from_running(
    at_noon: Clock, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    broken = a_schedule(targets=[target], name="broken")
    a_schedule(targets=[target], name="whole")
    type(broken).objects.filter(pk=broken.pk).update(cron="no cron line")
    at_noon.to(DUE)
    assert latest().schedule.name == "whole"
    assert "the next tick tries again" in caplog.text


def test_the_latest_occurrences_are_read_without_looking_at_all_of_them(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target])
    Occurrence.objects.bulk_create(
        Occurrence(schedule=schedule, due_at=NOON - timedelta(minutes=place), state="missed", reason_code="skipped")
        for place in range(500)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE schedules_occurrence")
    with CaptureQueriesContext(connection) as queries:
        assert [row.due_at for row in last_occurrences([schedule])[schedule.pk]] == [NOON]
    with connection.cursor() as cursor:
        for query in queries.captured_queries:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query['sql']}")
            (((plan,),),) = cursor.fetchall()
            assert sum(_rows_read(plan["Plan"])) < 50


def _rows_read(node: dict[str, Any]) -> Iterator[float]:
    yield (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    for child in node.get("Plans", ()):
        yield from _rows_read(child)
