"""Who owns a schedule when its owner may no longer change anything.

The admin who took the rights away becomes the owner. The schedule is switched off and disarmed until somebody switches
it on. So every schedule always has an owner who may run it.
"""

from typing import Any

from django.db import transaction
from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import Role, User
from webapp.core.people import lost_rights
from webapp.core.services import audit
from webapp.runs.arming import disarm_run
from webapp.runs.models import Run
from webapp.schedules.arming import ARMING_COLUMNS, drives_to_be_armed, end_arming, switch_off_unarmed
from webapp.schedules.due import turn_off
from webapp.schedules.models import Schedule


@receiver(lost_rights)
def hand_over(*, user: User, by: User, **_: Any) -> None:
    """Give this person's schedules to an admin; runs that they armed and that have not begun are disarmed too.

    Runs inside the caller's transaction.
    """
    for schedule in Schedule.objects.select_for_update().filter(Q(armed_by=user) | Q(owner=user)):
        _disarm(schedule)
    heir = by if by.is_administrator and by.is_active and by.pk != user.pk else _another_admin(user)
    for schedule in Schedule.objects.select_for_update().filter(owner=user):
        schedule.owner = heir
        if schedule.enabled:
            schedule.off_reason = f"Its owner {user.username} may no longer run it."
            turn_off(schedule, "switched_off", schedule.off_reason, now=timezone.now())
        schedule.save(update_fields=["owner", "enabled", "next_due_at", "off_reason"])
        audit(by=by, action="schedule.owner", subject=str(schedule), detail=_moved(user, heir))
    for run in Run.objects.filter(armed_by=user, started_at=None, ended_at=None, occurrence__isnull=False):
        disarm_run(run=run, by=by)


@transaction.atomic
def take_over(*, schedule: Schedule, by: User) -> None:
    """Become the owner. An arming ends: it is the word of the person who gave it. Raises Refusal not_allowed."""
    locked = Schedule.objects.select_for_update().get(pk=schedule.pk)
    if not by.is_operator:
        raise Refusal("not_allowed", f"Your role is {by.role}; owning a schedule needs the role operator.")
    if locked.owner_id == by.pk:
        return
    before, locked.owner = locked.owner, by
    locked.save(update_fields=["owner"])
    _disarm(locked)
    if locked.enabled and drives_to_be_armed(locked):
        switch_off_unarmed(locked)
    audit(by=by, action="schedule.owner", subject=str(locked), detail=_moved(before, by))


def _disarm(schedule: Schedule) -> None:
    end_arming(schedule)
    schedule.save(update_fields=ARMING_COLUMNS)


def _another_admin(user: User) -> User:
    """There is one: the last admin who can log in is never removed."""
    admins = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk)
    found = admins.order_by("date_joined").first()
    if found is None:
        raise Refusal("schedules_owned", f"{user.username} owns schedules. Make another person an admin first.")
    return found


def _moved(before: User, after: User) -> dict[str, object]:
    return {"before": before.username, "after": after.username}
