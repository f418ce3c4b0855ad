"""Due times that pass while the scheduler is down, and a server clock that is set."""

from datetime import timedelta

import pytest

from webapp.hosts.models import Target
from webapp.schedules.models import Occurrence, OccurrenceState, Trigger
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.occurrences import latest, run_of, states
from webapp.tests.factories.schedules import a_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_a_short_outage_makes_it_late_and_a_long_one_missed(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=3600)
    at_noon.to(DUE - timedelta(minutes=10))
    at_noon.to(DUE + timedelta(minutes=59))
    assert latest().state == OccurrenceState.STARTED
    finish(run_of(latest()))
    at_noon.to(DUE + timedelta(hours=23, minutes=50))
    at_noon.to(DUE + timedelta(hours=26))
    missed = latest()
    assert (missed.state, missed.reason_code) == (OccurrenceState.MISSED, "scheduler_down")
    words = "The scheduler did not run from 2026-03-11 21:50 (Europe/Berlin) to 2026-03-12 00:00 (Europe/Berlin)."
    assert missed.reason == words


def test_of_the_due_times_in_an_outage_only_the_latest_is_made_up_for(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *", start_within_s=1800)
    at_noon.to(NOON + timedelta(minutes=30))
    at_noon.to(NOON + timedelta(hours=5, minutes=10))
    assert states() == ["missed"] * 4 + ["started"]
    first = Occurrence.objects.earliest("due_at")
    assert first.reason_code == "scheduler_down"
    assert first.reason.endswith("Only the latest due time can still start.")


def test_an_outage_of_weeks_keeps_a_bounded_number_of_rows(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="*/5 * * * *")
    at_noon.to(NOON + timedelta(days=7))
    assert len(states()) == 101
    assert "At least 1,915 due times before this one were missed too" in Occurrence.objects.earliest("due_at").reason


def test_a_clock_that_is_set_back_starts_nothing_twice(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target])
    at_noon.to(DUE)
    at_noon.to(DUE - timedelta(hours=2))
    at_noon.to(DUE)
    assert len(states()) == 1


def test_a_clock_that_was_years_ahead_keeps_nothing_from_being_due(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target])
    at_noon.to(NOON + timedelta(days=3650))
    at_noon.to(NOON + timedelta(minutes=5))
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE


def test_a_due_time_that_was_missed_before_it_came_is_due_again(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target], start_within_s=1800)
    once = a_schedule(
        targets=[target], name="once", trigger=Trigger.ONCE, once_at=DUE + timedelta(days=1, hours=2), cron=""
    )
    at_noon.away = {target.host.slug}
    at_noon.to(NOON + timedelta(days=8, hours=10))  # by mistake; the last due time waits for its host
    at_noon.away = set()
    at_noon.to(NOON + timedelta(minutes=5))
    assert list(Occurrence.objects.filter(due_at__gt=at_noon.now)) == []
    schedule.refresh_from_db()
    once.refresh_from_db()
    assert (schedule.next_due_at, once.next_due_at) == (DUE, once.once_at)
    for day in (0, 1):
        at_noon.to(DUE + timedelta(days=day))
        assert latest().state == OccurrenceState.STARTED
        finish(run_of(latest()))
    at_noon.to(DUE + timedelta(days=1, hours=2))
    assert (latest().schedule, latest().state) == (once, OccurrenceState.STARTED)


def test_the_next_due_time_is_not_one_whose_run_started_while_the_clock_was_ahead(
    at_noon: Clock, target: Target
) -> None:
    schedule = a_schedule(targets=[target])
    at_noon.to(DUE)
    at_noon.to(DUE - timedelta(hours=2))
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE + timedelta(days=1)


def test_what_waits_does_not_start_before_its_time_when_the_clock_is_set_back(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target])
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    at_noon.away = set()
    at_noon.to(DUE - timedelta(hours=6))
    assert latest().state == OccurrenceState.WAITING
    at_noon.to(DUE)
    assert latest().state == OccurrenceState.STARTED


def test_after_months_without_a_look_the_latest_due_time_is_the_latest(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *", start_within_s=1800)
    at_noon.to(NOON + timedelta(days=100, minutes=10))
    assert latest().due_at == NOON + timedelta(days=100)
    assert latest().state == OccurrenceState.STARTED
