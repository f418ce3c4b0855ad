"""Maintenance windows of a host: list, add, delete."""

from datetime import datetime, time

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema, Status
from pydantic import AwareDatetime

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input
from webapp.core.errors import Refusal
from webapp.core.formatting import Span
from webapp.hosts.maintenance_windows import (
    add_single_window,
    add_weekly_window,
    delete_window,
    in_words,
    known_window,
    next_span,
    span_at,
)
from webapp.hosts.models import MaintenanceWindow
from webapp.hosts.selectors import known_host

router = Router(tags=["hosts"])
_CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


class WindowIn(Input):
    """Weekly: `days` (0 is Monday), `opens` and `closes` as 22:00, in `time_zone`. One-time: `starts_at`, `ends_at`."""

    days: list[int] = Field([], max_length=7)
    opens: str | None = Field(None, pattern=_CLOCK)
    closes: str | None = Field(None, pattern=_CLOCK)
    time_zone: str = "UTC"
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    note: str = ""


class SpanOut(Schema):
    opens: datetime
    closes: datetime


class WindowOut(Schema):
    """`open_now`: the span that is open now, null if closed; `next`: the first span that opens later."""

    id: int
    days: list[int]
    opens: str | None
    closes: str | None
    time_zone: str
    starts_at: datetime | None
    ends_at: datetime | None
    note: str
    text: str
    open_now: SpanOut | None
    next: SpanOut | None

    @staticmethod
    def resolve_opens(window: MaintenanceWindow) -> str | None:
        return window.opens.strftime("%H:%M") if window.opens else None

    @staticmethod
    def resolve_closes(window: MaintenanceWindow) -> str | None:
        return window.closes.strftime("%H:%M") if window.closes else None

    @staticmethod
    def resolve_text(window: MaintenanceWindow) -> str:
        return in_words(window)

    @staticmethod
    def resolve_open_now(window: MaintenanceWindow) -> Span | None:
        return span_at(window, timezone.now())

    @staticmethod
    def resolve_next(window: MaintenanceWindow) -> Span | None:
        return next_span(window, timezone.now())


@router.get("/hosts/{slug}/windows", response=list[WindowOut])
def windows(request: HttpRequest, slug: str) -> list[MaintenanceWindow]:
    """All windows of the host, oldest first."""
    return list(known_host(slug).maintenance_windows.all())


@router.post("/hosts/{slug}/windows", response={201: WindowOut}, auth=OPERATORS)
def new_window(request: HttpRequest, slug: str, body: WindowIn) -> Status[MaintenanceWindow]:
    """Add a maintenance window. While it is open, the host gets no trials."""
    by, host = operator(request), known_host(slug)
    if body.starts_at and body.ends_at and not (body.days or body.opens or body.closes):
        added = add_single_window(host=host, starts_at=body.starts_at, ends_at=body.ends_at, note=body.note, by=by)
    elif body.opens and body.closes and not (body.starts_at or body.ends_at):
        opens, closes = time.fromisoformat(body.opens), time.fromisoformat(body.closes)
        added = add_weekly_window(
            host=host, days=body.days, opens=opens, closes=closes, zone=body.time_zone, note=body.note, by=by
        )
    else:
        raise Refusal("window_refused", "Send either `days`, `opens` and `closes`, or `starts_at` and `ends_at`.")
    return Status(201, known_window(host, added.pk))


@router.delete("/hosts/{slug}/windows/{window_id}", response={204: None}, auth=OPERATORS)
def remove_window(request: HttpRequest, slug: str, window_id: int) -> Status[None]:
    """Delete a maintenance window."""
    by = operator(request)
    delete_window(window=known_window(known_host(slug), window_id), by=by)
    return Status(204, None)
