"""Times in the viewer's time zone."""

from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils import timezone

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


def _machine_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


@register.inclusion_tag("screens/tags/zone_note.html", takes_context=True)
def zone_note(context: dict[str, Any]) -> dict[str, object]:
    """The time zone of the times in a section. If the browser has another one, the script reloads the page once."""
    return {"zone": timezone.get_current_timezone_name(), "reload": context["request"].method == "GET"}
