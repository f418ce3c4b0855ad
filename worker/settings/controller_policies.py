"""Cache policies of a RAID controller's virtual drive, through the controller's own tool.

The cache in use may differ from the configured one: with a bad, charging or learning battery the controller writes
through although write back is configured. `read` then returns both, `write through (set to write back)`. This equals
neither value, so a trial that requested write back fails instead of measuring the wrong mode. The worker restores the
configured value. The controller keeps its settings over a restart. Not tested on real hardware.
"""

from worker.contract.controllers import VirtualDrive
from worker.controllers import CachePolicy
from worker.settings.base import Setting, refused
from worker.settings.controller_drives import ControllerDrives

_BAD_BATTERY = "; with a bad battery "


class ControllerPolicy(Setting):
    survives_reboot = True
    by_name_only = True
    may_lag = True
    taken_by = "the controller"

    def __init__(self, name: str, policy: CachePolicy, description: str, drives: ControllerDrives) -> None:
        self.name = name
        self._policy = policy
        self._description = description
        self._drives = drives

    def describe(self) -> str:
        return self._description

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
        found: str = getattr(drive, self._policy.value)
        if not found:
            raise refused(f"The controller's tool does not report its {self.name.partition('.')[2].replace('_', ' ')}.")
        return found


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
