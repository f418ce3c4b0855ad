"""Data for the page of a host."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from webapp.core.models import AuditEntry
from webapp.hosts.inventory.lock_groups import sharing
from webapp.hosts.models import Host, HostInventory, Target
from webapp.plans.factors import FACTORS
from webapp.runs.models import TargetLock
from worker.contract.inventory import BlockDevice, Inventory

INVENTORIES_SHOWN = 20
ACTIONS_SHOWN = 30
MAX_BRANCHES, MAX_LEVELS = 2000, 16
_TITLES = {
    "host.enrol": "Enrolled",
    "host.rename": "Renamed",
    "host.maintenance_start": "Maintenance started",
    "host.maintenance_end": "Maintenance ended",
    "host.window_add": "Maintenance window added",
    "host.window_delete": "Maintenance window deleted",
    "host.rotate_token": "New token requested",
    "host.second_worker": "Second worker refused",
    "host.token_replace": "New token in use",
    "host.revoke": "Token revoked",
    "host.remove": "Removed",
    "host.restore": "Restored",
}


@dataclass
class Branch:
    """A block device in the tree, with the devices on it."""

    device: BlockDevice
    above: "list[Branch]" = field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """An event in the history of a host."""

    at: datetime
    title: str
    by: str = ""
    sentences: Sequence[str] = ()
    address: str = ""  # query of the page with all details of the change


@dataclass(frozen=True)
class TargetRow:
    """A target of the host."""

    target: Target
    used_by: int | None  # number of the run that uses one of its drives now, on any host
    shares: list[Target]  # other targets on the same drives, which are never used at the same time


@dataclass(frozen=True)
class SettingRow:
    """A setting of the worker, and the targets for which the policy allows to change it."""

    name: str
    label: str
    targets: tuple[str, ...]
    host_wide: bool


def tree(inventory: Inventory) -> list[Branch]:
    """The tree of block devices: disks at the root, partitions and arrays under all their underlying devices."""
    devices = {device.name: device for device in inventory.block_devices}
    on: dict[str, list[BlockDevice]] = {}
    for device in inventory.block_devices:
        for parent in device.parents:
            on.setdefault(parent, []).append(device)
    roots = [device for device in inventory.block_devices if not any(parent in devices for parent in device.parents)]
    left = itertools.count(MAX_BRANCHES, -1)
    return list(_branches(roots, on, (), left))


def _branches(
    devices: Iterable[BlockDevice], on: dict[str, list[BlockDevice]], below: tuple[str, ...], left: Iterator[int]
) -> Iterator[Branch]:
    """At most MAX_LEVELS levels, and as many branches as are left: an array of many drives is under each of them."""
    for device in devices:
        if device.name in below or len(below) == MAX_LEVELS or next(left) <= 0:
            continue
        path = (*below, device.name)
        yield Branch(device, list(_branches(on.get(device.name, ()), on, path, left)))


def history(host: Host, inventories: Sequence[HostInventory]) -> list[Event]:
    """Actions on the host and changes of its hardware, newest first. `inventories` are newest first."""
    events = [_changed(after, before) for after, before in itertools.pairwise(inventories)]
    if inventories and len(inventories) <= INVENTORIES_SHOWN:
        events.append(Event(inventories[-1].taken_at, "First inventory"))
    of_host = AuditEntry.objects.filter(object_type="host", object_id=str(host.pk), action__in=_TITLES)
    entries = of_host.select_related("actor").order_by("-at")[:ACTIONS_SHOWN]
    events += [Event(entry.at, _TITLES[entry.action], entry.actor_name, _detail(entry)) for entry in entries]
    return sorted(events, key=lambda event: event.at, reverse=True)


def _changed(after: HostInventory, before: HostInventory) -> Event:
    if after.changes is None:
        said = ["The earlier inventory has a format that is no longer supported."]
        return Event(after.taken_at, "Changed", sentences=said)
    said = after.changes or ["Hardware details changed."]
    return Event(after.taken_at, "Changed", sentences=said, address=f"from={before.pk}&to={after.pk}")


def _detail(operation: AuditEntry) -> list[str]:
    said = {
        "before": "The former name is {}.",
        "window": "{}.",
        "note": "{}",
        "hostname": "Changed by the worker on {}.",
    }
    return [said[key].format(value) for key, value in operation.detail.items() if key in said and value]


def setting_rows(host: Host, targets: Iterable[Target]) -> list[SettingRow]:
    """Every setting of the host's worker, with the targets for which the policy allows to change it."""
    listed = [target for target in targets if target.in_policy]
    return [
        SettingRow(
            name=name,
            label=FACTORS[name].label if name in FACTORS else name,
            targets=tuple(t.slug for t in listed if name in t.settings_allowed or "*" in t.settings_allowed),
            host_wide=name in host.settings_allowed or "*" in host.settings_allowed,
        )
        for name in host.capabilities.get("settings", [])
    ]


def target_rows(targets: Sequence[Target]) -> list[TargetRow]:
    """Rows of all targets, with a fixed number of queries."""
    used, shares = _users(targets), sharing(targets)
    return [
        TargetRow(target, next((used[key] for key in target.lock_keys if key in used), None), shares.get(target.pk, []))
        for target in targets
    ]


def _users(targets: Sequence[Target]) -> dict[str, int]:
    """Lock key -> number of the run that uses the drive now, on any host."""
    keys = {key for target in targets for key in target.lock_keys}
    locks = TargetLock.objects.filter(lock_key__in=keys)
    return {lock.lock_key: lock.attempt.run.number for lock in locks.select_related("attempt__run") if lock.attempt.run}
