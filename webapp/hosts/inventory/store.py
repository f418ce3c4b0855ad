"""Stored inventories: reads them, thins old ones, and describes the current content of a target."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from django.db.models import Exists, OuterRef
from django.utils import timezone

from webapp.hosts.models import HostInventory, InventoryContent, Target
from worker.contract.inventory import BlockDevice, Inventory

# Thins old inventories: keeps the first of each day, all of the last KEPT_DAYS, and the newest, for each host.

KEPT_DAYS = 30


def thin_inventories() -> int:
    """Return the number of deleted inventories. Contents without an inventory are deleted too."""
    old = HostInventory.objects.filter(taken_at__lt=timezone.now() - timedelta(days=KEPT_DAYS))
    by_day = old.order_by("host_id", "taken_at__date", "taken_at", "pk").distinct("host_id", "taken_at__date")
    newer = HostInventory.objects.filter(host=OuterRef("host"), taken_at__gt=OuterRef("taken_at"))
    thinned, _ = old.filter(Exists(newer)).exclude(pk__in=list(by_day.values_list("pk", flat=True))).delete()
    unused = ~Exists(HostInventory.objects.filter(content=OuterRef("pk")))
    InventoryContent.objects.filter(unused).delete()
    return thinned


# Reads stored inventories.

Moment = tuple[UUID, datetime]  # at a host


def read_inventory(stored: HostInventory | None) -> Inventory | None:
    """None without an inventory, or if an older version stored it in a form that is no longer supported."""
    try:
        return msgspec.convert(stored.content.facts, Inventory) if stored else None
    except msgspec.ValidationError:
        return None


def newest_inventories(hosts: Collection[UUID]) -> Mapping[UUID, Inventory | None]:
    """Newest inventories by host. One query, or none if there are no hosts."""
    if not hosts:
        return {}
    newest = HostInventory.objects.filter(host__in=hosts).order_by("host_id", "-taken_at").distinct("host_id")
    return {row.host_id: read_inventory(row) for row in newest.select_related("content")}


def inventories_at(moments: Collection[Moment]) -> Mapping[Moment, Inventory | None]:
    """The last inventory of the host before each moment, or else the first one after it. Two queries, or none."""
    if not moments:
        return {}
    taken: dict[UUID, list[tuple[datetime, int]]] = {}
    of_hosts = HostInventory.objects.filter(host__in={host for host, _ in moments}).order_by("taken_at")
    for host, at, key in of_hosts.values_list("host", "taken_at", "pk"):
        taken.setdefault(host, []).append((at, key))
    chosen = {(host, at): _last_before(taken[host], at) for host, at in moments if host in taken}
    stored = HostInventory.objects.select_related("content").in_bulk({*chosen.values()})
    read = {key: read_inventory(row) for key, row in stored.items()}
    return {moment: read.get(key) for moment, key in chosen.items()}


def _last_before(taken: Sequence[tuple[datetime, int]], at: datetime) -> int:
    place = bisect_right(taken, at, key=lambda moment: moment[0])
    return taken[max(place - 1, 0)][1]


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
    inside = [inner for inner in devices.values() if device.name in inner.parents]
    return "; ".join([*_said(device), *(words for inner in inside for words in _inside(inner))]) or NOTHING


def _said(device: BlockDevice) -> list[str]:
    return [word for word in (device.signature, *(f"{each.kind} {each.detail}" for each in device.holders)) if word]


def _inside(device: BlockDevice) -> list[str]:
    return [f"{device.name}: {', '.join(_said(device)) or device.kind}"]
