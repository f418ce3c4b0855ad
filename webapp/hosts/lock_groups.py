"""Which targets must never be used at once: those that lie on the same device, on whichever host they are seen."""

from collections.abc import Mapping

from webapp.hosts.models import Host
from worker.contract.inventory import BlockDevice, Inventory, PolicyTarget

# Names that a drive or LUN carries itself, so they mean the same device on every host.
WORLD_WIDE = ("wwn-", "nvme-", "eui.", "nguid.", "naa.", "scsi-", "uuid.", "t10.")


def lock_group(host: Host, target: PolicyTarget, inventory: Inventory) -> str:
    """The group's name: the world-wide id of the one device underneath, else a name within the host."""
    devices = {device.name: device for device in inventory.block_devices}
    found = devices.get(target.device)
    if found is None:
        stable_id = target.stable_id if target.kind == "block" else f"{target.kind}:{target.device or target.path}"
        return _named(host, stable_id)
    return _named(host, _underlying(found, devices))


def _underlying(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """The stable id of what everything of `device` lies on; of itself where that is several devices."""
    lowest = {leaf.stable_id for leaf in _leaves(device, devices, depth=0)}
    return lowest.pop() if len(lowest) == 1 else device.stable_id


def _leaves(device: BlockDevice, devices: Mapping[str, BlockDevice], *, depth: int) -> list[BlockDevice]:
    parents = [devices[name] for name in device.parents if name in devices]
    if not parents or depth > len(devices):
        return [device]
    return [leaf for parent in parents for leaf in _leaves(parent, devices, depth=depth + 1)]


def _named(host: Host, stable_id: str) -> str:
    return stable_id if stable_id.startswith(WORLD_WIDE) else f"{host.id}:{stable_id}"[:300]
