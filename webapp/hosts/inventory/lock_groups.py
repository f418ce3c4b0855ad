"""Lock groups: targets that share a drive, on any host. Two trials never use the same lock group at the same time.

One trial may use several targets of a group at once if its plan says so (`Trial.all_targets`).

Each target has the keys of all drives under it: a partition has its disk's key, an array or volume the keys of its
members, a directory those of its file system, a virtual drive those of its physical drives. Targets with a common key
are one lock group.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from uuid import UUID

from webapp.hosts.models import Host, Target
from worker.contract.controllers import Controller, VirtualDrive
from worker.contract.inventory import BlockDevice, Inventory, PolicyTarget

# Names stored in the drive or LUN, so they identify the same device on every host.
WORLD_WIDE = ("slot:", "wwn-", "nvme-", "eui.", "nguid.", "naa.", "scsi-", "uuid.", "t10.")
MAX_KEY_LENGTH = 300


def lock_keys(host: Host, target: PolicyTarget, inventory: Inventory) -> list[str]:
    """Sorted keys, at least one: world-wide names of drives, else names within the host."""
    devices = {device.name: device for device in inventory.block_devices}
    found = [devices[name] for name in _under(target, inventory) if name in devices]
    if not found:
        stable_id = (
            target.stable_id if target.kind in ("block", "slot") else f"{target.kind}:{target.device or target.path}"
        )
        return [_named(host, stable_id)]
    leaves = [leaf for device in found for leaf in _leaves(device, devices, depth=0)]
    behind = _behind_controllers(inventory)
    return sorted({_named(host, name) for leaf in leaves for name in (*_names(leaf), *behind.get(leaf.name, ()))})


def sharing(targets: Collection[Target]) -> dict[UUID, list[Target]]:
    """For each target with any: the targets of all hosts that share a drive with it. One query."""
    keys = sorted({key for target in targets for key in target.lock_keys})
    others = Target.objects.filter(in_policy=True, host__archived_at=None, lock_keys__has_any_keys=keys)
    near = list(others.select_related("host")) if keys else []
    found = {target.pk: _common(target, near) for target in targets}
    return {pk: shared for pk, shared in found.items() if shared}


def _common(target: Target, near: Iterable[Target]) -> list[Target]:
    own = set(target.lock_keys)
    return [other for other in near if other.pk != target.pk and own.intersection(other.lock_keys)]


def _under(target: PolicyTarget, inventory: Inventory) -> tuple[str, ...]:
    """Kernel names of the devices directly under the target: several for a file system over several devices."""
    if target.device or target.kind == "block":
        return (target.device,)
    ways = [(point, each.devices) for each in inventory.file_systems for point in each.points]
    on = [(point, names) for point, names in ways if PurePath(target.path).is_relative_to(point)]
    return max(on, key=lambda way: len(way[0]))[1] if on else ()


def _leaves(device: BlockDevice, devices: Mapping[str, BlockDevice], *, depth: int) -> list[BlockDevice]:
    """All devices under the device."""
    parents = [devices[name] for name in device.parents if name in devices]
    if not parents or depth > len(devices):
        return [device]
    return [leaf for parent in parents for leaf in _leaves(parent, devices, depth=depth + 1)]


def _names(drive: BlockDevice) -> list[str]:
    """Namespaces of one NVMe drive have different ids and share its serial number."""
    whole = [f"nvme-drive:{drive.model}:{drive.serial}"] if drive.transport.startswith("nvme") and drive.serial else []
    return [drive.stable_id, *whole]


def in_virtual_drives(inventory: Inventory) -> set[str]:
    """Keys of the physical drives in any virtual drive of a controller; equal to the keys of slots."""
    return {
        name for each in inventory.controllers for virtual in each.virtual_drives for name in _made_of(each, virtual)
    }


def _behind_controllers(inventory: Inventory) -> dict[str, set[str]]:
    """Names of the physical drives under each disk that a controller presents."""
    found: dict[str, set[str]] = {}
    for controller in inventory.controllers:
        if controller.tool == "sysfs":  # sysfs: each drive is a disk, and no drive is hidden behind another
            continue
        for drive in controller.physical_drives:
            found.setdefault(drive.device, set()).add(_physical(controller, drive.slot, drive.serial))
        for virtual in controller.virtual_drives:
            found.setdefault(virtual.device, set()).update(_made_of(controller, virtual))
    return found


def _made_of(controller: Controller, virtual: VirtualDrive) -> set[str]:
    serials = {drive.slot: drive.serial for drive in controller.physical_drives}
    return {_physical(controller, slot, serials.get(slot, "")) for slot in virtual.drives}


def _physical(controller: Controller, slot: str, serial: str) -> str:
    """The key of a slot; without a serial number, it is valid only within the host."""
    return f"slot:{serial}" if serial else f"physical:{controller.address or controller.number}/{slot}"


def _named(host: Host, name: str) -> str:
    return (name if name.startswith(WORLD_WIDE) else f"{host.id}:{name}")[:MAX_KEY_LENGTH]
