"""When a schedule is due: its due times, its window and its time limits, and whether they can fit together."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from webapp.core.errors import Refusal
from webapp.core.formatting import WeeklyWindow, time_zone, weekly_window
from webapp.schedules import cron
from webapp.schedules.models import Condition, Schedule, Trigger
from webapp.schedules.notify import local_time

TRIED_OPENINGS = 1000  # of a window, when its due times are checked: nearly three years of a daily one
FARTHEST = timedelta(days=3653)
HORIZON = timedelta(days=30 * 365)  # every cron line that matches a date does so within 28 years


def due_after(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """Due times after a moment, ascending. None for a schedule without a time."""
    if schedule.trigger == Trigger.CRON:
        yield from cron.due_times(schedule.cron, time_zone(schedule.time_zone), after)
    elif schedule.trigger == Trigger.ONCE and schedule.once_at and schedule.once_at > after:
        yield schedule.once_at


def window_of(schedule: Schedule) -> WeeklyWindow | None:
    if not schedule.window_days:
        return None
    assert schedule.window_opens is not None
    assert schedule.window_closes is not None
    zone = time_zone(schedule.time_zone)
    return weekly_window(schedule.window_days, schedule.window_opens, schedule.window_closes, zone)


def start_within(schedule: Schedule) -> timedelta:
    return timedelta(seconds=schedule.start_within_s)


def deadline_of(schedule: Schedule, due_at: datetime) -> datetime | None:
    return None if schedule.deadline_s is None else due_at + timedelta(seconds=schedule.deadline_s)


def refuse_impossible(schedule: Schedule, now: datetime, *, kept_trigger: bool = False) -> None:
    """Raises Refusal if trigger, window and limits can never lead to a run.

    `kept_trigger`: it had this trigger before, so a past time is allowed.
    """
    if not kept_trigger:
        _refuse_past(schedule, now)
    if schedule.deadline_s is not None and schedule.deadline_s < schedule.start_within_s:
        words = (
            "The deadline must not be shorter than the latest start. Increase the deadline or reduce the latest start."
        )
        raise Refusal("deadline_refused", words)
    if window := window_of(schedule):
        _refuse_closed(schedule, window, now)


def _refuse_past(schedule: Schedule, now: datetime) -> None:
    if schedule.trigger == Trigger.AFTER_RUN and schedule.after_run and schedule.after_run.ended_at:
        raise Refusal("trigger_refused", f"Run {schedule.after_run.number} has ended. Choose a run that has not ended.")
    if schedule.trigger == Trigger.AFTER_SCHEDULE and schedule.after_schedule and schedule.after_schedule.deleted_at:
        raise Refusal("trigger_refused", f"Schedule “{schedule.after_schedule}”, which it follows, was deleted.")
    if schedule.trigger != Trigger.ONCE or schedule.once_at is None:
        return
    if abs(schedule.once_at - now) > FARTHEST:
        raise Refusal("time_refused", "Choose a time within the next ten years.")
    if schedule.once_at <= now:
        raise Refusal("time_passed", f"{local_time(schedule, schedule.once_at)} has passed. Choose a later time.")


def _refuse_closed(schedule: Schedule, window: WeeklyWindow, now: datetime) -> None:
    """Check one due time for each opening of the window: those in between cannot start either."""
    within, after, tried = start_within(schedule), now, 0
    while tried < TRIED_OPENINGS and (due := next(due_after(schedule, after), now + HORIZON)) < now + HORIZON:
        if opens_in_time(window, due, within):
            return
        span = window.next_span(due)
        assert span is not None
        after, tried = span.opens - within - timedelta(seconds=1), tried + 1
    if tried:
        raise Refusal(
            "window_refused",
            f"The window ({window}) does not open between any due time and its latest start. Change the time, the "
            "window or the latest start.",
        )


def opens_in_time(window: WeeklyWindow, due: datetime, within: timedelta) -> bool:
    """Whether the window is open at some moment from the due time to the latest start."""
    span = window.span_at(due) or window.next_span(due)
    return span is not None and span.opens <= due + within


@dataclass(frozen=True)
class Outlook:
    """Shown by a form before it is saved: the trigger in words and the next due times."""

    words: str
    dues: tuple[datetime, ...]


def outlook(schedule: Schedule, now: datetime, *, count: int = 5) -> Outlook:
    """Raises Refusal if the cron line cannot be read."""
    return Outlook(trigger_in_words(schedule), tuple(islice(due_after(schedule, now), count)))


def trigger_in_words(schedule: Schedule) -> str:
    """“At 22:00 every day (Europe/Berlin)”, “After each run of schedule fill”."""
    how = " if it is done" if schedule.condition == Condition.DONE else ", with any result"
    match schedule.trigger:
        case Trigger.CRON:
            return f"{cron.in_words(schedule.cron)} ({schedule.time_zone})"
        case Trigger.AFTER_SCHEDULE:
            return f"After each run of schedule “{schedule.after_schedule}”{how}"
        case Trigger.AFTER_RUN:
            return f"Once, after run {schedule.after_run.number if schedule.after_run else ''}{how}"
    return "Once"
