"""Hosts and their targets, enrolment tokens, maintenance windows, worker logs, and the endurance of drives."""

from datetime import datetime, time
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate
from pydantic import AwareDatetime

from webapp.api.common.authentication import ADMINS, OPERATORS, administrator, operator
from webapp.api.common.schemas import Input, Paged
from webapp.core.errors import NotFound, Refusal
from webapp.core.tokens import hash_token
from webapp.core.windows import Span
from webapp.hosts.credentials import request_rotation
from webapp.hosts.installer import install_line
from webapp.hosts.inventory.endurance import WARRANTY_YEARS, Endurance, endurance_of, forget_endurance, rate_endurance
from webapp.hosts.keys import signing_key
from webapp.hosts.maintenance_windows import (
    add_single_window,
    add_weekly_window,
    delete_window,
    in_words,
    known_window,
    next_span,
    span_at,
)
from webapp.hosts.models import EnrolmentToken, Host, MaintenanceWindow, Target, WorkerLogLine
from webapp.hosts.selectors import checked_name, enrolment_called, known_host, known_target, log_lines, open_enrolments
from webapp.hosts.services import (
    begin_maintenance,
    bring_back,
    end_maintenance,
    issue_enrolment_token,
    remove_host,
    rename_host,
    revoke_host,
    withdraw_enrolment_token,
)
from worker.contract.reports import LogLevel

# The rated write endurance of drives: read, enter, delete.

router = Router(tags=["hosts"])


class RatingIn(Input):
    """Either `tbw_tb`, terabytes written, or `dwpd`, drive writes per day for `years`. `source`: e.g. a datasheet."""

    tbw_tb: float | None = None
    dwpd: float | None = None
    years: float = WARRANTY_YEARS
    source: str


class EnduranceOut(Schema):
    """`implied_low_bytes`: the minimum implied by host bytes and percentage used; not the manufacturer's rating."""

    rated_bytes: int | None
    basis: str
    source: str
    by: str | None
    at: datetime | None
    host_bytes: int | None
    percent_used: int | None
    left_bytes: int | None
    implied_low_bytes: float | None


def _out(endurance: Endurance) -> dict[str, object]:
    rating = endurance.rating
    return {
        "rated_bytes": endurance.rated_bytes,
        "basis": rating.basis if rating else "",
        "source": rating.source if rating else "",
        "by": rating.by.username if rating and rating.by else None,
        "at": rating.at if rating else None,
        "host_bytes": endurance.host_bytes,
        "percent_used": endurance.percent_used,
        "left_bytes": endurance.left_bytes,
        "implied_low_bytes": endurance.implied_bytes[0] if endurance.implied_bytes else None,
    }


@router.get("/hosts/{slug}/targets/{target}/endurance", response=EnduranceOut)
def endurance(request: HttpRequest, slug: str, target: str) -> dict[str, object]:
    """The rated endurance of the drive under a target, and how much of it is used."""
    drive = known_target(slug, target)
    return _out(endurance_of([drive])[drive.pk])


@router.post("/hosts/{slug}/targets/{target}/endurance", response=EnduranceOut, auth=OPERATORS)
def rate(request: HttpRequest, slug: str, target: str, body: RatingIn) -> dict[str, object]:
    """Enter the rated endurance of the drive under a target; this replaces an earlier entry."""
    by, drive = operator(request), known_target(slug, target)
    rate_endurance(target=drive, by=by, source=body.source, tbw_tb=body.tbw_tb, dwpd=body.dwpd, years=body.years)
    return _out(endurance_of([drive])[drive.pk])


@router.delete("/hosts/{slug}/targets/{target}/endurance", response={204: None}, auth=OPERATORS)
def forget(request: HttpRequest, slug: str, target: str) -> Status[None]:
    """Delete the entered endurance."""
    by, drive = operator(request), known_target(slug, target)
    forget_endurance(target=drive, by=by)
    return Status(204, None)


# Maintenance windows of a host: list, add, delete.

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


# One-time tokens that enrol hosts.


class NewEnrolment(Input):
    """`slug`: the new host's name, "" for its hostname; `again`: a known host to enrol again."""

    slug: str = ""
    again: str = ""


