"""Filters and tags that show numbers, states and times the same way on every page."""

from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.core import formatting
from webapp.screens import points

register = template.Library()

register.filter("iops", formatting.iops)
register.filter("rate", formatting.bytes_per_s)
register.filter("latency", formatting.latency)
register.filter("bytes", formatting.bytes_decimal)
register.filter("binary_bytes", formatting.bytes_binary)
register.filter("duration", formatting.duration)
register.filter("ratio", formatting.ratio)
register.filter("percent", formatting.percent)
register.filter("point", points.in_words)


@register.simple_tag
def state_badge(thing: Any) -> SafeString:
    """The state of a run, trial or attempt in its one colour."""
    return format_html('<span class="badge state-badge state-{}">{}</span>', thing.state, thing.get_state_display())


@register.simple_tag
def host_mark(host: Any) -> SafeString:
    """Beside a host's name, wherever it stands: that it gets no trials now, and why. Nothing for an active host."""
    if host.state == "active":
        return SafeString("")
    words = "removed" if host.archived_at else host.get_state_display().lower()
    why = f": {host.maintenance_note}" if host.maintenance_note else ""
    state = "cancelled" if host.state == "maintenance" else "failed"
    return format_html(' <span class="badge state-badge state-{}" title="{}{}">{}</span>', state, words, why, words)


@register.simple_tag
def moment(at: datetime | None, nothing: str = "never") -> SafeString:
    """A time; the script makes it relative and puts the absolute one into the title."""
    if at is None:
        return format_html("{}", nothing)
    utc = at.astimezone(UTC)
    text = utc.isoformat(" ", "seconds")  # of digits and signs: nothing in it needs to be escaped
    return SafeString(f'<time datetime="{text.replace(" ", "T")}" class="nowrap">{text[:-9]} UTC</time>')


@register.simple_tag(takes_context=True)
def address_with(context: dict[str, Any], **changes: object) -> str:
    """The page's own query string with some parameters changed; None or "" takes one out."""
    query = context["request"].GET.copy()
    for key, value in changes.items():
        query.pop(key, None)
        if value not in (None, ""):
            query[key] = str(value)
    return f"?{query.urlencode()}"
