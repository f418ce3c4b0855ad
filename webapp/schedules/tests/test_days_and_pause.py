"""A recurring schedule is due on its days only, and not before the end of its pause; nicknames and H in cron lines."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.models import Target
from webapp.schedules.models import Schedule, Trigger
from webapp.schedules.selectors import schedules_list, state_of
from webapp.schedules.services import change_schedule, pause_schedule, resume_schedule, skip_next, switch_off
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.occurrences import latest, run_of, states
from webapp.schedules.timing import checked_line, count_between, due_after, read_days, trigger_in_words, written_days
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_schedule, a_spec

DAY = timedelta(days=1)
TODAY = date(2026, 3, 10)  # in Berlin, at NOON
database = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def recurring(cron: str = "0 22 * * *", zone: str = "Europe/Berlin", **days: Any) -> Schedule:
    return Schedule(trigger=Trigger.CRON, cron=cron, time_zone=zone, **days)


def dues(schedule: Schedule, count: int = 3) -> list[datetime]:
    return list(islice(due_after(schedule, NOON), count))


def test_it_is_due_from_its_first_to_its_last_day_in_its_time_zone() -> None:
    assert dues(recurring(first_day=TODAY + 2 * DAY)) == [DUE + 2 * DAY, DUE + 3 * DAY, DUE + 4 * DAY]
    assert dues(recurring(last_day=TODAY + DAY)) == [DUE, DUE + DAY]
    assert dues(recurring(last_day=TODAY - DAY)) == []
    after_midnight = recurring("30 0 * * *", first_day=TODAY + DAY, last_day=TODAY + DAY)
    assert dues(after_midnight) == [datetime(2026, 3, 10, 23, 30, tzinfo=UTC)]  # still the day before in UTC


def test_it_is_not_due_on_excluded_days() -> None:
    assert dues(recurring(except_days=["2026-03-10", "2026-03-12"])) == [DUE + DAY, DUE + 3 * DAY, DUE + 4 * DAY]


def test_it_is_not_due_before_the_end_of_its_pause_and_is_due_at_it() -> None:
    assert dues(recurring(paused_until=DUE + DAY), 1) == [DUE + DAY]
    assert dues(recurring(paused_until=DUE + timedelta(minutes=1)), 1) == [DUE + DAY]
    assert dues(recurring(paused_until=NOON - DAY), 1) == [DUE]


def test_the_calendar_counts_the_due_times_of_its_days() -> None:
    every_minute = recurring("* * * * *", "UTC", except_days=["2026-03-11"], last_day=date(2026, 3, 12))
    start = datetime(2026, 3, 10, 23, 50, tzinfo=UTC)
    assert count_between(every_minute, start, start + 5 * DAY) == 10 + 24 * 60


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("", ()),
        ("2026-12-24", ("2026-12-24",)),
        (" 2027-01-01 , 2026-12-31..2027-01-02;2027-01-05", ("2026-12-31", "2027-01-01", "2027-01-02", "2027-01-05")),
    ],
)
def test_excluded_days_are_read_and_written(text: str, days: tuple[str, ...]) -> None:
    assert read_days(text) == tuple(map(date.fromisoformat, days))
    assert read_days(written_days(days)) == read_days(text)


@pytest.mark.parametrize("text", ["Christmas", "2026-12-26..2026-12-24", "0001-01-01..9999-12-31", "..", "2026-13-01"])
def test_other_texts_are_no_days(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_days(text)
    assert refused.value.code == "days_refused"


def test_nicknames_are_lines() -> None:
    assert checked_line(" @Daily ") == "0 0 * * *"
    assert checked_line("@weekly") == "0 0 * * 0"
    for unknown in ("@reboot", "@", "@daily 3"):
        with pytest.raises(Refusal):
            checked_line(unknown)


def test_h_is_spread_over_its_range_by_the_name() -> None:
    minutes = [int(checked_line("H 2 * * *", f"nightly {n}").split()[0]) for n in range(300)]
    assert min(minutes) < 5
    assert max(minutes) > 54
    assert len({*minutes}) > 50
    hours = {int(checked_line("0 H(1-4) * * *", f"nightly {n}").split()[1]) for n in range(60)}
    assert hours == {1, 2, 3, 4}
    firsts = {checked_line("H/15 * * * *", f"nightly {n}").split()[0] for n in range(200)}
    assert firsts == {f"{n}-59/15" for n in range(15)}
    assert checked_line("H H * * *", "a") == checked_line("H H * * *", "a")
    assert all(int(checked_line("0 0 H * *", f"{n}").split()[2]) <= 28 for n in range(100))


@pytest.mark.parametrize("line", ["H(5-70) * * * *", "H(9-1) * * * *", "H/0 * * * *", "Hx * * * *", "H-3 * * * *"])
def test_an_h_outside_its_range_is_refused(line: str) -> None:
    with pytest.raises(Refusal) as refused:
        checked_line(line)
    assert refused.value.code == "cron_refused"


class TestStored:
    pytestmark = database

    def test_it_runs_on_its_days_and_is_then_finished(self, at_noon: Clock, target: Target) -> None:
        schedule = a_schedule(targets=[target], first_day=TODAY, last_day=TODAY + 2 * DAY, except_days=(TODAY + DAY,))
        assert schedule.next_due_at == DUE
        at_noon.to(DUE)
        finish(run_of(latest()))
        at_noon.to(DUE + DAY)
        assert len(states()) == 1
        assert latest().due_at == DUE
        at_noon.to(DUE + 2 * DAY)
        assert latest().due_at == DUE + 2 * DAY
        assert state_of(schedules_list().get()) == "on"
        finish(run_of(latest()))
        at_noon.after(days=3)
        assert len(states()) == 2
        assert state_of(schedules_list().get()) == "finished"

    def test_skip_next_skips_one_due_time(self, at_noon: Clock, target: Target) -> None:
        owner = a_user()
        schedule = a_schedule(owner, targets=[target])
        skip_next(schedule=schedule, by=owner)
        at_noon.to(DUE)
        assert states() == []
        at_noon.to(DUE + DAY)
        assert latest().due_at == DUE + DAY
        assert AuditEntry.objects.filter(action="schedule.skip_next").count() == 1

    def test_a_pause_ends_by_itself_or_by_a_person(self, at_noon: Clock, target: Target) -> None:
        owner = a_user()
        schedule = a_schedule(owner, targets=[target])
        pause_schedule(schedule=schedule, until=NOON + 30 * DAY, by=owner)
        schedule.refresh_from_db()
        assert schedule.next_due_at == DUE + 30 * DAY - timedelta(hours=1)  # summer time has begun
        resume_schedule(schedule=schedule, by=owner)
        resume_schedule(schedule=schedule, by=owner)
        schedule.refresh_from_db()
        assert (schedule.paused_until, schedule.next_due_at) == (None, DUE)
        assert AuditEntry.objects.filter(action="schedule.resume").count() == 1

    def test_a_due_time_that_has_come_is_not_lost_by_a_pause(self, at_noon: Clock, target: Target) -> None:
        owner = a_user()
        schedule = a_schedule(owner, targets=[target])
        at_noon.set(DUE + timedelta(seconds=2))  # before the next tick
        pause_schedule(schedule=schedule, until=DUE + 5 * DAY, by=owner)
        assert latest().due_at == DUE

    def test_what_cannot_be_paused_is_refused(self, at_noon: Clock, target: Target) -> None:
        owner = a_user()
        once = a_schedule(owner, name="once", targets=[target], trigger=Trigger.ONCE, once_at=DUE)
        off = a_schedule(owner, name="off", targets=[target])
        switch_off(schedule=off, by=owner)
        refused_by: tuple[Callable[[], object], ...] = (
            lambda: pause_schedule(schedule=once, until=DUE, by=owner),
            lambda: skip_next(schedule=once, by=owner),
            lambda: pause_schedule(schedule=off, until=NOON - DAY, by=owner),
            lambda: pause_schedule(schedule=off, until=NOON + 5000 * DAY, by=owner),
            lambda: skip_next(schedule=off, by=owner),
        )
        for change in refused_by:
            with pytest.raises(Refusal) as why:
                change()
            assert why.value.code == "pause_refused"

    def test_days_without_a_due_time_are_refused_and_past_ones_may_stay(self, at_noon: Clock, target: Target) -> None:
        owner = a_user()
        impossible: tuple[dict[str, Any], ...] = (
            {"first_day": TODAY + DAY, "last_day": TODAY},
            {"last_day": TODAY - DAY},
            {"last_day": TODAY, "except_days": (TODAY,)},
            {"first_day": date(1, 1, 1)},
            {"last_day": date(9999, 12, 31)},
            {"except_days": tuple(TODAY + n * DAY for n in range(500))},
        )
        for days in impossible:
            with pytest.raises(Refusal) as refused:
                a_schedule(owner, targets=[target], **days)
            assert refused.value.code == "days_refused"
        schedule = a_schedule(owner, targets=[target], last_day=TODAY)
        at_noon.set(NOON + 9 * DAY)
        change_schedule(schedule=schedule, spec=a_spec(targets=[target], last_day=TODAY, note="old"), by=owner)
        schedule.refresh_from_db()
        assert (schedule.note, schedule.next_due_at) == ("old", None)


def test_the_days_are_part_of_the_words() -> None:
    words = trigger_in_words(recurring(first_day=TODAY, last_day=TODAY + DAY, except_days=["2026-03-12", "2026-03-13"]))
    assert "from 2026-03-10 to 2026-03-11" in words
    assert "not on 2026-03-12 to 2026-03-13" in words
