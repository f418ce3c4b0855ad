"""A person's permission that the runs of a schedule may overwrite drives, and what ends it.

The admin who took the rights away becomes the owner of the person's schedules. These schedules, and the schedules of
others that the person armed, are disarmed and switched off until somebody switches them on. So every schedule always
has an owner who may run it, and no schedule stays on after its arming has ended in this way.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import Role, User
from webapp.core.people import lost_rights
from webapp.core.services import audit, person
from webapp.hosts.models import Target
from webapp.plans.document import read
from webapp.plans.expand import Expansion, expand
from webapp.plans.models import PlanVersion
from webapp.plans.preflight import destroyed
from webapp.plans.preview import PREVIEW_SEED
from webapp.plans.selectors import facts_for
from webapp.runs.actions.run_actions import disarm_run
from webapp.runs.arming import refuse_untyped
from webapp.runs.dispatch.queue import lock_queue
from webapp.runs.models import Run
from webapp.schedules.due import turn_off
from webapp.schedules.models import Schedule
from webapp.schedules.reasons import ARMER_LOST_RIGHTS, NOT_ARMED, OFF_COLUMNS, OWNER_LOST_RIGHTS, Reason
from webapp.schedules.selectors import all_targets, lock_schedules, locked_present, locked_schedule
from webapp.schedules.timing import notify_switched_off

# A person's permission that the runs of a schedule may overwrite drives.
#
# It names the schedule, the drives by their serials, the person and the day on which it ends. It ends early if the
# plan version, the targets or the owner change, or the person may no longer change anything. Each run inherits it
# when it starts (`runs.arming`).

MAX_ARMING = timedelta(days=366)
ARMING_COLUMNS = ("armed_serials", "armed_targets", "armed_until", "armed_by")


@transaction.atomic
def arm_schedule(*, schedule: Schedule, serials: Sequence[str], until: datetime, by: User) -> None:
    """Allow its runs to overwrite the drives with these serials until a date, in the name of this person.

    Raises Refusal nothing_to_arm, not_destroyable, not_armed, token_may_not_arm or arming_refused.
    """
    locked = locked_present(schedule)
    drives = drives_to_be_armed(locked)
    if not drives:
        raise Refusal("nothing_to_arm", "This schedule overwrites no drive.")
    if fixed := [target for target in drives if not target.destroy]:
        raise Refusal("not_destroyable", f"The policy of the host does not allow overwriting {listed(fixed)}.")
    refuse_untyped(drives, serials, by=by)
    now = timezone.now()
    if not now < until <= now + MAX_ARMING:
        raise Refusal("arming_refused", "Choose an end of the arming within the next 366 days.")
    locked.armed_serials = [target.arming_serial for target in drives]
    locked.armed_targets = [str(target.pk) for target in drives]
    locked.armed_until, locked.armed_by = until, by
    locked.save(update_fields=ARMING_COLUMNS)
    words = [f"{target}: {target.model} {target.arming_serial}".replace("  ", " ") for target in drives]
    detail = {"drives": words, "until": until.isoformat(), "plan": str(locked.version)}
    audit(by=by, action="schedule.arm", on=locked, detail=detail)


@transaction.atomic
def disarm_schedule(*, schedule: Schedule, by: User) -> None:
    """Switch it off until it is armed again. A started run keeps its arming and must be disarmed itself."""
    locked = locked_schedule(schedule)
    if locked.armed_until is None:
        return
    serials = locked.armed_serials
    end_arming(locked)
    locked.save(update_fields=ARMING_COLUMNS)
    if locked.enabled:
        switch_off_unarmed(locked)
    audit(by=by, action="schedule.disarm", on=locked, detail={"serials": serials})


def switch_off_unarmed(schedule: Schedule) -> None:
    """A schedule that overwrites drives is off until it is armed; waiting occurrences become missed."""
    turn_off(schedule, Reason(NOT_ARMED), now=timezone.now())
    schedule.off_code = NOT_ARMED
    schedule.save(update_fields=["enabled", "next_due_at", "off_code"])


def end_arming(schedule: Schedule) -> None:
    """The caller saves ARMING_COLUMNS."""
    schedule.armed_serials, schedule.armed_targets = [], []
    schedule.armed_until, schedule.armed_by = None, None


def drives_to_be_armed(schedule: Schedule) -> list[Target]:
    """The drives and files that its runs would overwrite, armed or not."""
    return drives_overwritten(schedule.version, all_targets(schedule))


def drives_overwritten(version: PlanVersion, targets: Sequence[Target]) -> list[Target]:
    """Devices and files that a run would overwrite: to be armed by their serials."""
    return destroyed(_expanded(version, targets).trials, targets) if targets else []


def checked_drives(version: PlanVersion, targets: Sequence[Target]) -> list[Target]:
    """The same. Raises Refusal plan_too_large, or targets_refused if no part of the plan runs on these targets."""
    expansion = _expanded(version, targets)
    if not expansion.trials:
        if expansion.too_large:
            raise Refusal(expansion.problem_code, " ".join(expansion.problems)[:1000])
        why = " ".join([*expansion.problems, *expansion.skipped])
        raise Refusal("targets_refused", f"No part of the plan runs on these targets. {why}".strip()[:1000])
    return destroyed(expansion.trials, targets)


def _expanded(version: PlanVersion, targets: Sequence[Target]) -> Expansion:
    document = read(version.document)
    return expand(document, facts_for(document, targets), seed=PREVIEW_SEED)


def unarmed(schedule: Schedule, drives: Sequence[Target], now: datetime) -> list[Target]:
    """Those of these drives that the schedule is not armed to overwrite now."""
    in_time = schedule.armed_until is not None and schedule.armed_until > now
    return [target for target in drives if not in_time or str(target.pk) not in schedule.armed_targets]


def refuse_unarmed(schedule: Schedule, drives: Sequence[Target]) -> None:
    """Raises Refusal not_armed unless the schedule is armed, now, for all of these drives."""
    if missing := unarmed(schedule, drives, timezone.now()):
        raise Refusal(NOT_ARMED, f"{Reason(NOT_ARMED)} Arm it: type the serial of {listed(missing)}.")


def listed(targets: Sequence[Target]) -> str:
    return ", ".join(f"{target} ({target.arming_serial})" for target in targets)


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
    admin = admins.order_by("date_joined").first()
    if admin is None:
        raise Refusal("schedules_owned", f"{user.username} owns schedules. Make another person an admin first.")
    return admin


def _moved(before: User, after: User) -> dict[str, object]:
    return {"before": person(before), "after": person(after)}
