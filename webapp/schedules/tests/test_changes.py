"""Changing, switching, deleting and restoring schedules."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.groups import delete_group
from webapp.hosts.models import Target
from webapp.hosts.services import remove_host
from webapp.schedules.arming import arm_schedule
from webapp.schedules.models import Occurrence, Schedule, Trigger
from webapp.schedules.services import (
    change_schedule,
    delete_schedule,
    make_due,
    restore_schedule,
    switch_off,
    switch_on,
)
from webapp.schedules.tests.clock import Clock
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.overwriting import a_writing_schedule
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_group, a_schedule, a_spec
from webapp.tests.refusals import refuses

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker", "at_noon")]


def test_a_once_that_waits_can_still_be_changed(at_noon: Clock) -> None:
    schedule, person = a_schedule(trigger=Trigger.ONCE, once_at=DUE), a_user()
    at_noon.away = {target.host.slug for target in schedule.targets.all()}
    at_noon.to(DUE)
    spec = a_spec(
        version=schedule.version, targets=list(schedule.targets.all()), trigger=Trigger.ONCE, once_at=DUE,
        start_within_s=7200,
    )  # fmt: skip
    change_schedule(schedule=schedule, spec=spec, by=person)
    at_noon.after(hours=1, minutes=30)
    assert Occurrence.objects.get().state == "waiting"
    with refuses("time_passed"):
        change_schedule(schedule=schedule, spec=replace(spec, once_at=NOON), by=person)


def test_a_host_with_schedules_is_archived_and_not_deleted() -> None:
    target = a_target()
    a_schedule(targets=[target])
    assert not remove_host(host=target.host, typed=target.host.slug, by=None)
    member = a_target()
    a_group(member)
    assert not remove_host(host=member.host, typed=member.host.slug, by=None)
    assert Schedule.objects.get().targets.count() == 1


def test_a_change_makes_it_due_anew_and_is_audited() -> None:
    schedule, person = a_schedule(), a_user()
    spec = a_spec(version=schedule.version, targets=list(schedule.targets.all()), cron="0 3 * * *")
    changed = change_schedule(schedule=schedule, spec=spec, by=person)
    assert changed.next_due_at == datetime(2026, 3, 11, 2, tzinfo=UTC)
    actions = list(AuditEntry.objects.filter(action__startswith="schedule.").values_list("action", flat=True))
    assert sorted(actions) == ["schedule.change", "schedule.create"]


def test_a_schedule_whose_group_was_deleted_is_not_switched_on() -> None:
    group, person = a_group(a_target()), a_user()
    schedule = a_schedule(person, group=group)
    delete_schedule(schedule=schedule, by=person)
    delete_group(group=group, by=person)
    restore_schedule(schedule=schedule, by=person)
    with pytest.raises(Refusal, match="no targets left"):
        switch_on(schedule=schedule, by=person)


def test_a_deleted_schedule_is_restored_before_anything_else(drive: Target) -> None:
    schedule, person = a_schedule(), a_user()
    delete_schedule(schedule=schedule, by=person)
    spec = a_spec(version=schedule.version, targets=[a_target()])
    for act in (
        lambda: switch_on(schedule=schedule, by=person),
        lambda: make_due(schedule=schedule, by=person),
        lambda: change_schedule(schedule=schedule, spec=spec, by=person),
        lambda: arm_schedule(schedule=schedule, serials=["x"], until=NOON + timedelta(days=1), by=person),
    ):
        with refuses("schedule_deleted"):
            act()


def test_what_waits_is_missed_where_the_targets_change(at_noon: Clock) -> None:
    schedule, person = a_schedule(), a_user("olga")
    at_noon.away = {target.host.slug for target in schedule.targets.all()}
    at_noon.to(DUE)
    spec = a_spec(version=schedule.version, targets=[a_target()])
    change_schedule(schedule=schedule, spec=spec, by=person)
    missed = Occurrence.objects.get()
    assert (missed.reason_code, missed.reason) == ("changed", "olga changed the plan or the targets of the schedule.")


def test_a_schedule_that_no_longer_overwrites_anything_says_so(drive: Target) -> None:
    person = a_user()
    schedule = a_writing_schedule(drive, person)
    changed = change_schedule(schedule=schedule, spec=a_spec(name="fill", targets=[drive]), by=person)
    assert (changed.enabled, changed.off_reason) == (False, "")
    switch_on(schedule=schedule, by=person)


def test_a_due_time_that_has_just_come_is_not_forgotten_by_a_change(at_noon: Clock) -> None:
    schedule, person = a_schedule(), a_user("olga")
    at_noon.set(DUE + timedelta(seconds=2))
    switch_off(schedule=schedule, by=person)
    assert Occurrence.objects.get().reason == "olga switched the schedule off."


def test_switching_twice_is_the_same_as_once() -> None:
    schedule, person = a_schedule(), a_user()
    for _ in range(2):
        switch_off(schedule=schedule, by=person)
    with refuses("schedule_off"):
        make_due(schedule=schedule, by=person)
    for _ in range(2):
        switch_on(schedule=schedule, by=person)
    assert AuditEntry.objects.filter(action__in=("schedule.on", "schedule.off")).count() == 2
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE


def test_a_run_from_before_the_schedule_had_a_group_is_still_going_for_its_hosts(at_noon: Clock) -> None:
    target, person = a_target(), a_user()
    schedule = a_schedule(targets=[target])
    at_noon.to(DUE)
    change_schedule(schedule=schedule, spec=a_spec(version=schedule.version, group=a_group(target)), by=person)
    at_noon.to(DUE + timedelta(days=1))
    assert list(Occurrence.objects.values_list("state", "reason_code")) == [("missed", "still_going"), ("started", "")]
