"""What a schedule may be, who may change it, and what it may overwrite."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import msgspec
import pytest

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, Role, User
from webapp.core.people import change_role, deactivate_user, remove_user
from webapp.core.tests.factories import DOCUMENT, a_drive, a_target, a_user, a_version
from webapp.hosts.groups import delete_group
from webapp.hosts.lifecycle import begin_maintenance, end_maintenance, remove_host
from webapp.hosts.models import HostGroup, Target
from webapp.plans.document import Part
from webapp.plans.models import PlanVersion
from webapp.runs.actions import arm_run, pause_run, resume_run
from webapp.runs.arming import is_armed
from webapp.runs.models import Run
from webapp.runs.services import start_run
from webapp.schedules.arming import arm_schedule, disarm_schedule
from webapp.schedules.models import Occurrence, Schedule, Trigger
from webapp.schedules.owners import take_over
from webapp.schedules.services import (
    change_schedule,
    create_schedule,
    delete_schedule,
    make_due,
    restore_schedule,
    switch_off,
    switch_on,
)
from webapp.schedules.spec import Window
from webapp.schedules.tests.clock import Clock, clock, finish
from webapp.schedules.tests.factories import a_group, a_schedule, a_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
DUE = datetime(2026, 3, 10, 21, tzinfo=UTC)
NIGHT = Window(days=tuple(range(7)), opens=time(22), closes=time(6))


@pytest.fixture(autouse=True)
def at_noon() -> Iterator[Clock]:
    with clock(NOON) as made:
        yield made


def a_writing_version() -> PlanVersion:
    parts = (Part(name="fill", factors={"pattern": "randwrite", "block_size": "4k"}),)
    return a_version(msgspec.structs.replace(DOCUMENT, parts=parts))


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
        ({"trigger": Trigger.ONCE, "once_at": NOON}, "time_passed", "has passed"),
        ({"trigger": Trigger.AFTER_RUN}, "trigger_refused", "not ended"),
        ({"trigger": Trigger.AFTER_SCHEDULE}, "trigger_refused", "it follows"),
        ({"window": Window((), time(22), time(6))}, "window_refused", "never opens"),
        ({"window": Window((9,), time(22), time(6))}, "window_refused", "from 0"),
        ({"window": Window(tuple(range(7)), time(6), time(6))}, "window_refused", "always open"),
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
    with pytest.raises(Refusal, match="has passed"):
        change_schedule(schedule=schedule, spec=replace(spec, once_at=NOON), by=person)


def test_a_host_with_schedules_is_archived_and_not_deleted() -> None:
    target = a_target()
    a_schedule(targets=[target])
    assert not remove_host(host=target.host, typed=target.host.slug, by=None)
    member = a_target()
    a_group(member)
    assert not remove_host(host=member.host, typed=member.host.slug, by=None)
    assert Schedule.objects.get().targets.count() == 1


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
    with pytest.raises(Refusal, match="already a schedule"):
        a_schedule()
    delete_schedule(schedule=first, by=person)
    second = a_schedule()
    with pytest.raises(Refusal, match="already a schedule"):
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
    with pytest.raises(Refusal, match="no targets any more"):
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
        with pytest.raises(Refusal, match="was deleted"):
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
    with pytest.raises(Refusal, match="switched off"):
        make_due(schedule=schedule, by=person)
    for _ in range(2):
        switch_on(schedule=schedule, by=person)
    assert AuditEntry.objects.filter(action__in=("schedule.on", "schedule.off")).count() == 2
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE


# ---- overwriting drives


@pytest.fixture
def drive() -> Target:
    return a_drive()


def a_writing_schedule(drive: Target, by: User) -> Schedule:
    return a_schedule(by, name="fill", version=a_writing_version(), targets=[drive])


def armed(schedule: Schedule, drive: Target, by: User, days: int = 30) -> None:
    until = NOON + timedelta(days=days)
    arm_schedule(schedule=schedule, serials=[drive.arming_serial], until=until, by=by)
    switch_on(schedule=schedule, by=by)


def test_a_schedule_that_overwrites_drives_is_off_until_it_is_armed(at_noon: Clock, drive: Target) -> None:
    person = a_user("olga")
    schedule = a_writing_schedule(drive, person)
    assert (schedule.enabled, schedule.off_reason) == (False, "It overwrites drives and is not armed.")
    with pytest.raises(Refusal, match=f"type the serial of {drive} \\({drive.serial}\\)"):
        switch_on(schedule=schedule, by=person)
    with pytest.raises(Refusal, match="To arm it, type"):
        arm_schedule(schedule=schedule, serials=["another"], until=NOON + timedelta(days=1), by=person)
    armed(schedule, drive, person)
    entry = AuditEntry.objects.get(action="schedule.arm")
    assert (entry.subject, entry.actor) == ("fill", "olga")
    assert entry.detail["until"] == "2026-04-09T12:00:00+00:00"
    assert drive.serial in entry.detail["drives"][0]


def test_each_run_takes_over_the_arming_and_keeps_it_in_long_pauses(at_noon: Clock, drive: Target) -> None:
    person = a_user("olga")
    armed(a_writing_schedule(drive, person), drive, person)
    at_noon.to(DUE)
    run = Occurrence.objects.get().run
    assert run is not None
    assert (run.armed_serials, run.armed_by, run.armed_until) == ([drive.serial], person, NOON + timedelta(days=30))
    at_noon.after(hours=20)
    assert is_armed(run)


@pytest.mark.parametrize("days", [-1, 0, 367])
def test_an_arming_ends_within_a_year(drive: Target, days: int) -> None:
    person = a_user()
    schedule = a_writing_schedule(drive, person)
    with pytest.raises(Refusal, match="within the next 366 days"):
        arm_schedule(schedule=schedule, serials=[drive.serial], until=NOON + timedelta(days=days), by=person)


def test_after_the_end_of_the_arming_it_is_missed_and_overwrites_nothing(at_noon: Clock, drive: Target) -> None:
    person = a_user()
    armed(a_writing_schedule(drive, person), drive, person, days=1)
    at_noon.to(DUE)
    run = Occurrence.objects.get().run
    assert run is not None
    finish(run)
    at_noon.to(DUE + timedelta(days=1))
    missed = Occurrence.objects.latest("due_at")
    assert (missed.state, missed.reason_code) == ("missed", "not_armed")
    ended = "The arming ended 2026-03-11 13:00 (Europe/Berlin)."
    assert missed.reason == f"{ended} The run would overwrite {drive} ({drive.serial})."


def test_another_drive_another_version_or_another_owner_ends_the_arming(drive: Target) -> None:
    person = a_user()
    schedule = a_writing_schedule(drive, person)
    armed(schedule, drive, person)
    other = a_drive()
    change_schedule(schedule=schedule, spec=a_spec(name="fill", version=schedule.version, targets=[other]), by=person)
    schedule.refresh_from_db()
    assert (schedule.enabled, schedule.armed_until) == (False, None)
    armed(schedule, other, person)
    take_over(schedule=schedule, by=a_user())
    schedule.refresh_from_db()
    assert (schedule.enabled, schedule.armed_until) == (False, None)


def test_a_disarmed_schedule_overwrites_nothing(at_noon: Clock, drive: Target) -> None:
    person = a_user()
    schedule = a_writing_schedule(drive, person)
    armed(schedule, drive, person)
    disarm_schedule(schedule=schedule, by=person)
    at_noon.to(DUE)
    schedule.refresh_from_db()
    assert (schedule.enabled, schedule.off_reason) == (False, "It overwrites drives and is not armed.")
    assert not Run.objects.exists()


def test_only_who_armed_it_may_run_it_now_and_starts_the_run(at_noon: Clock, drive: Target) -> None:
    owner, other = a_user("olga"), a_user("otto")
    schedule = a_writing_schedule(drive, owner)
    armed(schedule, drive, owner)
    with pytest.raises(Refusal, match="Only the person who armed it"):
        make_due(schedule=schedule, by=other)
    harmless = a_schedule(owner, name="read")
    make_due(schedule=harmless, by=other)
    at_noon.after(seconds=5)
    assert Run.objects.get().created_by == other
    make_due(schedule=schedule, by=owner)


def test_a_host_that_joined_the_group_after_the_arming_is_not_overwritten(at_noon: Clock, drive: Target) -> None:
    person, group = a_user(), a_group(drive)
    schedule = a_schedule(person, name="fill", version=a_writing_version(), group=group)
    armed(schedule, drive, person)
    other = a_drive()
    group.members.create(host=other.host, label="Z", place=9).targets.set([other])
    at_noon.to(DUE)
    by_host = dict(Occurrence.objects.values_list("host__slug", "reason_code"))
    assert by_host == {drive.host.slug: "", other.host.slug: "not_armed"}


def test_a_target_with_the_serial_of_an_armed_one_is_not_overwritten(at_noon: Clock, drive: Target) -> None:
    """A second namespace of the drive, or a file at the same path of another host."""
    person, group = a_user(), a_group(drive)
    schedule = a_schedule(person, name="fill", version=a_writing_version(), group=group)
    armed(schedule, drive, person)
    twin = a_drive(drive.host, serial=drive.serial)
    group.members.get().targets.set([twin])
    elsewhere = a_drive(serial=drive.serial)
    group.members.create(host=elsewhere.host, label="Z", place=9).targets.set([elsewhere])
    at_noon.to(DUE)
    assert set(Occurrence.objects.values_list("reason_code", flat=True)) == {"not_armed"}


def test_a_run_that_has_not_begun_is_disarmed_with_the_rights_of_who_armed_it(at_noon: Clock, drive: Target) -> None:
    admin, person = a_user("ada", Role.ADMIN), a_user("olga")
    schedule = a_writing_schedule(drive, admin)
    arm_schedule(schedule=schedule, serials=[drive.serial], until=NOON + timedelta(days=9), by=person)
    switch_on(schedule=schedule, by=admin)
    begin_maintenance(host=drive.host, note="", by=None)
    at_noon.to(DUE)
    end_maintenance(host=drive.host, by=None)
    at_noon.after(seconds=5)
    run = Occurrence.objects.get().run
    assert run is not None
    Run.objects.filter(pk=run.pk).update(started_at=None)  # it waits in the queue
    change_role(user=person, role=Role.VIEWER, by=admin)
    run.refresh_from_db()
    assert not is_armed(run)


def test_arming_what_overwrites_nothing_is_refused() -> None:
    with pytest.raises(Refusal, match="overwrites no drive"):
        arm_schedule(schedule=a_schedule(), serials=["x"], until=NOON + timedelta(days=1), by=a_user())


def test_a_run_started_by_hand_still_needs_a_new_arming_after_a_long_pause(at_noon: Clock, drive: Target) -> None:
    person = a_user()
    run = start_run(version=a_writing_version(), targets=[drive], by=person, armed=[drive.serial])
    pause_run(run=run, by=person)
    at_noon.after(hours=2)
    resume_run(run=run, by=person)
    assert run.armed_until is None
    arm_run(run=run, serials=[drive.serial], by=person)


# ---- owners


@pytest.mark.parametrize("how", ["removed", "deactivated", "viewer"])
def test_an_operator_who_leaves_leaves_no_schedule_without_an_owner(drive: Target, how: str) -> None:
    admin, leaver = a_user("ada", Role.ADMIN), a_user("olga")
    schedule = a_schedule(leaver)
    writing = a_writing_schedule(drive, admin)
    arm_schedule(schedule=writing, serials=[drive.serial], until=NOON + timedelta(days=9), by=leaver)
    switch_on(schedule=writing, by=admin)
    match how:
        case "removed":
            remove_user(user=leaver, by=admin)
        case "deactivated":
            deactivate_user(user=leaver, by=admin)
        case _:
            change_role(user=leaver, role=Role.VIEWER, by=admin)
    schedule.refresh_from_db()
    writing.refresh_from_db()
    assert (schedule.owner, schedule.enabled) == (admin, False)
    assert schedule.off_reason == "Its owner olga may no longer run it."
    assert writing.armed_until is None
    switch_on(schedule=schedule, by=admin)


def test_a_schedule_of_somebody_who_leaves_is_disarmed_whoever_armed_it(drive: Target) -> None:
    admin, leaver = a_user("ada", Role.ADMIN), a_user("olga")
    schedule = a_writing_schedule(drive, leaver)
    armed(schedule, drive, a_user("otto"))
    remove_user(user=leaver, by=admin)
    schedule.refresh_from_db()
    assert (schedule.owner, schedule.enabled, schedule.armed_until) == (admin, False, None)


def test_an_admin_who_leaves_by_themselves_hands_over_to_another_admin() -> None:
    first, second = a_user("ada", Role.ADMIN), a_user("bea", Role.ADMIN)
    schedule = a_schedule(first)
    change_role(user=first, role=Role.VIEWER, by=first, knowing=True)
    schedule.refresh_from_db()
    assert schedule.owner == second


def test_only_an_operator_may_take_over() -> None:
    schedule = a_schedule()
    with pytest.raises(Refusal, match="needs the role operator"):
        take_over(schedule=schedule, by=a_user(role=Role.VIEWER))
