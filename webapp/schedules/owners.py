"""Handles the schedules of a person who lost the right to change anything.

The admin who took the rights away becomes the owner of the person's schedules. These schedules, and the schedules of
others that the person armed, are disarmed and switched off until somebody switches them on. So every schedule always
has an owner who may run it, and no schedule stays on after its arming has ended in this way.
"""

from typing import Any

from django.db import transaction
from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import Role, User
from webapp.core.people import lost_rights
from webapp.core.services import audit, person
from webapp.runs.actions.arm import disarm_run
from webapp.runs.dispatch.queue import lock_queue
from webapp.runs.models import Run
from webapp.schedules.arming import ARMING_COLUMNS, drives_to_be_armed, end_arming, switch_off_unarmed
from webapp.schedules.due import turn_off
from webapp.schedules.locks import lock_schedules, locked_schedule
from webapp.schedules.models import Schedule
from webapp.schedules.notify import notify_switched_off
from webapp.schedules.reasons import ARMER_LOST_RIGHTS, OFF_COLUMNS, OWNER_LOST_RIGHTS, Reason


@receiver(lost_rights)
def hand_over(*, user: User, by: User, **_: Any) -> None:
    """Transfer this person's schedules to an admin, and disarm what the person armed and has not started.

    Runs inside the caller's transaction.
    """
    lock_schedules()
    heir = by if by.is_administrator and by.is_active and by.pk != user.pk else _another_admin(user)
    for schedule in Schedule.objects.filter(Q(owner=user) | Q(armed_by=user)):
        owned = schedule.owner_id == user.pk
        if owned:
            schedule.owner = heir
            schedule.save(update_fields=["owner"])
            audit(by=by, action="schedule.owner", on=schedule, detail=_moved(user, heir))
        _end_arming_of(schedule, by)
        if owned:
            _switch_off(schedule, Reason(OWNER_LOST_RIGHTS, by=user), by)
        else:
            _switch_off(schedule, Reason(ARMER_LOST_RIGHTS, {"how": _what_happened(user)}, by=user), by)
    lock_queue()
    for run in Run.objects.filter(armed_by=user, started_at=None, ended_at=None, occurrence__isnull=False):
        disarm_run(run=run, by=by)


def _end_arming_of(schedule: Schedule, by: User) -> None:
    if schedule.armed_until is not None:
        audit(by=by, action="schedule.disarm", on=schedule, detail={"serials": schedule.armed_serials})
        _disarm(schedule)


def _switch_off(schedule: Schedule, reason: Reason, by: User) -> None:
    """Switch it off with this reason, also for the occurrences that wait, and notify. Nothing if it is off."""
    if not schedule.enabled:
        return
    now = timezone.now()
    turn_off(schedule, reason, now=now)
    schedule.off_code, schedule.off_fields, schedule.off_person = reason.code, reason.fields, reason.by
    schedule.save(update_fields=["enabled", "next_due_at", *OFF_COLUMNS])
    audit(by=by, action="schedule.off", on=schedule, detail={"reason": str(reason), "whose": person(reason.by or by)})
    notify_switched_off(schedule, str(reason), now=now)


def _what_happened(user: User) -> str:
    """How this person lost their rights: “removed”, “disabled” or the role that they have now."""
    if user.left_at is not None:
        return "removed"
    return user.role if user.is_active else "disabled"


@transaction.atomic
def take_over(*, schedule: Schedule, by: User) -> None:
    """Become the owner. The arming ends, because another person gave it. Raises Refusal not_allowed."""
    locked = locked_schedule(schedule)
    if not by.is_operator:
        raise Refusal("not_allowed", f"Your role is {by.role}; owning a schedule requires the operator role.")
    if locked.owner_id == by.pk:
        return
    before, locked.owner = locked.owner, by
    locked.save(update_fields=["owner"])
    _disarm(locked)
    if locked.enabled and drives_to_be_armed(locked):
        switch_off_unarmed(locked)
    audit(by=by, action="schedule.owner", on=locked, detail=_moved(before, by))


def _disarm(schedule: Schedule) -> None:
    end_arming(schedule)
    schedule.save(update_fields=ARMING_COLUMNS)


def _another_admin(user: User) -> User:
    """Always exists: the last admin who can log in is never removed."""
    admins = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk)
    found = admins.order_by("date_joined").first()
    if found is None:
        raise Refusal("schedules_owned", f"{user.username} owns schedules. Make another person an admin first.")
    return found


def _moved(before: User, after: User) -> dict[str, object]:
    return {"before": person(before), "after": person(after)}
