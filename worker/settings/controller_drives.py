"""The virtual drive under a block device, as its controller's tool tells of it, and its policies set through that tool.

Which drive it is is found out once and held against the kernel every time: the tool must still tell the disk's own
world-wide name, or its SCSI target, before anything is believed or set.
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
from worker.settings.base import SettingError, refused

FRESH_S = 1.0  # several settings of one drive are read one after the other


class Behind(msgspec.Struct, frozen=True):
    """How a tool calls a virtual drive."""

    adapter: Adapter
    controller: str
    number: str


class _Answer(msgspec.Struct, frozen=True):
    at: float
    found: VirtualDrive | SettingError


class ControllerDrives:
    def __init__(self, sys: Path = SYS) -> None:
        self.sys = sys
        self._behind: dict[str, Behind] = {}
        self._answers: dict[str, _Answer] = {}

    def read(self, device: str) -> VirtualDrive:
        """As it is now, or was a moment ago. Raises SettingError.

        The error is kept for that moment, too: a tool that hangs is not asked by one setting after the other.
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
        return self._behind[sysfs.stable_id(device, self.sys)].adapter

    def set(self, device: str, policy: CachePolicy, value: str) -> None:
        """Raises SettingError with the tool's words. Read the result afterwards."""
        self._answers.pop(device, None)
        self.read(device)  # it is still the drive that we mean
        behind = self._behind[sysfs.stable_id(device, self.sys)]
        try:
            behind.adapter.set(behind.controller, behind.number, policy, value)
        except ToolError as error:
            raise refused(str(error)) from error
        finally:
            self._answers.pop(device, None)

    def battery(self, device: str) -> Battery | None:
        """Asked of the whole controller, which takes its time."""
        behind = self._behind.get(sysfs.stable_id(device, self.sys))
        try:
            told = behind.adapter.read_controllers() if behind else ()
        except ToolError:
            return None
        return next((each.battery for each in told if behind and each.number == behind.controller), None)

    # ---- asking

    def _ask(self, device: str) -> VirtualDrive | SettingError:
        try:
            return self._known(device) or self._found(device)
        except ToolError as error:
            return refused(str(error))
        except SettingError as error:
            return error

    def _known(self, device: str) -> VirtualDrive | None:
        """None where it is not known, or is another one by now."""
        behind = self._behind.get(sysfs.stable_id(device, self.sys))
        if behind is None:
            return None
        drive = behind.adapter.virtual_drive(behind.controller, behind.number)
        return drive if self._is(device, drive, behind.adapter) else None

    def _found(self, device: str) -> VirtualDrive:
        """Every controller of the driver is asked, which takes its time; done once for a drive."""
        address, drivers = sysfs.controller(device, self.sys), drivers_with_a_tool(self.sys)
        if address not in drivers:
            raise refused(f"{device} is behind no RAID controller whose tool this worker speaks.")
        told = controllers.read_controllers([drivers[address]])
        adapter, controller = by_address(told, drivers).get(address, (None, None))
        if adapter is None or controller is None:
            raise refused(told.problems.get(drivers[address]) or f"No tool tells of the controller at {address}.")
        found = next((drive for drive in controller.virtual_drives if self._is(device, drive, adapter)), None)
        if found is None:
            raise refused(f"{adapter.name} tells of no virtual drive that is {device}.")
        self._behind[sysfs.stable_id(device, self.sys)] = Behind(adapter, controller.number, found.number)
        return found

    def _is(self, device: str, drive: VirtualDrive, adapter: Adapter) -> bool:
        return is_shown_as(drive, adapter, device, sysfs.world_wide_name(device, self.sys), self.sys)
