"""What lies on a target now, in words, as its host's newest inventory tells: for people who are about to destroy it."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from webapp.hosts.models import HostSnapshot, Target
from worker.contract.inventory import BlockDevice, Inventory

NOT_KNOWN = "not known: its host has not told"
NOTHING = "nothing that the host recognises"


def contents(targets: Collection[Target]) -> dict[UUID, str]:
    """By target. One query, however many targets and hosts there are."""
    newest = HostSnapshot.objects.filter(host__in={target.host_id for target in targets})
    newest = newest.order_by("host_id", "-taken_at").distinct("host_id").select_related("snapshot")
    facts = {row.host_id: _read(row) for row in newest} if targets else {}
    return {target.pk: content(target, facts.get(target.host_id)) for target in targets}


def _read(row: HostSnapshot) -> Inventory | None:
    try:
        return msgspec.convert(row.snapshot.facts, Inventory)
    except msgspec.ValidationError:
        return None


def content(target: Target, inventory: Inventory | None) -> str:
    """File systems, partitions and what is built on the device; of a file only that it is one."""
    if target.kind != "block":
        return f"the {target.kind} {target.path}"
    devices = {device.name: device for device in inventory.block_devices} if inventory else {}
    device = devices.get(target.opens.rpartition("/")[2]) or devices.get(target.device)
    if device is None:
        return NOT_KNOWN
    inside = [one for one in devices.values() if device.name in one.parents]
    return "; ".join([*_said(device), *(words for one in inside for words in _inside(one))]) or NOTHING


def _said(device: BlockDevice) -> list[str]:
    return [word for word in (device.signature, *(f"{each.kind} {each.detail}" for each in device.holders)) if word]


def _inside(device: BlockDevice) -> list[str]:
    return [f"{device.name}: {', '.join(_said(device)) or device.kind}"]
