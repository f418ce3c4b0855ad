"""Maintenance windows of hosts: selectors and services.

While a maintenance window is open, the host gets no trials, as in manual maintenance. Runs on the host restore their
settings, and continue when the window closes.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone

from webapp.core.errors import NotFound, Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.windows import Span, WeeklyWindow, time_zone, viewers_time, weekly_window
from webapp.hosts.models import Host, MaintenanceWindow

MAX_WINDOWS = 50
MAX_NOTE = 500
FARTHEST = timedelta(days=3653)  # of a one-time window, from now
KEPT_FOR = timedelta(days=30)  # of a one-time window, after its end
KNOWN_DAYS = 14  # for which weekly windows are part of a forecast


@dataclass(frozen=True)
class OpenWindow:
    """A window that is open now."""

    until: datetime
    note: str

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"in a {self.words}{note}"

    @property
    def words(self) -> str:
        """Without the note."""
        return f"maintenance window until {viewers_time(self.until)}"


def open_window(host_id: UUID, at: datetime | None = None) -> OpenWindow | None:
    """The host's open window at this moment (default: now); if several are open, the one that closes last."""
    return open_windows([host_id], at).get(host_id)


def open_windows(host_ids: Collection[UUID] | None = None, at: datetime | None = None) -> dict[UUID, OpenWindow]:
    """Open windows by host (default: all hosts); for each host the one that closes last. One query."""
    moment = at or timezone.now()
    windows = MaintenanceWindow.objects.exclude(ends_at__lte=moment)
    open_by_host: dict[UUID, OpenWindow] = {}
    for window in windows if host_ids is None else windows.filter(host__in=host_ids):
        span = span_at(window, moment)
        if span and (window.host_id not in open_by_host or span.closes > open_by_host[window.host_id].until):
            open_by_host[window.host_id] = OpenWindow(span.closes, window.note)
    return open_by_host


def coming_spans(host_ids: Collection[UUID], at: datetime) -> dict[UUID, list[Span]]:
    """The times in which each host takes no trials, until KNOWN_DAYS from now, in order. One query.

    Times of several windows may overlap. Hosts without a window are left out.
    """
    spans_by_host: dict[UUID, list[Span]] = {}
    for window in MaintenanceWindow.objects.filter(host__in=host_ids).exclude(ends_at__lte=at):
        spans_by_host.setdefault(window.host_id, []).extend(_spans(window, at))
    return {host: sorted(spans, key=lambda span: span.opens) for host, spans in spans_by_host.items()}


def _spans(window: MaintenanceWindow, at: datetime) -> Iterable[Span]:
    if window.starts_at and window.ends_at:
        return [Span(window.starts_at, window.ends_at)]
    return weekly(window).spans(at, days=KNOWN_DAYS)


def delete_ended_windows(at: datetime) -> None:
    """Delete one-time windows that ended long before this moment. The audit log keeps who created them."""
    MaintenanceWindow.objects.filter(ends_at__lt=at - KEPT_FOR).delete()


def span_at(window: MaintenanceWindow, at: datetime) -> Span | None:
    """The open span of this window that contains the moment."""
    if window.starts_at and window.ends_at:
        return Span(window.starts_at, window.ends_at) if window.starts_at <= at < window.ends_at else None
    return weekly(window).span_at(at)


def next_span(window: MaintenanceWindow, at: datetime) -> Span | None:
    """The first span that opens after the moment."""
    if window.starts_at and window.ends_at:
        return Span(window.starts_at, window.ends_at) if window.starts_at > at else None
    return weekly(window).next_span(at)


def weekly(window: MaintenanceWindow) -> WeeklyWindow:
    """The weekly window of a repeating row."""
    assert window.opens is not None
    assert window.closes is not None
    return WeeklyWindow(tuple(window.days), window.opens, window.closes, ZoneInfo(window.time_zone))


def known_window(host: Host, window_id: int) -> MaintenanceWindow:
    """Raises Refusal window_unknown."""
    window = host.maintenance_windows.filter(pk=window_id).first()
    if window is None:
        raise NotFound("window_unknown", f"{host} has no maintenance window {window_id}.")
    return window


def in_words(window: MaintenanceWindow) -> str:
    """“22:00 to 06:00, every day (Europe/Berlin)”, or start and end of a one-time window."""
    if window.starts_at and window.ends_at:
        return f"{timezone.localtime(window.starts_at):%Y-%m-%d %H:%M} to {viewers_time(window.ends_at)}"
    return str(weekly(window))


@transaction.atomic
def add_weekly_window(
    *, host: Host, days: Sequence[int], opens: time, closes: time, zone: str, note: str, by: User | None
) -> MaintenanceWindow:
    """Raises Refusal window_refused, time_zone_refused or note_too_long."""
    weekly_rule = weekly_window(days, opens, closes, time_zone(zone))
    if len(weekly_rule.days) == 7 and opens == closes:
        words = "This window never closes. Start maintenance of the host instead."
        raise Refusal("window_refused", words)
    return _add(
        host, MaintenanceWindow(days=list(weekly_rule.days), opens=opens, closes=closes, time_zone=zone), note, by
    )


@transaction.atomic
def add_single_window(
    *, host: Host, starts_at: datetime, ends_at: datetime, note: str, by: User | None
) -> MaintenanceWindow:
    """Raises Refusal window_refused or note_too_long."""
    now = timezone.now()
    if not now - FARTHEST < starts_at < now + FARTHEST or ends_at > now + FARTHEST:
        raise Refusal("window_refused", "Start and end must be within ten years of now.")
    if ends_at <= starts_at:
        raise Refusal("window_refused", "The window never opens: its end is not after its start.")
    if ends_at <= now:
        raise Refusal("window_refused", "The window never opens: its end has passed.")
    return _add(host, MaintenanceWindow(starts_at=starts_at.astimezone(UTC), ends_at=ends_at.astimezone(UTC)), note, by)


def _add(host: Host, window: MaintenanceWindow, note: str, by: User | None) -> MaintenanceWindow:
    window.note = note.strip()
    if len(window.note) > MAX_NOTE:
        raise Refusal("note_too_long", f"The note has {len(window.note)} characters; the maximum is {MAX_NOTE}.")
    if "\0" in window.note:
        raise Refusal("text_refused", "The note contains a NUL character. Remove it.")
    Host.objects.select_for_update().get(pk=host.pk)
    if host.maintenance_windows.count() >= MAX_WINDOWS:
        host.maintenance_windows.filter(ends_at__lte=timezone.now()).delete()
    if host.maintenance_windows.count() >= MAX_WINDOWS:
        words = f"{host} already has {MAX_WINDOWS} windows; the maximum is {MAX_WINDOWS}. Delete one first."
        raise Refusal("window_refused", words)
    window.host, window.created_by = host, by
    window.save()
    detail = {"window": in_words(window), "note": window.note}
    audit(by=by, action="host.window_add", on=host, detail=detail)
    return window


@transaction.atomic
def delete_window(*, window: MaintenanceWindow, by: User | None) -> bool:
    """Delete the window. False if it was deleted before."""
    words = in_words(window)
    deleted, _ = MaintenanceWindow.objects.filter(pk=window.pk).delete()
    if deleted:
        audit(by=by, action="host.window_delete", on=window.host, detail={"window": words})
    return bool(deleted)
