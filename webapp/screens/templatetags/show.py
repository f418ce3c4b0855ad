"""Filters and tags that show numbers, states, times and options the same way on every page."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from webapp.core import formatting
from webapp.hosts.maintenance_windows import OpenWindow, open_windows
from webapp.results.metrics import METRICS, in_unit
from webapp.results.validity import marks_changed
from webapp.runs.selectors import doing
from webapp.screens import point_words
from webapp.screens.choices import Option
from webapp.screens.runs.wear import engine_labels

register = template.Library()

register.filter("iops", formatting.iops)
register.filter("count", formatting.count)
register.filter("seconds_of_ms", formatting.seconds_of_ms)
register.filter("rate", formatting.bytes_per_s)
register.filter("latency", formatting.latency)
register.filter("bytes", formatting.bytes_decimal)
register.filter("growth", formatting.bytes_growth)
register.filter("binary_bytes", formatting.bytes_binary)
register.filter("duration", formatting.duration)
register.filter("estimated_duration", formatting.estimated_duration)
register.filter("ratio", formatting.ratio)
register.filter("percent", formatting.percent)
register.filter("point", point_words.in_words)
register.filter("engine_labels", engine_labels)


@register.simple_tag
def metric_label(key: str, *, short: bool = False) -> str:
    """The label of a metric; `short` in tables whose columns are all latencies."""
    return METRICS[key].short if short else METRICS[key].label


@register.filter
def metric_text(metric: dict[str, Any]) -> str:
    """An engine-specific metric with its unit: see results.models.StreamRun.metrics."""
    return in_unit(metric["unit"], metric["value"])


register.filter("doing", doing)


@register.inclusion_tag("screens/tags/words.html")
def words(text: object) -> dict[str, Any]:
    """A message whose parts between backticks are shown as code; the same as `messageNodes` in dom.ts."""
    if isinstance(text, SafeString):
        return {"pieces": [(text, False)]}
    parts = str(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its pair is text
        return {"pieces": [(text, False)]}
    return {"pieces": [(part, place % 2 == 1) for place, part in enumerate(parts) if part]}


@register.inclusion_tag("screens/tags/state_badge.html")
def state_badge(thing: Any) -> dict[str, str]:
    """The state of a run, trial or attempt as a coloured badge."""
    return {"state": thing.state, "label": thing.get_state_display()}


@register.inclusion_tag("screens/tags/host_mark.html", takes_context=True)
def host_mark(context: Context, host: Any) -> dict[str, str]:
    """A badge beside the name of a host that gets no trials now, with the reason.

    One query per page, for the maintenance windows of all hosts.
    """
    if host.state == "active":
        window = windows_now(context).get(host.pk)
        return {"state": "cancelled", "words": window.words, "note": window.note} if window else {}
    words = "removed" if host.archived_at else host.get_state_display().lower()
    state = "cancelled" if host.state == "maintenance" else "failed"
    return {"state": state, "words": words, "note": host.maintenance_note}


def windows_now(context: Context) -> dict[UUID, OpenWindow]:
    """Open maintenance windows by host, read once per request."""
    request = context["request"]
    if not hasattr(request, "open_windows"):
        request.open_windows = open_windows()
    windows: dict[UUID, OpenWindow] = request.open_windows
    return windows


@register.inclusion_tag("screens/tags/time.html")
def moment(at: datetime | None, nothing: str = "never") -> dict[str, str]:
    """A time in UTC; the script replaces it by “3 hours ago” and moves the absolute time into the title."""
    if at is None:
        return {"nothing": nothing}
    utc = at.astimezone(UTC)
    return {"machine": utc.isoformat(timespec="seconds"), "text": f"{utc:%Y-%m-%d %H:%M}"}


@register.simple_tag(takes_context=True)
def address_with(context: dict[str, Any], **changes: object) -> str:
    """The query string of the current page with changed parameters; None or "" removes a parameter."""
    query = context["request"].GET.copy()
    for key, value in changes.items():
        query.pop(key, None)
        if value not in (None, ""):
            query[key] = str(value)
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def address_without(context: dict[str, Any], *names: str) -> str:
    """The query string of the current page without these parameters."""
    query = context["request"].GET.copy()
    for name in names:
        query.pop(name, None)
    return f"?{query.urlencode()}"


@register.inclusion_tag("screens/tags/options.html")
def options(options: Iterable[Option]) -> dict[str, Iterable[Option]]:
    """`{% options choices %}`: the options of a select."""
    return {"options": options}


@register.inclusion_tag("screens/parts/marks.html")
def marks(run: int | None = None) -> dict[str, Any]:
    """Lets an open page notice that results of one run, or of all runs, were marked as invalid. One query."""
    return {"run": run, "count": marks_changed(str(run or ""))}
