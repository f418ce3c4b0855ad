"""Inventories as they were stored."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from webapp.hosts.models import HostSnapshot
from worker.contract.inventory import Inventory


def read_inventory(snapshot: HostSnapshot | None) -> Inventory | None:
    """None without a snapshot, or if an older version stored it in a form that is no longer supported."""
    try:
        return msgspec.convert(snapshot.snapshot.facts, Inventory) if snapshot else None
    except msgspec.ValidationError:
        return None


def newest_inventories(hosts: Collection[UUID]) -> Mapping[UUID, Inventory | None]:
    """By host. One query, none for no hosts."""
    if not hosts:
        return {}
    newest = HostSnapshot.objects.filter(host__in=hosts).order_by("host_id", "-taken_at").distinct("host_id")
    return {row.host_id: read_inventory(row) for row in newest.select_related("snapshot")}


def inventory_at(host: UUID, at: datetime) -> Inventory | None:
    """The last inventory before the moment, or the first one after it where there is none."""
    taken = HostSnapshot.objects.filter(host=host).select_related("snapshot")
    return read_inventory(taken.filter(taken_at__lte=at).first() or taken.last())
