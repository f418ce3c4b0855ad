"""A person's choices for a schedule, checked and copied into an unsaved row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time

from webapp.core.errors import Refusal
from webapp.core.formatting import time_zone, weekly_window
from webapp.hosts.models import HostGroup, Target
from webapp.plans.models import PlanVersion
from webapp.runs.models import Priority, Run
from webapp.schedules.cron import checked_line
from webapp.schedules.locks import lock_schedules
from webapp.schedules.models import AtDeadline, Condition, GroupOrder, Overlap, Schedule, Trigger
from webapp.schedules.timing import refuse_impossible

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
    refuse_impossible(schedule, now, kept_trigger=kept_trigger)
    return schedule


def refuse_deleted_plan(version: PlanVersion) -> None:
    if version.plan.deleted_at:
        raise Refusal("plan_deleted", f"The plan “{version.plan.title}” was deleted. Restore it first.")


def _trigger(one: Schedule | ScheduleSpec) -> tuple[object, ...]:
    return one.trigger, one.once_at, one.after_run, one.after_schedule


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
    schedule.cron = checked_line(spec.cron) if spec.trigger == Trigger.CRON else ""
    schedule.after_schedule = spec.after_schedule if spec.trigger == Trigger.AFTER_SCHEDULE else None
    schedule.after_run = spec.after_run if spec.trigger == Trigger.AFTER_RUN else None
    if spec.trigger == Trigger.ONCE and spec.once_at is None:
        raise Refusal("trigger_refused", "Enter a date and a time.")
    if spec.trigger == Trigger.AFTER_RUN and spec.after_run is None:
        raise Refusal("trigger_refused", "Choose a run that has not ended.")
    if spec.trigger == Trigger.AFTER_SCHEDULE:
        _refuse_circle(schedule, spec.after_schedule)


def _refuse_circle(schedule: Schedule, before: Schedule | None) -> None:
    """Locks the order of schedules until the end of the caller's transaction."""
    if before is None:
        raise Refusal("trigger_refused", "Choose the schedule that it follows.")
    lock_schedules()
    chain = {before.pk: before.name}
    step = Schedule.objects.get(pk=before.pk)  # read again under the lock
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
