"""Lock groups: targets that share a drive, on any host. Two trials never use the same lock group at the same time.

One trial may use several targets of a group at once if its plan says so (`Trial.all_targets`).

Each target has the keys of all drives under it: a partition has its disk's key, an array or volume the keys of its
members, a directory those of its file system, a virtual drive those of its physical drives. Targets with a common key
are one lock group.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from uuid import UUID

from webapp.core.errors import Refusal
from webapp.hosts.models import Host, Target
from worker.contract.inventory import BlockDevice, Controller, Inventory, PolicyTarget, VirtualDrive

# Finds the drives under block devices. The time is linear in the size of any inventory.

MAX_DRIVES = 256  # under one device
MAX_STEPS = 50_000  # of all walks in one inventory: a thousand targets on fifty drives each


class TooLarge(Exception):
    """The stack of devices is larger than that of any real host."""


class DrivesUnder:
    """The devices at the bottom of each device. All calls together take at most MAX_STEPS steps."""

    def __init__(self, inventory: Inventory) -> None:
        self._devices = {device.name: device for device in inventory.block_devices}
        self._known: dict[str, list[BlockDevice]] = {}
        self._steps_left = MAX_STEPS

    def of(self, name: str) -> list[BlockDevice]:
        """Each drive once; the device itself if no device is below it; [] if the device is unknown. Raises TooLarge."""
        if name not in self._known:
            self._known[name] = self._walk(name)
        self._step(len(self._known[name]))
        return self._known[name]

    def _walk(self, start: str) -> list[BlockDevice]:
        seen, waiting, drives = {start}, [start] if start in self._devices else [], []
        while waiting:
            device = self._devices[waiting.pop()]
            self._step(1 + len(device.parents))
            parents = [name for name in device.parents if name in self._devices]
            if not parents:
                drives.append(device)
            fresh = dict.fromkeys(name for name in reversed(parents) if name not in seen)
            seen |= fresh.keys()
            waiting += fresh
        if len(drives) > MAX_DRIVES:
            raise TooLarge(f"{len(drives)} drives lie under {start}; at most {MAX_DRIVES} are supported.")
        return drives or [self._devices[name] for name in seen if name == start and name in self._devices]

    def _step(self, count: int) -> None:
        self._steps_left -= count
        if self._steps_left < 0:
            raise TooLarge(f"The targets lie on too many devices: more than {MAX_STEPS} steps to find their drives.")


# Names stored in the drive or LUN, so they identify the same device on every host.
WORLD_WIDE = ("slot:", "wwn-", "nvme-", "eui.", "nguid.", "naa.", "scsi-", "uuid.", "t10.")
MAX_KEY_LENGTH = 300
MAX_KEYS = 50_000  # of all targets of a host
MAX_SHARING = 20  # other targets that are named for one


def lock_keys(host: Host, targets: Iterable[PolicyTarget], inventory: Inventory) -> list[list[str]]:
    """Sorted keys of each target, at least one: world-wide names of drives, else names within the host.

    Raises Refusal inventory_too_large.
    """
    under, behind = DrivesUnder(inventory), _behind_controllers(inventory)
    try:
        names_of_targets = [_drive_names(target, inventory, under, behind) for target in targets]
    except TooLarge as error:
        raise Refusal("inventory_too_large", f"The inventory of this host is too large. {error}") from error
    if sum(map(len, names_of_targets)) > MAX_KEYS:
        raise Refusal("inventory_too_large", f"The targets lie on too many drives: at most {MAX_KEYS} in all.")
    return [sorted(_named(host, name) for name in names) for names in names_of_targets]


def _drive_names(
    target: PolicyTarget, inventory: Inventory, under: DrivesUnder, behind: Mapping[str, set[str]]
) -> set[str]:
    drives = [drive for name in _under(target, inventory) for drive in under.of(name)]
    if not drives:
        local = target.kind not in ("block", "slot")
        return {f"{target.kind}:{target.device or target.path}" if local else target.stable_id}
    return {name for drive in drives for name in (*_names(drive), *behind.get(drive.name, ()))}


def sharing(targets: Collection[Target]) -> dict[UUID, list[Target]]:
    """For each target with any: targets of all hosts that share a drive with it, at most MAX_SHARING. One query."""
    keys = sorted({key for target in targets for key in target.lock_keys})
    others = Target.objects.filter(in_policy=True, host__archived_at=None, lock_keys__has_any_keys=keys)
    by_key: dict[str, list[Target]] = {}
    for other in others.select_related("host") if keys else []:
        for key in other.lock_keys:
            if len(alike := by_key.setdefault(key, [])) <= MAX_SHARING:
                alike.append(other)
    shared_by_target = {target.pk: _common(target, by_key) for target in targets}
    return {pk: shared for pk, shared in shared_by_target.items() if shared}


def _common(target: Target, by_key: Mapping[str, list[Target]]) -> list[Target]:
    near = {other.pk: other for key in target.lock_keys for other in by_key.get(key, ()) if other.pk != target.pk}
    return list(near.values())[:MAX_SHARING]


def _under(target: PolicyTarget, inventory: Inventory) -> tuple[str, ...]:
    """Kernel names of the devices directly under the target: several for a file system over several devices."""
    if target.device or target.kind == "block":
        return (target.device,)
    ways = [(point, each.devices) for each in inventory.file_systems for point in each.points]
    on = [(point, names) for point, names in ways if PurePath(target.path).is_relative_to(point)]
    return max(on, key=lambda way: len(way[0]))[1] if on else ()


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
    names_by_disk: dict[str, set[str]] = {}
    for controller in inventory.controllers:
        if controller.tool == "sysfs":  # sysfs: each drive is a disk, and no drive is hidden behind another
            continue
        for drive in controller.physical_drives:
            names_by_disk.setdefault(drive.device, set()).add(_physical(controller, drive.slot, drive.serial))
        for virtual in controller.virtual_drives:
            names_by_disk.setdefault(virtual.device, set()).update(_made_of(controller, virtual))
    return names_by_disk


def _made_of(controller: Controller, virtual: VirtualDrive) -> set[str]:
    serials = {drive.slot: drive.serial for drive in controller.physical_drives}
    return {_physical(controller, slot, serials.get(slot, "")) for slot in virtual.drives}


def _physical(controller: Controller, slot: str, serial: str) -> str:
    """The key of a slot; without a serial number, it is valid only within the host."""
    return f"slot:{serial}" if serial else f"physical:{controller.address or controller.number}/{slot}"


def _named(host: Host, name: str) -> str:
    return (name if name.startswith(WORLD_WIDE) else f"{host.id}:{name}")[:MAX_KEY_LENGTH]
