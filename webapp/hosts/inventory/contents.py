"""Describes a target's current content from its host's newest inventory, for people who are about to destroy it."""

from collections.abc import Collection
from uuid import UUID

from webapp.hosts.inventory.reading import newest_inventories
from webapp.hosts.models import Target
from worker.contract.inventory import BlockDevice, Inventory

NOT_KNOWN = "unknown: its host has not reported it"
NOTHING = "no recognised data"


def contents(targets: Collection[Target]) -> dict[UUID, str]:
    """Descriptions by target. One query for any number of targets and hosts."""
    inventories = newest_inventories({target.host_id for target in targets})
    return {target.pk: content(target, inventories.get(target.host_id)) for target in targets}


def content(target: Target, inventory: Inventory | None) -> str:
    """File systems, partitions and stacked devices on the device; for a file only its kind and path."""
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