class EnrolmentMade(Schema):
    """`line`: the command for a root shell on the host, with the token; it checks what it downloads."""

    reference: str
    token: str  # shown once
    line: str
    fingerprint: str  # of the key that signs orders
    expires_at: datetime


class EnrolmentOut(Schema):
    reference: str
    host_slug: str
    again: str
    created_at: datetime
    expires_at: datetime

    @staticmethod
    def resolve_again(token: EnrolmentToken) -> str:
        return token.host.slug if token.host else ""


@router.get("/enrolments", response=list[EnrolmentOut], auth=ADMINS)
@paginate(Paged)
def enrolments(request: HttpRequest) -> QuerySet[EnrolmentToken]:
    """Valid one-time tokens."""
    administrator(request)
    return open_enrolments()


@router.post("/enrolments", response=EnrolmentMade, auth=ADMINS)
def make_enrolment(request: HttpRequest, body: NewEnrolment) -> EnrolmentMade:
    """Create a one-time token, and the command that installs and enrols the worker on a host."""
    by = administrator(request)
    again = known_host(body.again) if body.again else None
    slug = checked_name(body.slug) if body.slug and again is None else ""
    token = issue_enrolment_token(by=by, slug=slug, host=again)
    made, (fingerprint, _) = EnrolmentToken.objects.get(token_hash=hash_token(token)), signing_key()
    return EnrolmentMade(
        reference=made.reference, token=token, line=install_line(token=token, key=fingerprint, again=again is not None),
        fingerprint=fingerprint, expires_at=made.expires_at,
    )  # fmt: skip


@router.delete("/enrolments/{reference}", response={204: None}, auth=ADMINS)
def withdraw_enrolment(request: HttpRequest, reference: str) -> Status[None]:
    """Revoke the token."""
    by, invitation = administrator(request), enrolment_called(reference)
    if invitation is None:
        raise NotFound("enrolment_unknown", f"There is no one-time token {reference}.")
    withdraw_enrolment_token(invitation=invitation, by=by)
    return Status(204, None)


# The log of a host's worker.


class LogLineOut(Schema):
    """`attempt` is the attempt of the line."""

    id: int
    at: datetime
    level: str
    attempt: UUID | None
    text: str


@router.get("/hosts/{slug}/log", response=list[LogLineOut])
@paginate(Paged)
def worker_log(
    request: HttpRequest, slug: str, level: LogLevel | None = None, attempt: UUID | None = None
) -> QuerySet[WorkerLogLine]:
    """Lines of the worker's log, newest first; `level` is the minimum level."""
    return log_lines(known_host(slug), level=level or "", attempt=attempt)


class HostOut(Schema):
    slug: str
    hostname: str
    state: str
    maintenance_note: str
    archived_at: datetime | None
    rotation_requested_at: datetime | None
    policy_problem: str
    clock_ahead_s: float | None
    last_seen_at: datetime | None
    worker_version: str
    contract: int
    capabilities: dict[str, Any]


class TargetOut(Schema):
    """`name` is host/target, as on all pages. `settings_allowed`: names, `*` for all.

    `destroy`: an empty drive may be overwritten; `destroy_signatures`: one with these signatures too.
    `warnings`: why its reads may not come from a drive, or why a trial would be refused.
    """

    id: UUID
    name: str
    kind: str
    path: str
    stable_id: str
    arming_serial: str
    model: str
    firmware: str
    device: str
    size_bytes: int
    destroy: bool
    destroy_signatures: list[str]
    settings_allowed: list[str]
    present: bool
    problem: str
    warnings: list[str]

    @staticmethod
    def resolve_name(target: Target) -> str:
        return str(target)

    @staticmethod
    def resolve_arming_serial(target: Target) -> str:
        """A pool is not armed: its drives are."""
        return "" if target.kind == "pool" else target.arming_serial


class HostDetail(HostOut):
    targets: list[TargetOut]
    inventory: dict[str, Any] | None


def _targets() -> QuerySet[Target]:
    return Target.objects.select_related("host").filter(in_policy=True)


