"""Creates, changes, switches and deletes schedules."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db import transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.windows import time_zone, weekly_window
from webapp.hosts.models import HostGroup, Target
from webapp.plans.models import PlanVersion
from webapp.runs.models import Priority, Run
from webapp.schedules.arming import (
    checked_drives,
    drives_to_be_armed,
    end_arming,
    refuse_unarmed,
    unarmed,
)
from webapp.schedules.due import make_occurrences, make_occurrences_due, miss_all, miss_waiting, turn_off
from webapp.schedules.models import (
    AtDeadline,
    Condition,
    GroupOrder,
    Occurrence,
    OccurrenceState,
    Overlap,
    Schedule,
    Trigger,
)
from webapp.schedules.reasons import NOT_ARMED, Reason
from webapp.schedules.selectors import all_targets, group_targets, lock_schedules, locked_present, locked_schedule
from webapp.schedules.timing import FARTHEST, checked_line, due_after, refuse_days, refuse_impossible

# A person's choices for a schedule, checked and copied into an unsaved row.

MAX_NAME = 80
MAX_NOTE = 500
MAX_LIMIT_S = 30 * 86400  # latest start and deadline
MAX_TARGETS = 100


@dataclass(frozen=True)
class Window:
    """Weekly, in the schedule's time zone; 0 is Monday. See core.windows."""

    days: tuple[int, ...]
    opens: time
    closes: time


@dataclass(frozen=True)
class ScheduleSpec:
    """All values of a schedule that a person chooses. Exactly one of `targets` and `group` is given."""

    name: str
    version: PlanVersion
    trigger: Trigger
    targets: Sequence[Target] = ()
    group: HostGroup | None = None
    group_order: GroupOrder = GroupOrder.SIDE_BY_SIDE
    once_at: datetime | None = None
    cron: str = ""
    time_zone: str = "UTC"
    after_schedule: Schedule | None = None
    after_run: Run | None = None
    condition: Condition = Condition.DONE
    window: Window | None = None
    start_within_s: int = 3600
    deadline_s: int | None = None
    at_deadline: AtDeadline = AtDeadline.NOTIFY
    overlap: Overlap = Overlap.SKIP
    priority: Priority = Priority.NORMAL
    note: str = ""
    first_day: date | None = None  # these three only of a cron line, in `time_zone`
    last_day: date | None = None
    except_days: Sequence[date] = ()


def drafted(spec: ScheduleSpec, schedule: Schedule, *, now: datetime) -> Schedule:
    """The unsaved schedule with all values of `spec`, checked. Raises Refusal as `create_schedule` does."""
    schedule.name = checked_name(spec.name, schedule)
    schedule.version = spec.version
    refuse_deleted_plan(spec.version)
    _refuse_targets(spec)
    schedule.group, schedule.group_order = spec.group, spec.group_order
    schedule.target_order = [str(target.pk) for target in spec.targets]
    schedule.time_zone = time_zone(spec.time_zone).key
    kept_trigger = schedule.pk is not None and _trigger(schedule) == _trigger(spec)
    _set_trigger(schedule, spec)
    _set_window(schedule, spec)
    _set_limits(schedule, spec)
    _set_days(schedule, spec, now=now)
    refuse_impossible(schedule, now, kept_trigger=kept_trigger)
    return schedule


def refuse_deleted_plan(version: PlanVersion) -> None:
    if version.plan.deleted_at:
        raise Refusal("plan_deleted", f"The plan “{version.plan.title}” was deleted. Restore it first.")


def _trigger(schedule: Schedule | ScheduleSpec) -> tuple[object, ...]:
    return schedule.trigger, schedule.once_at, schedule.after_run, schedule.after_schedule


def checked_name(name: str, schedule: Schedule) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise Refusal("name_refused", f"A schedule needs a name of 1 to {MAX_NAME} printable characters.")
    others = Schedule.objects.filter(name=name, deleted_at=None).exclude(pk=schedule.pk)
    if others.exists():
        raise Refusal("name_refused", f"There is already a schedule named “{name}”. Choose another name.")
    return name


def _refuse_targets(spec: ScheduleSpec) -> None:
    if spec.targets and spec.group is not None:
        raise Refusal("targets_refused", "Choose targets or a host group, and not both.")
    if not spec.targets and spec.group is None:
        raise Refusal("targets_refused", "Choose at least one target, or a host group.")
    if len(spec.targets) > MAX_TARGETS:
        raise Refusal("targets_refused", f"A schedule takes at most {MAX_TARGETS} targets.")
    if spec.group is not None and not spec.group.members.exists():
        raise Refusal("targets_refused", f"The host group “{spec.group}” has no hosts. Add hosts to it first.")


def _set_trigger(schedule: Schedule, spec: ScheduleSpec) -> None:
    """Keep only the value that belongs to the trigger."""
    schedule.trigger, schedule.condition = spec.trigger, spec.condition
    schedule.once_at = spec.once_at if spec.trigger == Trigger.ONCE else None
    schedule.cron = checked_line(spec.cron, schedule.name) if spec.trigger == Trigger.CRON else ""
    schedule.after_schedule = spec.after_schedule if spec.trigger == Trigger.AFTER_SCHEDULE else None
    schedule.after_run = spec.after_run if spec.trigger == Trigger.AFTER_RUN else None
    if spec.trigger == Trigger.ONCE and spec.once_at is None:
        raise Refusal("trigger_refused", "Enter a date and a time.")
    if spec.trigger == Trigger.AFTER_RUN and spec.after_run is None:
        raise Refusal("trigger_refused", "Choose a run that has not ended.")
    if spec.trigger == Trigger.AFTER_SCHEDULE:
        _refuse_circle(schedule, spec.after_schedule)


