"""The calendar of schedules: a month, and one day of it in full."""

from datetime import date, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from webapp.core.windows import DAYS
from webapp.screens.access import page
from webapp.screens.schedules.calendar_days import LISTED_A_DAY, MAX_OCCURRENCES, missed_in_month, month_days, one_day

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
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.year in YEARS else None
