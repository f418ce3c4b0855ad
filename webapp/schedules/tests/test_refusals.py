"""Schedules that can never work are refused."""

from datetime import UTC, datetime, time
from typing import Any

import pytest

from webapp.core.errors import Refusal
from webapp.hosts.models import HostGroup
from webapp.schedules.models import Schedule, Trigger
from webapp.schedules.services import Window, change_schedule, create_schedule, delete_schedule, restore_schedule
from webapp.schedules.tests.moments import NIGHT, NOON
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.schedules import a_group, a_schedule, a_spec
from webapp.tests.refusals import refuses

FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)  # in other time zones it cannot be written

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker", "at_noon")]


def refusal(**changes: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        a_schedule(**changes)
    assert not Schedule.objects.exclude(name="before").exists()
    return refused.value


def refusal_of_another(**changes: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        a_schedule(name="another", **changes)
    return refused.value


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"name": "  "}, "name_refused", "needs a name"),
        ({"name": "x" * 81}, "name_refused", "1 to 80 printable characters"),
        ({"cron": "0 0 30 2 *"}, "cron_refused", "day-of-month is not valid"),
        ({"time_zone": "Berlin"}, "time_zone_refused", "is not a time zone"),
        ({"trigger": Trigger.ONCE}, "trigger_refused", "Enter a date"),
        ({"trigger": Trigger.ONCE, "once_at": NOON}, "time_passed", "13:00 (Europe/Berlin) has passed"),
        ({"trigger": Trigger.ONCE, "once_at": FIRST_MOMENT}, "time_refused", "within the next ten years"),
        ({"trigger": Trigger.AFTER_RUN}, "trigger_refused", "not ended"),
        ({"trigger": Trigger.AFTER_SCHEDULE}, "trigger_refused", "it follows"),
        ({"window": Window((), time(22), time(6))}, "window_refused", "never opens"),
        ({"window": Window((9,), time(22), time(6))}, "window_refused", "from 0"),
        ({"window": Window(tuple(range(7)), time(6), time(6))}, "window_refused", "always open"),
        ({"window": Window((0,), time(22), time(22, 0, 30))}, "window_refused", "whole minutes"),
        ({"cron": "0 12 * * *", "window": NIGHT}, "window_refused", "does not open between any due time"),
        ({"start_within_s": 59}, "limit_refused", "latest start must be 1 minute"),
        ({"deadline_s": 31 * 86400}, "limit_refused", "deadline must be 1 minute to 30 days"),
        ({"deadline_s": 600}, "deadline_refused", "must not be shorter than the latest start"),
        ({"note": "x" * 501}, "note_too_long", "the maximum is 500"),
    ],
)
def test_what_can_never_work_is_refused_in_words(changes: dict[str, Any], code: str, words: str) -> None:
    refused = refusal(**changes)
    assert refused.code == code
    assert words in refused.message


def test_a_line_for_every_minute_fits_a_window_that_opens_once_a_week() -> None:
    sunday = Window((6,), time(3), time(4))
    assert a_schedule(cron="* * * * *", window=sunday, start_within_s=60).next_due_at is not None
    refused = refusal_of_another(cron="0 5 * * *", window=sunday)
    assert refused.code == "window_refused"


def test_a_line_that_matches_once_in_four_years_is_checked_against_its_window_too() -> None:
    refused = refusal_of_another(cron="0 5 29 2 *", window=Window((6,), time(3), time(4)))
    assert refused.code == "window_refused"


def test_times_of_a_window_have_no_offset() -> None:
    aware = time(22, tzinfo=UTC)
    assert refusal_of_another(window=Window((6,), aware, time(4))).code == "window_refused"


def test_a_circle_that_exists_hangs_nobody() -> None:
    first = a_schedule(name="first")
    second = a_schedule(name="second", trigger=Trigger.AFTER_SCHEDULE, after_schedule=first)
    Schedule.objects.filter(pk=first.pk).update(trigger="after_schedule", after_schedule=second)
    first.refresh_from_db()
    assert a_schedule(name="third", trigger=Trigger.AFTER_SCHEDULE, after_schedule=first).pk


def test_a_plan_that_runs_nothing_on_these_targets_is_refused() -> None:
    with pytest.raises(Refusal, match="No part of the plan runs on these targets") as refused:
        a_schedule(targets=[a_target(kind="slot")])
    assert refused.value.code == "targets_refused"


def test_it_needs_targets_or_a_group_with_hosts() -> None:
    version = a_version()
    empty = HostGroup.objects.create(slug="empty", title="Empty")
    for spec in (
        a_spec(version=version, group=empty),
        a_spec(version=version, group=a_group(a_target()), targets=[a_target()]),
    ):
        with pytest.raises(Refusal, match=r"no hosts|not both"):
            create_schedule(spec=spec, by=a_user())


def test_a_name_is_used_once_among_those_that_are_not_deleted() -> None:
    first, person = a_schedule(), a_user()
    with refuses("name_refused"):
        a_schedule()
    delete_schedule(schedule=first, by=person)
    second = a_schedule()
    with refuses("name_refused"):
        restore_schedule(schedule=first, by=person)
    delete_schedule(schedule=second, by=person)
    restore_schedule(schedule=first, by=person)
    first.refresh_from_db()
    assert (first.deleted_at, first.enabled) == (None, False)


def test_schedules_that_would_start_each_other_forever_are_refused() -> None:
    fill = a_schedule(name="fill")
    read = a_schedule(name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    spec = a_spec(name="fill", version=fill.version, trigger=Trigger.AFTER_SCHEDULE, after_schedule=read)
    with pytest.raises(Refusal, match="forever: fill → read → fill"):
        change_schedule(schedule=fill, spec=spec, by=a_user())
    itself = a_spec(name="fill", version=fill.version, trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    with pytest.raises(Refusal, match="forever"):
        change_schedule(schedule=fill, spec=itself, by=a_user())


def test_a_schedule_that_others_follow_is_not_deleted() -> None:
    fill = a_schedule(name="fill")
    a_schedule(name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    with pytest.raises(Refusal, match="follow this one: read"):
        delete_schedule(schedule=fill, by=a_user())
