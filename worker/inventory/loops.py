"""Leave out loop devices of other programs, such as those of snaps: they come and go, and no target is on them."""

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from worker.contract.inventory import BlockDevice, Inventory


def without_foreign_loops(found: Inventory, targets: Collection[str]) -> Inventory:
    """The inventory without loop devices, their partitions and file systems that nothing else in it lies on.

    `targets`: kernel names of the devices under the policy's targets.
    """
    devices = {device.name: device for device in found.block_devices}
    loops = {name: _disk(device) for name, device in devices.items() if _is_loop(devices.get(_disk(device)))}
    several = {name for each in found.file_systems if len(each.devices) > 1 for name in each.devices}
    needed = set(_below({*targets, *several, *(devices.keys() - loops.keys())}, devices))
    foreign = {name for name, disk in loops.items() if disk not in needed}
    return replace(
        found,
        block_devices=tuple(device for device in found.block_devices if device.name not in foreign),
        file_systems=tuple(each for each in found.file_systems if not foreign.issuperset(each.devices)),
    )


def _disk(device: BlockDevice) -> str:
    """Kernel name of the whole device."""
    return device.parents[0] if device.kind == "partition" and device.parents else device.name


def _is_loop(device: BlockDevice | None) -> bool:
    return device is not None and device.kind == "loop"


def _below(names: Collection[str], devices: Mapping[str, BlockDevice]) -> Iterator[str]:
    """These devices and all below them, each once."""
    seen, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += devices[name].parents if name in devices else ()
            yield name
