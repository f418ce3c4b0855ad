"""Schedules in words: when, on what, and how each of their rules behaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone

from webapp.core.windows import time_zone
from webapp.hosts.models import Target
from webapp.schedules.models import AtDeadline, Condition, GroupOrder, Overlap, Schedule, Trigger
from webapp.schedules.notify import local_time
from webapp.schedules.selectors import in_order
from webapp.schedules.timing import trigger_in_words, window_of

TARGETS_NAMED = 3


@dataclass(frozen=True)
class Rule:
    label: str
    text: str


def when_in_words(schedule: Schedule) -> str:
    """“At 22:00 every day (Europe/Berlin)”, “Once at 2026-11-23 22:00 (Europe/Berlin)”."""
    if schedule.trigger == Trigger.ONCE and schedule.once_at:
        return f"Once at {local_time(schedule, schedule.once_at)}"
    return trigger_in_words(schedule)


def window_in_words(schedule: Schedule) -> str:
    """“22:00 to 06:00, Mon to Fri (Europe/Berlin)”; "" for none."""
    window = window_of(schedule)
    return str(window) if window else ""


def targets_in_words(targets: list[Target]) -> str:
    named = ", ".join(str(target) for target in targets[:TARGETS_NAMED])
    return f"{named} and {len(targets) - TARGETS_NAMED} more" if len(targets) > TARGETS_NAMED else named


def group_in_words(schedule: Schedule, hosts: int) -> str:
    """“Three servers (3 hosts, side by side)”."""
    order = GroupOrder(schedule.group_order).label.lower()
    return f"{schedule.group} ({hosts} host{'' if hosts == 1 else 's'}, {order})"


def on_in_words(schedule: Schedule) -> str:
    """The targets or the group; `schedule` comes from `schedules_list`. No query."""
    if schedule.group is not None:
        return group_in_words(schedule, getattr(schedule, "hosts", 0))
    return targets_in_words(in_order(schedule, schedule.targets.all()))


def limit_in_words(seconds: int) -> str:
    """A time limit as people type it: 90 s, 30 min, 2 h."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def sentence(schedule: Schedule, on: str) -> str:
    """The whole schedule: plan, targets, trigger, window and limits."""
    when = when_in_words(schedule)
    said = [f"Runs {schedule.version.plan.title}, version {schedule.version.number}, on {on}."]
    said += [f"{when}."]
    if window := window_in_words(schedule):
        said.append(f"Only in its window, {window}.")
    limit = limit_in_words(schedule.start_within_s)
    said.append(f"Missed if it cannot start within {limit} of the due time.")
    return " ".join(said)


def rules(schedule: Schedule) -> list[Rule]:
    """How it behaves: what the engine in `webapp.schedules` does, one sentence or two for each rule."""
    return list(_rules(schedule))


def _rules(schedule: Schedule) -> Iterator[Rule]:
    limit = limit_in_words(schedule.start_within_s)
    yield from _start(schedule)
    if window := window_in_words(schedule):
        yield Rule("Window", window)
        yield Rule(
            "Outside the window",
            "No run starts. A run that is going is paused and goes on when the window opens; a trial under way goes on "
            "to its end.",
        )
    counted = "the time at which it is a host's turn" if _one_by_one(schedule) else "the due time"
    yield Rule("Latest start", f"{limit} after {counted}. After that, the due time is missed, with the reason.")
    if schedule.trigger in (Trigger.CRON, Trigger.ONCE):
        yield Rule("Sweetspot is not running", _outage(schedule))
    yield Rule("A host is away", "The run waits until the latest start. The same holds for a host in maintenance.")
    yield Rule("An earlier run is still going", _overlap(schedule))
    yield Rule("Deadline", _deadline(schedule))
    if (schedule.trigger == Trigger.CRON or schedule.window_days) and clocks_change(time_zone(schedule.time_zone)):
        yield from _clocks(schedule)


def _start(schedule: Schedule) -> Iterator[Rule]:
    priority = schedule.get_priority_display().lower()
    behind = "before all waiting runs of a lower priority, behind the others"
    yield Rule("Start", f"The run enters the queue of its hosts with priority {priority}: {behind}.")
    if schedule.group is not None:
        side_by_side = "Each host gets a run of its own, all at the same due time."
        one_by_one = "Each host gets a run of its own. The next host has its turn when the run before has ended."
        yield Rule("Host group", one_by_one if _one_by_one(schedule) else side_by_side)
    if schedule.trigger in (Trigger.AFTER_SCHEDULE, Trigger.AFTER_RUN):
        yield Rule("The run before", _after(schedule))


def _one_by_one(schedule: Schedule) -> bool:
    return schedule.group is not None and schedule.group_order == GroupOrder.ONE_BY_ONE


def _after(schedule: Schedule) -> str:
    if schedule.condition == Condition.DONE:
        return "If it is not done, because it failed or was cancelled, this schedule is missed."
    if schedule.trigger == Trigger.AFTER_RUN:
        return "It may end as done, failed or cancelled."
    return "It may end as done, failed or cancelled. If it did not start at all, this schedule is missed."


def _outage(schedule: Schedule) -> str:
    late = "If Sweetspot is not running at a due time, the run starts late, up to the latest start; then it is missed."
    if schedule.trigger == Trigger.ONCE:
        return late
    return f"{late} Of several due times that pass meanwhile, only the latest is made up for; the others are missed."


def _overlap(schedule: Schedule) -> str:
    if schedule.overlap == Overlap.SKIP:
        text = "The new due time is skipped: it is missed."
    else:
        text = "The new run waits until it has ended, up to the latest start."
    if schedule.group is not None and not _one_by_one(schedule):
        text += " Each host counts for itself."
    return text


def _deadline(schedule: Schedule) -> str:
    if schedule.deadline_s is None:
        return "None. The run may take as long as it needs."
    after = limit_in_words(schedule.deadline_s)
    if schedule.at_deadline == AtDeadline.CANCEL:
        return f"{after} after the due time. A run that is still open then is cancelled, and a notice is sent."
    return f"{after} after the due time. A run that is still open then goes on, and a notice is sent."


def _clocks(schedule: Schedule) -> Iterator[Rule]:
    if schedule.trigger == Trigger.CRON:
        yield Rule(
            "Clocks are set forward",
            "A time that does not exist is due at the first moment after the gap: 02:30 becomes 03:00.",
        )
        yield Rule(
            "Clocks are set back",
            "A time that exists twice is due once, at the first. A line for every hour is due in both hours.",
        )
    if schedule.window_days:
        yield Rule(
            "Window, clocks change",
            "Set forward: a time that does not exist counts as the first moment after the gap. Set back: the window "
            "opens at the first of two equal times and closes at the second.",
        )


def clocks_change(zone: ZoneInfo) -> bool:
    """Whether the clocks of this zone are set forward or back within the next year."""
    now = timezone.now()
    offsets = {_offset(now + timedelta(days=14 * step), zone) for step in range(27)}
    return len(offsets) > 1


def _offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()
