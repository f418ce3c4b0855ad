"""Host actions outside any run: purge a drive, change settings by hand, take an inventory."""

from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input
from webapp.core.errors import NotFound
from webapp.hosts.selectors import known_host, known_target
from webapp.runs.actions.host_actions import (
    MAX_REASON_LENGTH,
    MAX_VALUE_LENGTH,
    inventory_now,
    purge_drive,
    setting_by_hand,
    stop_purge,
)
from webapp.runs.models import HostAction, SettingChange
from webapp.runs.selectors import phase_sentence

router = Router(tags=["hosts"])


class PurgeIn(Input):
    """`serial` is the target's arming serial, typed by a person."""

    method: str
    serial: str
    why: str = Field("", max_length=MAX_REASON_LENGTH)


class ActionOut(Schema):
    """Person, time and reason of a host action, and its progress."""

    id: int
    by: str | None
    why: str
    at: datetime
    state: str
    outcome_code: str
    outcome: str

    @staticmethod
    def resolve_by(action: HostAction) -> str | None:
        return action.by.username if action.by else None

    @staticmethod
    def resolve_state(action: HostAction) -> str:
        return action.attempt.state

    @staticmethod
    def resolve_outcome_code(action: HostAction) -> str:
        return action.attempt.outcome_code

    @staticmethod
    def resolve_outcome(action: HostAction) -> str:
        return action.attempt.outcome


class PurgeOut(ActionOut):
    """`purged`: the worker's report, empty before it."""

    method: str
    phase: str
    purged: list[dict[str, Any]]

    @staticmethod
    def resolve_method(action: HostAction) -> str:
        return action.purge

    @staticmethod
    def resolve_phase(action: HostAction) -> str:
        return phase_sentence(action.attempt)

    @staticmethod
    def resolve_purged(action: HostAction) -> list[dict[str, Any]]:
        purged: list[dict[str, Any]] = action.attempt.purged
        return purged


class SettingIn(Input):
    """`value` only for set. A changed setting stays until it is restored."""

    name: str
    operation: Literal["read", "set", "restore"]
    value: str = Field("", max_length=MAX_VALUE_LENGTH)
    why: str = Field("", max_length=MAX_REASON_LENGTH)


class ChangeOut(Schema):
    name: str
    device: str
    before: str
    asked: str
    observed: str
    restored: bool
    note: str


class SettingByHandOut(ActionOut):
    """`changes`: the worker's report, empty before it."""

    setting: str
    operation: str
    value: str
    changes: list[ChangeOut]

    @staticmethod
    def resolve_changes(action: HostAction) -> list[SettingChange]:
        return list(action.attempt.setting_changes.order_by("at", "id"))


@router.get("/hosts/{slug}/targets/{target}/purges", response=list[PurgeOut])
def purges(request: HttpRequest, slug: str, target: str) -> QuerySet[HostAction]:
    """Purges of the drive, latest first."""
    return (
        HostAction.objects.filter(target=known_target(slug, target)).exclude(purge="").select_related("attempt", "by")
    )


@router.post("/hosts/{slug}/targets/{target}/purges", response={201: PurgeOut}, auth=OPERATORS)
def purge(request: HttpRequest, slug: str, target: str, payload: PurgeIn) -> Status[HostAction]:
    """Purge a drive: destroys all its data. Sent at once; refused while the host is busy."""
    person = operator(request)
    action = purge_drive(
        target=known_target(slug, target), method=payload.method, serial=payload.serial, why=payload.why, by=person
    )
    return Status(201, action)


@router.post("/hosts/{slug}/targets/{target}/purges/{action}/stop", response={202: None}, auth=OPERATORS)
def purge_stop(request: HttpRequest, slug: str, target: str, action: int) -> Status[None]:
    """Stop a purge, possible only for a discard. The drive is then partly purged, and its content is unknown."""
    person = operator(request)
    purge = HostAction.objects.filter(target=known_target(slug, target), pk=action).exclude(purge="").first()
    if purge is None:
        raise NotFound("purge_unknown", f"{slug}/{target} has no purge {action}.")
    stop_purge(action=purge, by=person)
    return Status(202, None)


@router.get("/hosts/{slug}/targets/{target}/settings", response=list[SettingByHandOut])
def settings_by_hand(request: HttpRequest, slug: str, target: str) -> QuerySet[HostAction]:
    """Settings read, set and restored by hand, latest first."""
    actions = HostAction.objects.filter(target=known_target(slug, target)).exclude(setting="")
    return actions.select_related("attempt", "by").prefetch_related("attempt__setting_changes")


@router.post("/hosts/{slug}/targets/{target}/settings", response={201: SettingByHandOut}, auth=OPERATORS)
def setting(request: HttpRequest, slug: str, target: str, payload: SettingIn) -> Status[HostAction]:
    """Read, set or restore a setting by hand. Sent at once; refused while the host is busy."""
    person = operator(request)
    action = setting_by_hand(
        target=known_target(slug, target),
        name=payload.name,
        operation=payload.operation,
        value=payload.value,
        why=payload.why,
        by=person,
    )
    return Status(201, action)


@router.post("/hosts/{slug}/inventory", response={202: None}, auth=OPERATORS)
def inventory(request: HttpRequest, slug: str) -> Status[None]:
    """Take an inventory. Sent at once; refused while the host is busy. The host's history then shows the changes."""
    inventory_now(by=operator(request), host=known_host(slug))
    return Status(202, None)
