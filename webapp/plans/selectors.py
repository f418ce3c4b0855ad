"""Selectors of plans, and of the target facts that expansion needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

import msgspec
from django.db.models import Count, Max, QuerySet

from webapp.core.errors import NotFound
from webapp.hosts.inventory.store import newest_inventories
from webapp.hosts.models import Target
from webapp.hosts.selectors import drives_of
from webapp.plans.document import PlanDocument
from webapp.plans.fitness import TargetFacts
from webapp.plans.layouts import DriveFacts, made_kind
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.sizes import MEMORY
from worker.contract.inventory import Inventory
from worker.contract.layouts import Layout
from worker.contract.workload import AnyWorkload, Stream, TargetKind, TargetRef

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class PlanCounts(TypedDict):
    latest: int
    run_count: int


def plans_list() -> QuerySet[WithAnnotations[Plan, PlanCounts]]:
    """Plans that are not deleted, by title, with `latest` (number of the newest version) and `run_count`."""
    annotated = Plan.objects.annotate(latest=Max("versions__number"), run_count=Count("versions__runs", distinct=True))
    return annotated.filter(deleted_at=None)


def version_of(slug: str, number: int | None = None) -> PlanVersion:
    """A version of a plan; the newest if no number is given. Raises Refusal plan_unknown."""
    versions = PlanVersion.objects.select_related("plan", "created_by").filter(plan__slug=slug)
    if number is not None:
        versions = versions.filter(number=number)
    version = versions.order_by("-number").first()
    if version is None:
        wanted = slug if number is None else f"{slug} version {number}"
        raise NotFound("plan_unknown", f"There is no plan {wanted}.")
    return version


def facts_for(document: PlanDocument, targets: Sequence[Target]) -> list[TargetFacts]:
    """The facts that the plan's expansion needs. One query if sizes are relative to memory, otherwise none."""
    facts = [facts_of(target) for target in targets]
    if not document.names(MEMORY):
        return facts
    inventories = newest_inventories({target.host_id for target in targets})
    memory_by_host = {str(host): inventory.memory_bytes for host, inventory in inventories.items() if inventory}
    return [replace(target_facts, memory_bytes=memory_by_host.get(target_facts.host_id, 0)) for target_facts in facts]


def facts_of(target: Target) -> TargetFacts:
    """The facts about a target that expansion needs; its host must have been fetched with it."""
    return TargetFacts(
        id=str(target.id),
        kind=TargetKind(target.kind),
        path=target.path,
        stable_id=target.stable_id,
        serial=target.serial,
        size_bytes=target.size_bytes,
        file_system=target.file_system,
        test_file_bytes=target.test_file_bytes,
        logical_block_bytes=target.logical_block_bytes,
        settings_allowed=tuple(target.settings_allowed),
        host_settings_allowed=tuple(target.host.settings_allowed),
        destroy=target.destroy,
        purges=_purges(target),
        name=str(target),
        host_id=str(target.host_id),
        opens=target.opens,
        drives=tuple(
            DriveFacts(
                name=str(drive),
                path=drive.opens or drive.path,
                size_bytes=drive.size_bytes,
                kind=TargetKind(drive.kind),
                model=drive.model,
                destroy=drive.destroy,
                purges=_purges(drive),
            )
            for drive in drives_of(target)
        ),
    )


Inventories = Mapping[UUID, Inventory | None]  # by host


def schedulers_of(targets: Collection[Target], inventories: Inventories) -> dict[str, tuple[str, ...]]:
    """I/O schedulers that the device of each target offers, by target id, if they are known."""
    by_target = {}
    for target in targets:
        inventory = inventories.get(target.host_id)
        for device in inventory.block_devices if inventory else ():
            if device.name == target.device and device.schedulers:
                by_target[str(target.id)] = device.schedulers
    return by_target


def file_systems_of(targets: Collection[Target], inventories: Inventories) -> dict[str, str]:
    """The kind of file system of each directory, such as ext4, by target id, if it is known."""
    by_target = {}
    for target in targets:
        inventory = inventories.get(target.host_id)
        for system in inventory.file_systems if inventory and target.kind == TargetKind.DIRECTORY else ():
            if target.device in system.devices:
                by_target[str(target.id)] = system.kind
    return by_target


def _purges(target: Target) -> dict[str, str]:
    return {offer["method"]: offer.get("problem", "") for offer in target.purges}


def reference_of(target: Target) -> TargetRef:
    """The target for an order."""
    return TargetRef(
        id=target.slug,
        kind=TargetKind(target.kind),
        path=target.path,
        stable_id=target.stable_id,
        serial=target.arming_serial,
    )


def stream_at(target: Target, workload: AnyWorkload, layout: Layout | None, number: int = 0, name: str = "") -> Stream:
    """A stream of a trial; on a pool it uses the target that the layout creates."""
    made = made_kind(TargetKind(target.kind), layout)
    reference = msgspec.structs.replace(reference_of(target), kind=made)
    return Stream(number=number, name=name, target=reference, workload=workload)
