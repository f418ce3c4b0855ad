"""Reads stored inventories."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from webapp.hosts.models import HostInventory
from worker.contract.inventory import Inventory


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


def inventory_at(host: UUID, at: datetime) -> Inventory | None:
    """The last inventory before the moment, or else the first one after it."""
    taken = HostInventory.objects.filter(host=host).select_related("content")
    return read_inventory(taken.filter(taken_at__lte=at).first() or taken.last())
