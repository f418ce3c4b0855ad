"""Time windows that repeat every week, in the local time of one time zone.

When clocks are set forward, a local time that does not exist means the end of the gap. When clocks are set back, a
local time exists twice: a window opens at the first one and closes at the second one.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone

from webapp.core.errors import Refusal

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EVERY_DAY = tuple(range(7))
_NAMED = {EVERY_DAY: "every day", (0, 1, 2, 3, 4): "Mon to Fri", (5, 6): "Sat and Sun"}


@dataclass(frozen=True)
class Span:
    """A span of time from `opens` to `closes` (exclusive); both are aware datetimes."""

    opens: datetime
    closes: datetime


@dataclass(frozen=True)
class WeeklyWindow:
    """Open from `opens` to `closes` on each of `days` (0 is Monday).

    If `closes` is not after `opens`, the window closes on the following day; equal times mean 24 hours.
    """

    days: tuple[int, ...]
    opens: time
    closes: time
    zone: ZoneInfo

    def __str__(self) -> str:
        days = _NAMED.get(self.days) or ", ".join(DAYS[day] for day in self.days)
        return f"{self.opens:%H:%M} to {self.closes:%H:%M}, {days} ({self.zone.key})"

    def span_at(self, at: datetime) -> Span | None:
        """The open span that contains this moment; None outside the window."""
        yesterday = at.astimezone(self.zone).date() - timedelta(days=1)
        return next((span for span in self._spans(yesterday, days=2) if span.opens <= at < span.closes), None)

    def next_span(self, at: datetime) -> Span | None:
        """The first span that opens after this moment. None for a window without days."""
        today = at.astimezone(self.zone).date()
        return next((span for span in self._spans(today - timedelta(days=1), days=16) if span.opens > at), None)

    def spans(self, at: datetime, *, days: int) -> Iterator[Span]:
        """Those that close after this moment and open within so many days, in order. They do not overlap."""
        yesterday = at.astimezone(self.zone).date() - timedelta(days=1)
        return (span for span in self._spans(yesterday, days=days + 2) if at < span.closes)

    def _spans(self, first: date, *, days: int) -> Iterator[Span]:
        over_midnight = timedelta(days=1 if self.closes <= self.opens else 0)
        for day in (first + timedelta(days=number) for number in range(days)):
            if day.weekday() in self.days:
                opens = _moment(day, self.opens, self.zone, fold=0)
                closes = _moment(day + over_midnight, self.closes, self.zone, fold=1)
                if opens < closes:
                    yield Span(opens, closes)


def _moment(day: date, at: time, zone: ZoneInfo, *, fold: int) -> datetime:
    """This local time as UTC; a time that does not exist becomes the end of its gap."""
    local = datetime.combine(day, at, zone).replace(fold=fold)
    moment = local.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return moment
    # In a gap, fold=0 gives a moment after its end, by as much as the time lies behind the gap's beginning.
    moment = local.replace(fold=0).astimezone(UTC).astimezone(zone)
    while (
        earlier := (moment.astimezone(UTC) - timedelta(minutes=1)).astimezone(zone)
    ).utcoffset() == moment.utcoffset():
        moment = earlier
    return moment.astimezone(UTC)


def local_time(at: datetime, zone: str) -> str:
    """“2026-03-29 03:00 (Europe/Berlin)”."""
    return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} ({zone})"


def viewers_time(at: datetime) -> str:
    """“2026-11-23 22:00 Europe/Berlin”: a time in the current time zone, which is the viewer's during a request."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M} {timezone.get_current_timezone_name()}"


@cache
def zone_names() -> frozenset[str]:
    """IANA names of all time zones, cached: reading them from disk takes 50 ms."""
    return frozenset(available_timezones() - {"localtime", "Factory"})


def time_zone(name: str) -> ZoneInfo:
    """The time zone with this IANA name. Raises Refusal time_zone_refused."""
    if name not in zone_names():
        raise Refusal("time_zone_refused", f"“{name}” is not a time zone. Use a name such as Europe/Berlin or UTC.")
    return ZoneInfo(name)


def weekly_window(days: Collection[int], opens: time, closes: time, zone: ZoneInfo) -> WeeklyWindow:
    """A window with its days in order. Raises Refusal window_refused if it never opens."""
    if not set(days) <= set(EVERY_DAY):
        raise Refusal("window_refused", "A day of the window is a number from 0 (Monday) to 6 (Sunday).")
    if opens.tzinfo or closes.tzinfo:
        raise Refusal("window_refused", "The times of a window are local and have no offset: write 22:00.")
    if opens.replace(second=0, microsecond=0) != opens or closes.replace(second=0, microsecond=0) != closes:
        raise Refusal("window_refused", "The times of a window are whole minutes: write 22:00.")
    if not days:
        raise Refusal("window_refused", "The window never opens: choose at least one day.")
    return WeeklyWindow(tuple(sorted(set(days))), opens, closes, zone)
