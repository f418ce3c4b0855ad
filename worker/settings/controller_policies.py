"""Cache policies of a RAID controller's virtual drive, through the controller's own tool.

The cache in use may differ from the configured one: with a bad, charging or learning battery the controller writes
through although write back is configured. `read` then returns both, `write through (set to write back)`. This equals
neither value, so a trial that requested write back fails instead of measuring the wrong mode. The worker restores the
configured value. The controller keeps its settings over a restart. Not tested on real hardware.
"""

import time
from pathlib import Path

import msgspec

from worker import controllers
from worker.contract.inventory import Battery, VirtualDrive
from worker.controllers import by_address, drivers_with_a_tool, is_shown_as
from worker.controllers.base import Adapter, CachePolicy
from worker.kernel import sysfs
from worker.kernel.sysfs import SYS
from worker.process.run import ToolError
from worker.settings.base import Setting, SettingError, no_controller, refused

# Read and set the cache policies of the virtual drive under a block device, through the controller's tool.
#
# The worker finds the virtual drive of a block device once. Before each read or write it checks that the tool still
# reports the disk's world-wide name or SCSI target.

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
            controllers = key.adapter.read_controllers() if key else ()
        except ToolError:
            return None
        return next((each.battery for each in controllers if key and each.number == key.controller), None)

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
        answers = controllers.read_controllers([drivers[address]])
        adapter, controller = by_address(answers, drivers).get(address, (None, None))
        if adapter is None or controller is None:
            raise refused(answers.problems.get(drivers[address]) or f"No tool lists the controller at {address}.")
        match = next((drive for drive in controller.virtual_drives if self._is(device, drive, adapter)), None)
        if match is None:
            raise refused(f"{adapter.name} lists no virtual drive for {device}.")
        self._keys[sysfs.stable_id(device, self.sys)] = VirtualDriveKey(adapter, controller.number, match.number)
        return match

    def _is(self, device: str, drive: VirtualDrive, adapter: Adapter) -> bool:
        return is_shown_as(drive, adapter, device, sysfs.world_wide_name(device, self.sys), self.sys)


_BAD_BATTERY = "; with a bad battery "


class ControllerPolicy(Setting):
    survives_reboot = True
    by_name_only = True
    may_lag = True
    taken_by = "the controller"

    def __init__(self, name: str, policy: CachePolicy, description: str, drives: ControllerDrives) -> None:
        self.name = name
        self._policy = policy
        self.description = description
        self._drives = drives

    def read(self, subject: str) -> str:
        return self._told(self._drives.read(subject))

    def apply(self, subject: str, value: str) -> None:
        """Refuse the change if the tool could not restore the current value."""
        adapter = self._drives.adapter(subject)
        values = adapter.values(self._policy)
        before = self.shown(self.capture(subject))
        if not values:
            raise refused(f"{self.name} of {subject} cannot be set for one virtual drive by {adapter.name}.")
        if value not in values:
            raise refused(f"{self.name} of {subject} cannot be {value!r}: {adapter.name} supports {', '.join(values)}.")
        if before not in values:
            raise refused(f"{self.name} of {subject} is {before!r}, which {adapter.name} could not restore.")
        self._drives.set(subject, self._policy, value)

    def choices(self, subject: str) -> tuple[str, ...]:
        return self._drives.adapter(subject).values(self._policy)

    def missing(self, subject: str) -> str:
        """Raises SettingError with the tool's message if there is one."""
        self.read(subject)
        return super().missing(subject)

    def _told(self, drive: VirtualDrive) -> str:
        value: str = getattr(drive, self._policy.value)
        if not value:
            raise refused(f"The controller's tool does not report its {self.name.partition('.')[2].replace('_', ' ')}.")
        return value


class ControllerWriteCache(ControllerPolicy):
    """Some tools have a separate mode for a bad battery. The worker restores that mode too."""

    def read(self, subject: str) -> str:
        drive = self._drives.read(subject)
        wanted = self._told(drive)
        now = drive.write_cache_now or wanted
        return wanted if now == wanted else f"{now} (set to {wanted})"

    def capture(self, subject: str) -> str:
        drive = self._drives.read(subject)
        return self._told(drive) + (f"{_BAD_BATTERY}{drive.bad_battery}" if drive.bad_battery else "")

    def shown(self, state: str) -> str:
        return state.partition(_BAD_BATTERY)[0]

    def restore(self, subject: str, state: str) -> None:
        value, _, bad_battery = state.partition(_BAD_BATTERY)
        self._drives.set(subject, self._policy, value)
        if bad_battery:
            self._drives.set(subject, CachePolicy.BAD_BATTERY, bad_battery)

    def because(self, subject: str) -> str:
        battery = self._drives.battery(subject)
        return f" Its battery ({battery.kind}): {battery.state or 'unknown'}." if battery else ""


DRIVES = ControllerDrives()
CONTROLLER_POLICIES: tuple[Setting, ...] = (
    ControllerWriteCache(
        "controller.write_cache",
        CachePolicy.WRITE_CACHE,
        "write cache of the controller's virtual drive: write back, write through, always write back (without battery)",
        DRIVES,
    ),
    ControllerPolicy(
        "controller.read_ahead",
        CachePolicy.READ_AHEAD,
        "read-ahead of the controller's virtual drive: none, read ahead, adaptive",
        DRIVES,
    ),
    ControllerPolicy(
        "controller.io_policy",
        CachePolicy.IO,
        "whether reads of the controller's virtual drive go through its cache: direct, cached",
        DRIVES,
    ),
    ControllerPolicy(
        "controller.disk_cache",
        CachePolicy.DISK_CACHE,
        "cache inside the drives of the controller's virtual drive: enabled, disabled, unchanged",
        DRIVES,
    ),
)
