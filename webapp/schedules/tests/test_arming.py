"""Schedules that overwrite drives: arming, and everything that ends it."""

from datetime import timedelta

import pytest

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, Role
from webapp.core.people import change_role
from webapp.hosts.models import Target
from webapp.hosts.services import begin_maintenance, end_maintenance
from webapp.runs.actions.run_actions import arm_run, pause_run, resume_run
from webapp.runs.arming import is_armed
from webapp.runs.models import Run
from webapp.runs.services import start_run
from webapp.schedules.arming import arm_schedule, disarm_schedule, take_over
from webapp.schedules.models import Occurrence
from webapp.schedules.services import change_schedule, make_due, switch_on
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.overwriting import a_writing_schedule, a_writing_version, armed
from webapp.tests.factories.hosts import a_drive
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_group, a_schedule, a_spec
from webapp.tests.refusals import refuses

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker", "at_noon")]


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
    assert (entry.label, entry.actor_name) == ("fill", "olga")
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
    with refuses("nothing_to_arm"):
        arm_schedule(schedule=a_schedule(), serials=["x"], until=NOON + timedelta(days=1), by=a_user())


def test_a_run_started_by_hand_still_needs_a_new_arming_after_a_long_pause(at_noon: Clock, drive: Target) -> None:
    person = a_user()
    run = start_run(version=a_writing_version(), targets=[drive], by=person, armed=[drive.serial])
    pause_run(run=run, by=person)
    at_noon.after(hours=2)
    resume_run(run=run, by=person)
    assert run.armed_until is None
    arm_run(run=run, serials=[drive.serial], by=person)
