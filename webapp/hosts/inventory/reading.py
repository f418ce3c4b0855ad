"""Reads stored inventories."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from webapp.hosts.models import HostInventory
from worker.contract.inventory import Inventory

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
    read = {key: read_inventory(one) for key, one in stored.items()}
    return {moment: read.get(key) for moment, key in chosen.items()}


def _last_before(taken: Sequence[tuple[datetime, int]], at: datetime) -> int:
    place = bisect_right(taken, at, key=lambda one: one[0])
    return taken[max(place - 1, 0)][1]
