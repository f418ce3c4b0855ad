"""The maintenance windows of a host in words."""

from dataclasses import dataclass

from django.utils import timezone

from webapp.core.windows import Span
from webapp.hosts.maintenance_windows import in_words, next_span, span_at
from webapp.hosts.models import Host, MaintenanceWindow


@dataclass(frozen=True)
class WindowRow:
    """A window that is not open and never opens again has ended."""

    window: MaintenanceWindow
    text: str
    open_now: Span | None
    next: Span | None


def window_rows(host: Host) -> list[WindowRow]:
    """One query."""
    now = timezone.now()
    return [WindowRow(w, in_words(w), span_at(w, now), next_span(w, now)) for w in host.maintenance_windows.all()]
