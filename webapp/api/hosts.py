"""Hosts, their targets, and actions on hosts."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema
from ninja.pagination import paginate

from webapp.api.common.authentication import ADMINS, OPERATORS, administrator, operator
from webapp.api.common.schemas import Input, Paged
from webapp.core.errors import Refusal
from webapp.hosts.models import Host, Target
from webapp.hosts.selectors import known_host
from webapp.hosts.services import begin_maintenance, bring_back, end_maintenance, remove_host, rename_host, revoke_host
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
    found = known_host(slug)
    newest = found.inventories.select_related("content").order_by("-taken_at").first()
    plain = {name: getattr(found, name) for name in HostOut.model_fields}
    return plain | {
        "targets": list(_targets().filter(host=found)),
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
    by, found = operator(request), known_host(slug)
    rename_host(host=found, slug=body.slug, by=by)
    return _fresh(found)


@router.post("/hosts/{slug}/maintenance", response=HostOut, auth=OPERATORS)
def maintenance(request: HttpRequest, slug: str, body: Note) -> Host:
    """Start maintenance: no new trials; the current trial continues to its end."""
    by, found = operator(request), known_host(slug)
    begin_maintenance(host=found, note=body.note, by=by)
    return _fresh(found)


@router.delete("/hosts/{slug}/maintenance", response=HostOut, auth=OPERATORS)
def maintenance_end(request: HttpRequest, slug: str) -> Host:
    """End maintenance. Safe to repeat."""
    by, found = operator(request), known_host(slug)
    end_maintenance(host=found, by=by)
    return _fresh(found)


@router.post("/hosts/{slug}/rotate-token", response=HostOut, auth=ADMINS)
def rotate_token(request: HttpRequest, slug: str) -> Host:
    """Request a new token. The host fetches it after its next message; the old one stays valid until then."""
    by, found = administrator(request), known_host(slug)
    request_rotation(host=found, by=by)
    return _fresh(found)


@router.post("/hosts/{slug}/revoke", response=HostOut, auth=ADMINS)
def revoke(request: HttpRequest, slug: str, body: Confirmation) -> Host:
    """Revoke the host's token. Cannot be undone."""
    by, found = administrator(request), known_host(slug)
    if body.confirm != found.slug:
        raise Refusal("confirmation_wrong", f"To revoke {found}, confirm must be its name. Nothing was changed.")
    revoke_host(host=found, by=by)
    return _fresh(found)


@router.delete("/hosts/{slug}", response=Removed, auth=ADMINS)
def remove(request: HttpRequest, slug: str, body: Confirmation) -> Removed:
    """Remove a host: it is deleted if it has no results, else hidden."""
    by, found = administrator(request), known_host(slug)
    return Removed(deleted=remove_host(host=found, typed=body.confirm, by=by))


@router.post("/hosts/{slug}/bring-back", response=HostOut, auth=ADMINS)
def bring_back_host(request: HttpRequest, slug: str) -> Host:
    """Restore a removed host, which must then be enrolled again."""
    by, found = administrator(request), known_host(slug)
    bring_back(host=found, by=by)
    return _fresh(found)
