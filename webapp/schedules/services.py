"""Creates, changes, switches and deletes schedules."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import Target
from webapp.schedules.arming import (
    checked_drives,
    drives_to_be_armed,
    end_arming,
    refuse_unarmed,
    unarmed,
)
from webapp.schedules.due import make_occurrences, make_occurrences_due, miss_all, miss_waiting, turn_off
from webapp.schedules.locks import lock_schedules, locked_present, locked_schedule
from webapp.schedules.models import Occurrence, OccurrenceState, Schedule
from webapp.schedules.reasons import NOT_ARMED, Reason
from webapp.schedules.selectors import all_targets, group_targets
from webapp.schedules.spec import ScheduleSpec, checked_name, drafted, refuse_deleted_plan
from webapp.schedules.timing import due_after, refuse_impossible


@transaction.atomic
def create_schedule(*, spec: ScheduleSpec, by: User) -> Schedule:
    """A new schedule, switched on; one that overwrites drives is switched off until it is armed.

    Raises Refusal: name_refused, targets_refused, trigger_refused, cron_refused, time_zone_refused, time_passed,
    window_refused, deadline_refused, limit_refused, plan_deleted.
    """
    lock_schedules()  # of two schedules with one name, the second is refused
    schedule = drafted(spec, Schedule(owner=by), now=timezone.now())
    schedule.enabled = not checked_drives(spec.version, _targets(spec))
    schedule.off_code = "" if schedule.enabled else NOT_ARMED
    _set_next(schedule)
    schedule.save()
    schedule.targets.set(spec.targets)
    audit(by=by, action="schedule.create", on=schedule, detail=_detail(schedule, spec))
    return schedule


@transaction.atomic
def change_schedule(*, schedule: Schedule, spec: ScheduleSpec, by: User) -> Schedule:
    """Replace all values of `spec`. Raises Refusal as `create_schedule` does.

    Started occurrences continue, with the new window and deadline. If the plan version or the targets
    change, the arming ends, and occurrences that wait are missed.
    """
    locked = locked_present(schedule)
    make_occurrences_due(locked, timezone.now())
    before = (locked.version_id, locked.group_id, [str(pk) for pk in locked.target_order])
    drafted(spec, locked, now=timezone.now())
    drives = checked_drives(spec.version, _targets(spec))
    if before != (locked.version_id, locked.group_id, locked.target_order):
        end_arming(locked)
        miss_waiting(locked, Reason("changed", by=by), now=timezone.now())
    _keep_off_unarmed(locked, drives)
    _set_next(locked)
    locked.save()
    locked.targets.set(spec.targets)
    audit(by=by, action="schedule.change", on=locked, detail=_detail(locked, spec))
    return locked


def _keep_off_unarmed(schedule: Schedule, drives: Sequence[Target]) -> None:
    if unarmed(schedule, drives, timezone.now()):
        schedule.enabled, schedule.off_code = False, NOT_ARMED
    elif schedule.off_code == NOT_ARMED:
        schedule.off_code = ""


def _set_next(schedule: Schedule) -> None:
    schedule.next_due_at = next(due_after(schedule, timezone.now()), None) if schedule.enabled else None


@transaction.atomic
def switch_on(*, schedule: Schedule, by: User) -> None:
    """Switch it on again from now on.

    Raises Refusal plan_deleted, not_armed, targets_refused, or for a time that has passed.
    """
    locked = locked_present(schedule)
    if locked.enabled:
        return
    refuse_deleted_plan(locked.version)
    if not all_targets(locked):
        raise Refusal("targets_refused", "The schedule has no targets left. Edit it and choose targets.")
    refuse_impossible(locked, timezone.now())
    refuse_unarmed(locked, drives_to_be_armed(locked))
    locked.enabled, locked.off_code = True, ""
    _set_next(locked)
    locked.save(update_fields=["enabled", "off_code", "next_due_at"])
    audit(by=by, action="schedule.on", on=locked)


@transaction.atomic
def switch_off(*, schedule: Schedule, by: User) -> None:
    """Switch it off. Waiting occurrences become missed; started ones continue."""
    locked = locked_schedule(schedule)
    if not locked.enabled:
        return
    turn_off(locked, Reason("switched_off", by=by), now=timezone.now())
    locked.save(update_fields=["enabled", "next_due_at"])
    audit(by=by, action="schedule.off", on=locked)


@transaction.atomic
def delete_schedule(*, schedule: Schedule, by: User) -> None:
    """Hide it from lists. Its history stays, and it can be restored. Raises Refusal schedule_followed."""
    locked = locked_schedule(schedule)
    if locked.deleted_at:
        return
    followers = [one.name for one in locked.followers.filter(deleted_at=None)]
    if followers:
        words = f"Other schedules follow this one: {', '.join(followers)}. Change or delete them first."
        raise Refusal("schedule_followed", words)
    turn_off(locked, Reason("deleted", by=by), now=timezone.now())
    end_arming(locked)
    locked.deleted_at = timezone.now()
    locked.save()
    audit(by=by, action="schedule.delete", on=locked)


@transaction.atomic
def restore_schedule(*, schedule: Schedule, by: User) -> None:
    """Undo a deletion; the schedule stays switched off. Raises Refusal name_refused."""
    locked = locked_schedule(schedule)
    if locked.deleted_at is None:
        return
    checked_name(locked.name, locked)
    locked.deleted_at = None
    locked.save(update_fields=["deleted_at"])
    audit(by=by, action="schedule.restore", on=locked)


@transaction.atomic
def make_due(*, schedule: Schedule, by: User) -> None:
    """Make it due now, in addition to its own times; the run is started by this person.

    Raises Refusal schedule_off, or not_armed if it overwrites drives and another person armed it.
    """
    locked = locked_present(schedule)
    if not locked.enabled:
        raise Refusal("schedule_off", "The schedule is switched off. Switch it on first.")
    if drives_to_be_armed(locked) and locked.armed_by_id != by.pk:
        words = "This schedule overwrites drives. Only the person who armed it can run it now: arm it yourself first."
        raise Refusal("not_armed", words)
    made = [one.pk for one in make_occurrences(locked, timezone.now())]
    locked.occurrences.filter(pk__in=made).update(requested_by=by)
    audit(by=by, action="schedule.run_now", on=locked)


@transaction.atomic
def skip_occurrence(*, occurrence: Occurrence, by: User) -> None:
    """Skip a waiting occurrence. Raises Refusal occurrence_not_waiting."""
    lock_schedules()
    locked = Occurrence.objects.get(pk=occurrence.pk)
    if locked.state != OccurrenceState.WAITING:
        words = f"The occurrence cannot be skipped: it is {locked.get_state_display().lower()}."
        raise Refusal("occurrence_not_waiting", words)
    miss_all([locked], Reason("skipped", by=by), now=timezone.now())
    audit(by=by, action="schedule.skip", on=locked.schedule, detail={"due": locked.due_at.isoformat()})


def overwritten_by(spec: ScheduleSpec) -> list[Target]:
    """Drives and files that a schedule with this specification would overwrite. Raises Refusal targets_refused."""
    return checked_drives(spec.version, _targets(spec))


def _targets(spec: ScheduleSpec) -> list[Target]:
    return list(spec.targets) if spec.group is None else group_targets(spec.group)


def _detail(schedule: Schedule, spec: ScheduleSpec) -> dict[str, object]:
    on = [str(target) for target in spec.targets] if spec.group is None else [f"group {spec.group.slug}"]
    return {"plan": str(spec.version), "on": on, "trigger": schedule.trigger, "cron": schedule.cron}
