"""The next due times of a schedule, and the effect of its window on each."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from webapp.schedules.models import Schedule
from webapp.schedules.timing import due_after, opens_in_time, start_within, window_of


@dataclass(frozen=True)
class ShownDue:
    """`there` is the time in the schedule's zone; `opens` is the opening of the window if it is closed at that time."""

    at: datetime
    there: str
    opens: datetime | None
    missed: bool  # the window opens after the latest start


def next_dues(schedule: Schedule, after: datetime, count: int = 5) -> list[ShownDue]:
    return shown_dues(schedule, islice(due_after(schedule, after), count))


def shown_dues(schedule: Schedule, times: Iterable[datetime]) -> list[ShownDue]:
    zone, window = ZoneInfo(schedule.time_zone), window_of(schedule)
    found = []
    for at in times:
        there = f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}"
        span = window.next_span(at) if window and window.span_at(at) is None else None
        missed = window is not None and not opens_in_time(window, at, start_within(schedule))
        found.append(ShownDue(at, there, span.opens if span else None, missed))
    return found
