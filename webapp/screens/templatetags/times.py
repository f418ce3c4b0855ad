"""Times in the viewer's time zone."""

from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def local_time(at: datetime | None, nothing: str = "–") -> SafeString:
    """“Mon 2026-11-23 22:00” in the viewer's time zone; the script puts “in 3 hours” into the title."""
    if at is None:
        return format_html("{}", nothing)
    machine = at.astimezone(UTC).isoformat(timespec="seconds")
    return SafeString(
        f'<time datetime="{machine}" data-absolute class="nowrap">{timezone.localtime(at):%a %Y-%m-%d %H:%M}</time>'
    )


@register.simple_tag
def clock_time(at: datetime) -> SafeString:
    """“22:00” in the viewer's time zone, where the day is said beside it."""
    machine = at.astimezone(UTC).isoformat(timespec="seconds")
    return SafeString(f'<time datetime="{machine}" data-absolute>{timezone.localtime(at):%H:%M}</time>')


@register.simple_tag(takes_context=True)
def zone_note(context: dict[str, Any]) -> SafeString:
    """Names the time zone of the times in a section. The script reloads a page once if it is not the browser's."""
    name = timezone.get_current_timezone_name()
    if context["request"].method != "GET":
        return format_html('<span class="muted small">Times in {}</span>', name)
    return format_html('<span class="muted small" data-zone="{}">Times in {}</span>', name, name)
