"""Hosts and their targets, to be read."""

# ruff: noqa: ARG001 - the framework gives every view its request

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema
from ninja.pagination import paginate

from webapp.core.api import Paged
from webapp.core.errors import Refusal
from webapp.hosts.models import Host, Target

router = Router(tags=["hosts"])


class HostOut(Schema):
    slug: str
    hostname: str
    state: str
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
def hosts(request: HttpRequest) -> QuerySet[Host]:
    return Host.objects.all()


@router.get("/hosts/{slug}", response=HostDetail)
def host(request: HttpRequest, slug: str) -> dict[str, object]:
    """With its targets and its newest inventory."""
    found = Host.objects.filter(slug=slug).first()
    if found is None:
        raise Refusal("host_unknown", f"There is no host {slug}.")
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
