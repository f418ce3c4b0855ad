"""The calendar of schedules: a month, and one day of it in full."""

import calendar
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from webapp.core.windows import DAYS, Span
from webapp.hosts.maintenance_windows import next_span, span_at
from webapp.hosts.models import MaintenanceWindow
from webapp.schedules.models import Occurrence, OccurrenceState, Schedule
from webapp.schedules.selectors import occurrences_list
from webapp.schedules.timing import count_between, due_after, just_before
from webapp.screens.access import page
from webapp.screens.schedules.words import heading

# A month of schedules by day: due, started and missed occurrences, and maintenance windows.

SHOWN_A_DAY = 6
LISTED_A_DAY = 24  # due times of one schedule in a day; a line for every minute has more
MAX_OCCURRENCES = 5000  # of the weeks of a month, or of one day


@dataclass(frozen=True)
class Entry:
    """A future due time, or an occurrence."""

    at: datetime
    schedule: Schedule
    occurrence: Occurrence | None = None

    @property
    def missed(self) -> bool:
        return self.occurrence is not None and self.occurrence.state == OccurrenceState.MISSED


@dataclass(frozen=True)
class Maintenance:
    """The part of a host's maintenance window in one day."""

    window: MaintenanceWindow
    from_start: datetime | None  # None: it opened before the day
    to_end: datetime | None  # None: it closes after the day


@dataclass
class Day:
    date: date
    in_month: bool
    entries: list[Entry] = field(default_factory=list)
    maintenance: list[Maintenance] = field(default_factory=list)
    unlisted: int = 0  # due times that are not in `entries`: see LISTED_A_DAY
    cut: bool = False  # earlier occurrences of the day were not read: see MAX_OCCURRENCES

    @property
    def shown(self) -> list[Entry]:
        """Each schedule once before any schedule twice, so that an hourly one does not hide the others."""
        first = {entry.schedule.pk: entry for entry in reversed(self.entries)}
        again = [entry for entry in self.entries if first[entry.schedule.pk] is not entry]
        chosen = [*sorted(first.values(), key=lambda entry: entry.at), *again][:SHOWN_A_DAY]
        return sorted(chosen, key=lambda entry: entry.at)

    @property
    def more(self) -> int:
        return max(0, len(self.entries) - SHOWN_A_DAY) + self.unlisted

    @property
    def hosts_in_maintenance(self) -> list[Maintenance]:
        """Each host once, for the grid."""
        return list({maintenance.window.host_id: maintenance for maintenance in reversed(self.maintenance)}.values())[
            ::-1
        ]


@dataclass(frozen=True)
class Month:
    """Weeks from Monday; the first and the last include days of the neighbouring months."""

    weeks: list[list[Day]]
    cut: bool  # earlier occurrences of these weeks were not read: see MAX_OCCURRENCES


def month_days(year: int, month: int, zone: tzinfo, now: datetime) -> Month:
    weeks = [
        [Day(day, day.month == month) for day in week] for week in calendar.Calendar().monthdatescalendar(year, month)
    ]
    cut = _fill({day.date: day for week in weeks for day in week}, zone, now)
    return Month(weeks, cut)


def one_day(day: date, zone: tzinfo, now: datetime, *, listed: int = LISTED_A_DAY) -> Day:
    listed_day = Day(day, True)
    listed_day.cut = _fill({day: listed_day}, zone, now, listed)
    return listed_day


def missed_in_month(first: date, zone: tzinfo) -> QuerySet[Occurrence]:
    """Latest first. `first`: the first day of the month."""
    end = (first + timedelta(days=31)).replace(day=1)
    missed = Occurrence.objects.filter(state=OccurrenceState.MISSED)
    missed = missed.filter(due_at__gte=_midnight(first, zone), due_at__lt=_midnight(end, zone))
    return missed.select_related("schedule", "host", "missed_by").order_by("-due_at", "position")