def _set_days(schedule: Schedule, spec: ScheduleSpec, *, now: datetime) -> None:
    """Days that have passed may stay, and may not be chosen."""
    is_recurring = spec.trigger == Trigger.CRON
    before = schedule.last_day
    schedule.first_day = spec.first_day if is_recurring else None
    schedule.last_day = spec.last_day if is_recurring else None
    schedule.except_days = [day.isoformat() for day in sorted({*spec.except_days})] if is_recurring else []
    if not is_recurring:
        schedule.paused_until = None
        return
    refuse_days(spec.first_day, spec.last_day, spec.except_days, now)
    if schedule.last_day and schedule.last_day != before and next(due_after(schedule, now), None) is None:
        raise Refusal("days_refused", f"It is never due until {schedule.last_day}. Choose a later last day.")


def _refuse_circle(schedule: Schedule, before: Schedule | None) -> None:
    """Locks the order of schedules until the end of the caller's transaction."""
    if before is None:
        raise Refusal("trigger_refused", "Choose the schedule that it follows.")
    lock_schedules()
    chain = {before.pk: before.name}
    step = Schedule.objects.get(pk=before.pk)  # read again under the lock
    if step.deleted_at:
        raise Refusal("trigger_refused", f"The schedule “{step}” was deleted. Choose another one.")
    while step.pk != schedule.pk and step.after_schedule is not None and step.after_schedule_id not in chain:
        step = step.after_schedule
        chain[step.pk] = step.name
    if schedule.pk in chain:
        names = " → ".join([*reversed(chain.values()), schedule.name])
        raise Refusal("trigger_refused", f"These schedules would start each other forever: {names}.")


def _set_window(schedule: Schedule, spec: ScheduleSpec) -> None:
    window = spec.window
    if window is None:
        schedule.window_days, schedule.window_opens, schedule.window_closes = [], None, None
        return
    checked = weekly_window(window.days, window.opens, window.closes, time_zone(spec.time_zone))
    if len(checked.days) == 7 and window.opens == window.closes:
        raise Refusal("window_refused", "The window is always open. Choose other times, or no window.")
    schedule.window_days = list(checked.days)
    schedule.window_opens, schedule.window_closes = window.opens, window.closes


def _set_limits(schedule: Schedule, spec: ScheduleSpec) -> None:
    for label, limit in (("latest start", spec.start_within_s), ("deadline", spec.deadline_s)):
        if limit is not None and not 60 <= limit <= MAX_LIMIT_S:
            raise Refusal("limit_refused", f"The {label} must be 1 minute to 30 days after the due time.")
    schedule.start_within_s, schedule.deadline_s = spec.start_within_s, spec.deadline_s
    schedule.at_deadline, schedule.overlap = spec.at_deadline, spec.overlap
    schedule.priority, schedule.note = spec.priority, spec.note.strip()
    if len(schedule.note) > MAX_NOTE:
        raise Refusal("note_too_long", f"The note has {len(schedule.note)} characters; the maximum is {MAX_NOTE}.")


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
    followers = [follower.name for follower in locked.followers.filter(deleted_at=None)]
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
    made = [occurrence.pk for occurrence in make_occurrences(locked, timezone.now())]
    locked.occurrences.filter(pk__in=made).update(requested_by=by)
    audit(by=by, action="schedule.run_now", on=locked)


@transaction.atomic
def pause_schedule(*, schedule: Schedule, until: datetime, by: User) -> None:
    """It is not due before `until`. Waiting occurrences and started runs continue.

    Raises Refusal pause_refused for a schedule without a cron line, and for a time that has passed.
    """
    now = timezone.now()
    if not now < until < now + FARTHEST:
        raise Refusal("pause_refused", "Choose a time in the future, within the next ten years.")
    _pause(schedule, until, "schedule.pause", by)


@transaction.atomic
def resume_schedule(*, schedule: Schedule, by: User) -> None:
    """End its pause: it is due from now on."""
    if locked_present(schedule).paused_until is not None:
        _pause(schedule, None, "schedule.resume", by)


@transaction.atomic
def skip_next(*, schedule: Schedule, by: User) -> None:
    """Pause it until after its next due time. Raises Refusal pause_refused if there is none."""
    due = locked_present(schedule).next_due_at
    if due is None:
        raise Refusal("pause_refused", "The schedule has no next due time.")
    _pause(schedule, due + timedelta(minutes=1), "schedule.skip_next", by)


def _pause(schedule: Schedule, until: datetime | None, action: str, by: User) -> None:
    locked = locked_present(schedule)
    if locked.trigger != Trigger.CRON:
        raise Refusal("pause_refused", "Only a recurring schedule can be paused. Switch this one off.")
    make_occurrences_due(locked, timezone.now())
    locked.paused_until = until
    _set_next(locked)
    locked.save(update_fields=["paused_until", "next_due_at"])
    audit(by=by, action=action, on=locked, detail={"until": until.isoformat()} if until else {})


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
