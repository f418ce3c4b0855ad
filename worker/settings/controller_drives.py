"""Read and set the cache policies of the virtual drive under a block device, through the controller's tool.

The worker finds the virtual drive of a block device once. Before each read or write it checks that the tool still
reports the disk's world-wide name or SCSI target.
"""

import time
from pathlib import Path

import msgspec

from worker import controllers
from worker.contract.controllers import Battery, VirtualDrive
from worker.controllers import Adapter, CachePolicy, ToolError
from worker.inventory import sysfs
from worker.inventory.controllers import by_address, drivers_with_a_tool, is_shown_as
from worker.inventory.sysfs import SYS
from worker.settings.base import SettingError, no_controller, refused

FRESH_S = 1.0  # the settings of one drive are read one after another


class VirtualDriveKey(msgspec.Struct, frozen=True):
    """The controller and the number that the tool uses for a virtual drive."""

    adapter: Adapter
    controller: str
    number: str


class _Answer(msgspec.Struct, frozen=True):
    at: float
    found: VirtualDrive | SettingError


class ControllerDrives:
    def __init__(self, sys: Path = SYS) -> None:
        self.sys = sys
        self._keys: dict[str, VirtualDriveKey] = {}
        self._answers: dict[str, _Answer] = {}

    def read(self, device: str) -> VirtualDrive:
        """The virtual drive, at most FRESH_S old. Raises SettingError.

        Errors are cached for the same time, so that a tool that hangs is not called once for each setting.
        """
        known = self._answers.get(device)
        if known is None or time.monotonic() - known.at > FRESH_S:
            known = _Answer(found=self._ask(device), at=time.monotonic())
            self._answers[device] = known
        if isinstance(known.found, SettingError):
            raise known.found
        return known.found

    def adapter(self, device: str) -> Adapter:
        self.read(device)
        return self._keys[sysfs.stable_id(device, self.sys)].adapter

    def set(self, device: str, policy: CachePolicy, value: str) -> None:
        """Raises SettingError with the tool's message. Read the value back afterwards."""
        self._answers.pop(device, None)
        self.read(device)  # checks that it is still the same drive
        key = self._keys[sysfs.stable_id(device, self.sys)]
        try:
            key.adapter.set(key.controller, key.number, policy, value)
        except ToolError as error:
            raise refused(str(error)) from error
        finally:
            self._answers.pop(device, None)

    def battery(self, device: str) -> Battery | None:
        """The controller's battery. Slow: the tool lists the whole controller."""
        key = self._keys.get(sysfs.stable_id(device, self.sys))
        try:
            told = key.adapter.read_controllers() if key else ()
        except ToolError:
            return None
        return next((each.battery for each in told if key and each.number == key.controller), None)

    # ---- reading through the tool

    def _ask(self, device: str) -> VirtualDrive | SettingError:
        try:
            return self._known(device) or self._found(device)
        except ToolError as error:
            return refused(str(error))
        except SettingError as error:
            return error

    def _known(self, device: str) -> VirtualDrive | None:
        """None if the drive has not been found before, or its number now belongs to another one."""
        key = self._keys.get(sysfs.stable_id(device, self.sys))
        if key is None:
            return None
        drive = key.adapter.virtual_drive(key.controller, key.number)
        return drive if self._is(device, drive, key.adapter) else None

    def _found(self, device: str) -> VirtualDrive:
        """Find the drive among all controllers of the driver. Slow, so done once for each drive."""
        address, drivers = sysfs.controller(device, self.sys), drivers_with_a_tool(self.sys)
        if address not in drivers:
            raise no_controller(f"{device} is not behind a RAID controller that this worker supports.")
        told = controllers.read_controllers([drivers[address]])
        adapter, controller = by_address(told, drivers).get(address, (None, None))
        if adapter is None or controller is None:
            raise refused(told.problems.get(drivers[address]) or f"No tool lists the controller at {address}.")
        found = next((drive for drive in controller.virtual_drives if self._is(device, drive, adapter)), None)
        if found is None:
            raise refused(f"{adapter.name} lists no virtual drive for {device}.")
        self._keys[sysfs.stable_id(device, self.sys)] = VirtualDriveKey(adapter, controller.number, found.number)
        return found

    def _is(self, device: str, drive: VirtualDrive, adapter: Adapter) -> bool:
        return is_shown_as(drive, adapter, device, sysfs.world_wide_name(device, self.sys), self.sys)