@router.get("/hosts", response=list[HostOut])
@paginate(Paged)
def hosts(request: HttpRequest, removed: bool = False) -> QuerySet[Host]:
    """Hosts, or with `removed` the removed ones."""
    return Host.objects.filter(archived_at__isnull=not removed)


@router.get("/hosts/{slug}", response=HostDetail)
def host(request: HttpRequest, slug: str) -> dict[str, object]:
    """A host with its targets and its newest inventory. Former names work too."""
    host = known_host(slug)
    newest = host.inventories.select_related("content").order_by("-taken_at").first()
    plain = {name: getattr(host, name) for name in HostOut.model_fields}
    return plain | {
        "targets": list(_targets().filter(host=host)),
        "inventory": newest.content.facts if newest else None,
    }


@router.get("/targets", response=list[TargetOut])
@paginate(Paged)
def targets(request: HttpRequest, host: str = "", kind: str = "", present: bool | None = None) -> QuerySet[Target]:
    """Targets that a policy file lists now."""
    wanted = {"host__slug": host, "kind": kind, "present": "" if present is None else present}
    return _targets().filter(**{name: value for name, value in wanted.items() if value != ""})


class NewName(Input):
    slug: str


class Note(Input):
    note: str = ""


class Confirmation(Input):
    """`confirm` is the host's name."""

    confirm: str


class Removed(Schema):
    """Remove a host: it is deleted if it has no results, else hidden."""

    deleted: bool


def _fresh(host: Host) -> Host:
    return Host.objects.get(pk=host.pk)


@router.post("/hosts/{slug}/rename", response=HostOut, auth=OPERATORS)
def rename(request: HttpRequest, slug: str, body: NewName) -> Host:
    """Rename a host. The old name still leads to it."""
    by, host = operator(request), known_host(slug)
    rename_host(host=host, slug=body.slug, by=by)
    return _fresh(host)


@router.post("/hosts/{slug}/maintenance", response=HostOut, auth=OPERATORS)
def maintenance(request: HttpRequest, slug: str, body: Note) -> Host:
    """Start maintenance: no new trials; the current trial continues to its end."""
    by, host = operator(request), known_host(slug)
    begin_maintenance(host=host, note=body.note, by=by)
    return _fresh(host)


@router.delete("/hosts/{slug}/maintenance", response=HostOut, auth=OPERATORS)
def maintenance_end(request: HttpRequest, slug: str) -> Host:
    """End maintenance. Safe to repeat."""
    by, host = operator(request), known_host(slug)
    end_maintenance(host=host, by=by)
    return _fresh(host)


@router.post("/hosts/{slug}/rotate-token", response=HostOut, auth=ADMINS)
def rotate_token(request: HttpRequest, slug: str) -> Host:
    """Request a new token. The host fetches it after its next message; the old one stays valid until then."""
    by, host = administrator(request), known_host(slug)
    request_rotation(host=host, by=by)
    return _fresh(host)


@router.post("/hosts/{slug}/revoke", response=HostOut, auth=ADMINS)
def revoke(request: HttpRequest, slug: str, body: Confirmation) -> Host:
    """Revoke the host's token. Cannot be undone."""
    by, host = administrator(request), known_host(slug)
    if body.confirm != host.slug:
        raise Refusal("confirmation_wrong", f"To revoke {host}, confirm must be its name. Nothing was changed.")
    revoke_host(host=host, by=by)
    return _fresh(host)


@router.delete("/hosts/{slug}", response=Removed, auth=ADMINS)
def remove(request: HttpRequest, slug: str, body: Confirmation) -> Removed:
    """Remove a host: it is deleted if it has no results, else hidden."""
    by, host = administrator(request), known_host(slug)
    return Removed(deleted=remove_host(host=host, typed=body.confirm, by=by))


@router.post("/hosts/{slug}/bring-back", response=HostOut, auth=ADMINS)
def bring_back_host(request: HttpRequest, slug: str) -> Host:
    """Restore a removed host, which must then be enrolled again."""
    by, host = administrator(request), known_host(slug)
    bring_back(host=host, by=by)
    return _fresh(host)
