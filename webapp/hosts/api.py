"""Hosts and their targets, and what may be done with a host."""

# ruff: noqa: ARG001 - the framework gives every view its request

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema, Status
from ninja.pagination import paginate

from webapp.core.api import Input, Paged, administrator, operator
from webapp.core.errors import Refusal
from webapp.hosts.lifecycle import begin_maintenance, bring_back, end_maintenance, remove_host, rename_host, revoke_host
from webapp.hosts.models import EnrolmentToken, Host, Target, WorkerLogLine
from webapp.hosts.names import checked_name
from webapp.hosts.selectors import enrolment_called, known_host, log_lines, open_enrolments
from webapp.hosts.services import issue_enrolment_token, withdraw_enrolment_token
from webapp.hosts.tokens import request_rotation

router = Router(tags=["hosts"])


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
    """`name` is host/target: how it is called everywhere. `settings_allowed`: names, `*` for all."""

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
    settings_allowed: list[str]
    present: bool
    problem: str

    @staticmethod
    def resolve_name(target: Target) -> str:
        return str(target)


class HostDetail(HostOut):
    targets: list[TargetOut]
    inventory: dict[str, Any] | None


def _targets() -> QuerySet[Target]:
    return Target.objects.select_related("host").filter(in_policy=True)


@router.get("/hosts", response=list[HostOut])
@paginate(Paged)
def hosts(request: HttpRequest, removed: bool = False) -> QuerySet[Host]:
    """Those in sight, or those that were removed."""
    return Host.objects.filter(archived_at__isnull=not removed)


@router.get("/hosts/{slug}", response=HostDetail)
def host(request: HttpRequest, slug: str) -> dict[str, object]:
    """With its targets and its newest inventory. A name that it had before leads to it as well."""
    found = known_host(slug)
    newest = found.snapshots.select_related("snapshot").order_by("-taken_at").first()
    plain = {name: getattr(found, name) for name in HostOut.model_fields}
    return plain | {
        "targets": list(_targets().filter(host=found)),
        "inventory": newest.snapshot.facts if newest else None,
    }


@router.get("/targets", response=list[TargetOut])
@paginate(Paged)
def targets(request: HttpRequest, host: str = "", kind: str = "", present: bool | None = None) -> QuerySet[Target]:
    """Targets that a policy file lists now."""
    wanted = {"host__slug": host, "kind": kind, "present": "" if present is None else present}
    return _targets().filter(**{name: value for name, value in wanted.items() if value != ""})


# ---- what may be done


class NewName(Input):
    slug: str


class Note(Input):
    note: str = ""


class Confirmation(Input):
    """`confirm` is the host's name."""

    confirm: str


class Removed(Schema):
    """Deleted where nothing was ever measured there, else hidden with its results."""

    deleted: bool


def _fresh(host: Host) -> Host:
    return Host.objects.get(pk=host.pk)


@router.post("/hosts/{slug}/rename", response=HostOut)
def rename(request: HttpRequest, slug: str, body: NewName) -> Host:
    """The old name leads to the host from now on."""
    by, found = operator(request), known_host(slug)
    rename_host(host=found, slug=body.slug, by=by)
    return _fresh(found)


@router.post("/hosts/{slug}/maintenance", response=HostOut)
def maintenance(request: HttpRequest, slug: str, body: Note) -> Host:
    """No new trials; what runs there ends."""
    by, found = operator(request), known_host(slug)
    begin_maintenance(host=found, note=body.note, by=by)
    return _fresh(found)


@router.delete("/hosts/{slug}/maintenance", response=HostOut)
def maintenance_end(request: HttpRequest, slug: str) -> Host:
    by, found = operator(request), known_host(slug)
    end_maintenance(host=found, by=by)
    return _fresh(found)


@router.post("/hosts/{slug}/rotate-token", response=HostOut)
def rotate_token(request: HttpRequest, slug: str) -> Host:
    """The host fetches a new token when it is next heard; the old one is good until the new one was used."""
    by, found = administrator(request), known_host(slug)
    request_rotation(host=found, by=by)
    return _fresh(found)


@router.post("/hosts/{slug}/revoke", response=HostOut)
def revoke(request: HttpRequest, slug: str, body: Confirmation) -> Host:
    """Its token opens nothing any more. Cannot be undone."""
    by, found = administrator(request), known_host(slug)
    if body.confirm != found.slug:
        raise Refusal("confirmation_wrong", f"To revoke {found}, confirm must be its name. Nothing was changed.")
    revoke_host(host=found, by=by)
    return _fresh(found)


@router.delete("/hosts/{slug}", response=Removed)
def remove(request: HttpRequest, slug: str, body: Confirmation) -> Removed:
    by, found = administrator(request), known_host(slug)
    return Removed(deleted=remove_host(host=found, typed=body.confirm, by=by))


@router.post("/hosts/{slug}/bring-back", response=HostOut)
def bring_back_host(request: HttpRequest, slug: str) -> Host:
    """A removed host is in sight again; it has to be enrolled again."""
    by, found = administrator(request), known_host(slug)
    bring_back(host=found, by=by)
    return _fresh(found)


# ---- the worker's log


class LogLineOut(Schema):
    """`attempt` is the order that the line is about."""

    id: int
    at: datetime
    level: str
    attempt: UUID | None
    text: str


@router.get("/hosts/{slug}/log", response=list[LogLineOut])
@paginate(Paged)
def worker_log(
    request: HttpRequest, slug: str, level: str = "", attempt: UUID | None = None
) -> QuerySet[WorkerLogLine]:
    """What the worker wrote to its log, newest first; `level` means this one and worse."""
    return log_lines(known_host(slug), level=level, attempt=attempt)


# ---- one-time tokens


class NewEnrolment(Input):
    """`slug`: the new host's name, "" for its own; `again`: a known host that is enrolled anew."""

    slug: str = ""
    again: str = ""


class EnrolmentMade(Schema):
    token: str  # shown this once


class EnrolmentOut(Schema):
    reference: str
    host_slug: str
    again: str
    created_at: datetime
    expires_at: datetime

    @staticmethod
    def resolve_again(token: EnrolmentToken) -> str:
        return token.host.slug if token.host else ""


@router.get("/enrolments", response=list[EnrolmentOut])
@paginate(Paged)
def enrolments(request: HttpRequest) -> QuerySet[EnrolmentToken]:
    """One-time tokens that are still good."""
    administrator(request)
    return open_enrolments()


@router.post("/enrolments", response=EnrolmentMade)
def make_enrolment(request: HttpRequest, body: NewEnrolment) -> EnrolmentMade:
    by = administrator(request)
    again = known_host(body.again) if body.again else None
    slug = checked_name(body.slug) if body.slug and again is None else ""
    return EnrolmentMade(token=issue_enrolment_token(by=by, slug=slug, host=again))


@router.delete("/enrolments/{reference}", response={204: None})
def withdraw_enrolment(request: HttpRequest, reference: str) -> Status[None]:
    """The token opens nothing from now on."""
    by, found = administrator(request), enrolment_called(reference)
    if found is None:
        raise Refusal("enrolment_unknown", f"There is no one-time token {reference}.")
    withdraw_enrolment_token(invitation=found, by=by)
    return Status(204, None)
