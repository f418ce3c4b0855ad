"""Finds the drives under block devices, in time linear in the inventory, whatever a host reports."""

from worker.contract.inventory import BlockDevice, Inventory

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
        """Each once; the device itself if it lies on nothing; [] if the host has none of this name. Raises TooLarge."""
        if name not in self._known:
            self._known[name] = self._walk(name)
        self._step(len(self._known[name]))
        return self._known[name]

    def _walk(self, start: str) -> list[BlockDevice]:
        seen, waiting, found = {start}, [start] if start in self._devices else [], []
        while waiting:
            device = self._devices[waiting.pop()]
            self._step(1 + len(device.parents))
            parents = [name for name in device.parents if name in self._devices]
            if not parents:
                found.append(device)
            fresh = dict.fromkeys(name for name in reversed(parents) if name not in seen)
            seen |= fresh.keys()
            waiting += fresh
        if len(found) > MAX_DRIVES:
            raise TooLarge(f"{len(found)} drives lie under {start}; at most {MAX_DRIVES} are supported.")
        return found or [self._devices[name] for name in seen if name == start and name in self._devices]

    def _step(self, count: int) -> None:
        self._steps_left -= count
        if self._steps_left < 0:
            raise TooLarge(f"The targets lie on too many devices: more than {MAX_STEPS} steps to find their drives.")
