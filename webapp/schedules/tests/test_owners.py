"""Who owns a schedule when a person loses rights or somebody takes over."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from webapp.core.models import AuditEntry, Role, User
from webapp.core.people import change_role, deactivate_user, remove_user
from webapp.hosts.models import Target
from webapp.notices.models import Event
from webapp.schedules.arming import arm_schedule, take_over
from webapp.schedules.services import make_due, switch_on
from webapp.schedules.tests.clock import Clock
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.overwriting import a_writing_schedule, armed
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_schedule
from webapp.tests.refusals import refuses

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker", "at_noon")]


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


@pytest.mark.parametrize(
    ("act", "happened"),
    [
        (lambda user, by: remove_user(user=user, by=by), "was removed"),
        (lambda user, by: deactivate_user(user=user, by=by), "was deactivated"),
        (lambda user, by: change_role(user=user, role=Role.VIEWER, by=by), "is now a viewer"),
    ],
)
def test_the_schedule_of_another_owner_is_switched_off_and_says_why(
    at_noon: Clock, drive: Target, act: Callable[[User, User], None], happened: str
) -> None:
    admin, owner, leaver = a_user("ada", Role.ADMIN), a_user("otto"), a_user("olga")
    subscription = a_subscription(user=owner, events=[Event.MISSED])
    schedule = a_writing_schedule(drive, owner)
    armed(schedule, drive, leaver)
    act(leaver, admin)
    reason = f"It was armed by olga, who {happened}."
    schedule.refresh_from_db()
    assert (schedule.owner, schedule.enabled, schedule.off_reason) == (owner, False, reason)
    notice = subscription.notices.get()
    without_name = reason.replace("olga", "a person")  # notices are stored as text, and name no person
    assert (notice.subject, without_name in notice.text) == ("Switched off: fill", True)
    entry = AuditEntry.objects.get(action="schedule.off")
    assert (entry.actor_name, entry.label) == ("ada", "fill")
    assert entry.detail == {"reason": without_name, "whose": {"person": leaver.pk}}
    assert AuditEntry.objects.get(action="schedule.disarm").detail == {"serials": [drive.serial]}
    at_noon.to(DUE)
    assert not schedule.occurrences.exists()
    armed(schedule, drive, owner)
    schedule.refresh_from_db()
    assert (schedule.enabled, schedule.off_reason) == (True, "")


def test_what_waits_for_an_arming_that_ends_is_missed_with_the_reason(at_noon: Clock, drive: Target) -> None:
    admin, leaver = a_user("ada", Role.ADMIN), a_user("olga")
    schedule = a_writing_schedule(drive, a_user("otto"))
    armed(schedule, drive, leaver)
    at_noon.away = {drive.host.slug}
    at_noon.to(DUE)
    remove_user(user=leaver, by=admin)
    missed = schedule.occurrences.get()
    assert (missed.reason_code, missed.reason) == ("armer_lost_rights", "It was armed by olga, who was removed.")


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
    change_role(user=first, role=Role.VIEWER, by=first, acknowledged=True)
    schedule.refresh_from_db()
    assert schedule.owner == second


def test_only_an_operator_may_take_over() -> None:
    schedule = a_schedule()
    with refuses("not_allowed"):
        take_over(schedule=schedule, by=a_user(role=Role.VIEWER))


def test_what_a_person_made_due_does_not_start_after_they_lost_their_rights(at_noon: Clock, target: Target) -> None:
    admin, owner, leaver = a_user("ada", Role.ADMIN), a_user("olga"), a_user("otto")
    schedule = a_schedule(owner, targets=[target])
    at_noon.away.add(target.host.slug)
    at_noon.after(minutes=10)
    make_due(schedule=schedule, by=leaver)
    at_noon.after(seconds=5)
    change_role(user=leaver, role=Role.VIEWER, by=admin)
    at_noon.away.clear()
    at_noon.after(seconds=5)
    occurrence = schedule.occurrences.get()
    assert (occurrence.state, occurrence.reason_code, occurrence.run) == ("missed", "requester_left", None)