def _fill(days: dict[date, Day], zone: tzinfo, now: datetime, listed: int = LISTED_A_DAY) -> bool:
    """Whether there were more than MAX_OCCURRENCES occurrences; the days then contain only the latest."""
    start, end = _midnight(min(days), zone), _midnight(max(days) + timedelta(days=1), zone)
    occurrences = list(_occurrences(start, end)[: MAX_OCCURRENCES + 1])
    for occurrence in occurrences[:MAX_OCCURRENCES]:
        day = days[occurrence.due_at.astimezone(zone).date()]
        day.entries.append(Entry(occurrence.due_at, occurrence.schedule, occurrence))
    for schedule in Schedule.objects.filter(enabled=True, next_due_at__lt=end):
        _add_dues(schedule, days, zone, (max(start, now), end), listed)
    for day in days.values():
        day.entries.sort(key=lambda entry: (entry.at, entry.occurrence is None))
    for window, span in _windows(start, end):
        _add_maintenance(window, span, days, zone)
    return len(occurrences) > MAX_OCCURRENCES


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, zone)


def _occurrences(start: datetime, end: datetime) -> QuerySet[Occurrence]:
    """Latest first."""
    occurrences = occurrences_list().filter(due_at__gte=start, due_at__lt=end).select_related("schedule", "run", "host")
    return occurrences.order_by("-due_at", "position")


def _add_dues(
    schedule: Schedule, days: dict[date, Day], zone: tzinfo, bounds: tuple[datetime, datetime], listed: int
) -> None:
    """Future due times; those after the first `listed` of a day are only counted."""
    start, end = bounds
    in_day: Counter[date] = Counter()
    dues = due_after(schedule, just_before(start))
    while (due := next(dues, None)) is not None and due < end:
        date_there = due.astimezone(zone).date()
        in_day[date_there] += 1
        if in_day[date_there] <= listed:
            days[date_there].entries.append(Entry(due, schedule))
        else:
            midnight = _midnight(date_there + timedelta(days=1), zone)
            days[date_there].unlisted += count_between(schedule, due, midnight)
            dues = due_after(schedule, just_before(midnight))


def _windows(start: datetime, end: datetime) -> Iterator[tuple[MaintenanceWindow, Span]]:
    for window in MaintenanceWindow.objects.filter(host__archived_at=None).select_related("host"):
        span = span_at(window, start) or next_span(window, start)
        while span is not None and span.opens < end:
            yield window, span
            span = next_span(window, span.opens)


def _add_maintenance(window: MaintenanceWindow, span: Span, days: dict[date, Day], zone: tzinfo) -> None:
    last_moment = span.closes - timedelta(microseconds=1)
    opens, closes = span.opens.astimezone(zone).date(), last_moment.astimezone(zone).date()
    for day in days.values():
        if opens <= day.date <= closes:
            from_start = span.opens if day.date == opens else None
            to_end = span.closes if day.date == closes else None
            day.maintenance.append(Maintenance(window, from_start, to_end))


MISSED_SHOWN = 50
YEARS = range(1970, 2200)  # a cron line is searched for 50 years, and Python has no year 10000
MINUTES_A_DAY = 25 * 60  # also of the day on which clocks are set back


@page
def calendar_page(request: HttpRequest) -> HttpResponse:
    """`?month=2026-11` shows a month, `?day=2026-11-22` a day below its month; without either the current month.

    `&list=all` lists every due time of the day.
    """
    now, zone = timezone.now(), timezone.get_current_timezone()
    today = timezone.localdate(now)
    day = _read(request.GET.get("day", ""))
    first = _read(f"{request.GET.get('month', '')}-01") or (day or today).replace(day=1)
    month = month_days(first.year, first.month, zone, now)
    listed = MINUTES_A_DAY if request.GET.get("list") == "all" else LISTED_A_DAY
    missed = missed_in_month(first, zone)
    shown_missed = list(missed[:MISSED_SHOWN])
    context = {
        **heading(now),
        "first": first,
        "before": (first - timedelta(days=1)).replace(day=1),
        "after": (first + timedelta(days=31)).replace(day=1),
        "today": today,
        "weekdays": DAYS,
        "month": month,
        "most_occurrences": f"{MAX_OCCURRENCES:,}",
        "day": one_day(day, zone, now, listed=listed) if day else None,
        "listed_a_day": LISTED_A_DAY,
        "missed": shown_missed,
        "more_missed": missed.count() - len(shown_missed),
    }
    return render(request, "screens/schedule_calendar.html", context)


def _read(text: str) -> date | None:
    """None if it is not a date, or too far away."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year in YEARS else None
