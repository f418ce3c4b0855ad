"""Times in the viewer's time zone."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

from django import template
from django.utils import timezone

from webapp.runs.models import Run

register = template.Library()


@register.inclusion_tag("screens/tags/local_time.html")
def local_time(at: datetime | None, nothing: str = "–") -> dict[str, object]:
    """“Mon 2026-11-23 22:00” in the viewer's time zone; the script adds “in 3 hours” as the title."""
    if at is None:
        return {"nothing": nothing}
    return {"machine": _machine_text(at), "text": f"{timezone.localtime(at):%a %Y-%m-%d %H:%M}", "nowrap": True}


@register.inclusion_tag("screens/tags/local_time.html")
def clock_time(at: datetime) -> dict[str, object]:
    """“22:00” in the viewer's time zone, for places that show the day nearby."""
    return {"machine": _machine_text(at), "text": f"{timezone.localtime(at):%H:%M}"}


@register.inclusion_tag("screens/tags/local_time.html")
def short_time(at: datetime | None, nothing: str = "–") -> dict[str, object]:
    """“22:00” of today, “Tue 22:00” of the days around it, else “24 Nov”, in the viewer's time zone."""
    if at is None:
        return {"nothing": nothing}
    local, today = timezone.localtime(at), timezone.localtime().date()
    days = abs((local.date() - today).days)
    text = f"{local:%H:%M}" if days == 0 else f"{local:%a %H:%M}" if days == 1 else f"{local.day} {local:%b}"
    return {"machine": _machine_text(at), "text": text, "nowrap": True}


NIGHT_BEGINS, NIGHT_ENDS = 20, 8  # hours, in the viewer's time zone


@register.simple_tag
def nights_of(runs: Iterable[Run], is_grouped: object) -> list[tuple[str, list[Run]]]:
    """Groups of runs in their order, with a title: “Now”, “Tonight”, “Yesterday”. One without a title unless
    `is_grouped`."""
    if not is_grouped:
        return [("", list(runs))]
    return [(title, list(group)) for title, group in groupby(runs, key=lambda run: night_of(run.ended_at))]


def night_of(ended_at: datetime | None) -> str:
    """The day or the night, named by its morning, of this time; “Now” for None."""
    if ended_at is None:
        return "Now"
    local, today = timezone.localtime(ended_at), timezone.localtime().date()
    is_night = not NIGHT_ENDS <= local.hour < NIGHT_BEGINS
    day = local.date() + timedelta(days=local.hour >= NIGHT_BEGINS)
    if not is_night:
        return day_in_words(day)
    if day > today:
        return "Tonight"
    return "Last night" if day == today else f"Night to {_date(day)}"


def day_in_words(day: date) -> str:
    """“Today”, “Yesterday” or “Fri 27 Nov”, in the viewer's time zone."""
    return {0: "Today", 1: "Yesterday"}.get((timezone.localdate() - day).days) or _date(day)


def _date(day: date) -> str:
    """“Fri 27 Nov”, with the year if it is not the current one."""
    return f"{day:%a} {day.day} {day:%b}" + ("" if day.year == timezone.localdate().year else f" {day.year}")


def _machine_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


@register.inclusion_tag("screens/tags/zone_note.html", takes_context=True)
def zone_note(context: dict[str, Any]) -> dict[str, object]:
    """The time zone of the times in a section. If the browser has another one, the script reloads the page once."""
    return {"zone": timezone.get_current_timezone_name(), "reload": context["request"].method == "GET"}
