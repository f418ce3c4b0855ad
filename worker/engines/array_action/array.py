"""An md array that is checked or rebuilt (kernel: Documentation/admin-guide/md.rst).

The progress comes from /proc/mdstat: `md/sync_completed` changes only after each sixteenth of the array.
"""

import re
import time
from pathlib import Path

import msgspec

from worker.engines.device import SECTOR_BYTES
from worker.engines.errors import StreamFailed

CODE = "array_action_failed"
STOP_LIMIT_S = 60.0
_LOOK_EVERY_S = 0.1
_PROGRESS = re.compile(r"\b(?:recovery|check) *= *[0-9.]+% \(([0-9]+)/([0-9]+)\)")
_KIB = 1024

SYS_BLOCK = Path("/sys/class/block")
MDSTAT = Path("/proc/mdstat")


class Progress(msgspec.Struct, frozen=True):
    done_bytes: int
    total_bytes: int


def progress_in(mdstat: str, name: str) -> Progress | None:
    """The progress of the check or rebuild of an array; None without one. An array's further lines are indented."""
    of = ""
    for line in mdstat.splitlines():
        of = of if line.startswith(" ") else line.partition(" ")[0]
        if of == name and (found := _PROGRESS.search(line)):
            return Progress(_KIB * int(found[1]), _KIB * int(found[2]))
    return None


class Array:
    """One array by its kernel name. All methods raise StreamFailed if the kernel refuses."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def action(self) -> str:
        """`idle`, `check`, `recover`, `frozen` …"""
        return self._read("sync_action")

    @property
    def degraded(self) -> bool:
        """Whether a member is missing or not rebuilt."""
        return self._read("degraded") != "0"

    @property
    def member_bytes(self) -> int:
        """The part of each member that the array uses."""
        return _KIB * int(self._read("component_size"))

    @property
    def checked_bytes(self) -> int:
        """The bytes of a complete check, as the kernel counts them: those of one member, or of the array for RAID 10.

        Linux, drivers/md/raid10.c: `resync_max_sectors` is the size of the array.
        """
        if self._read("level") != "raid10":
            return self.member_bytes
        return SECTOR_BYTES * int(self._read("../size"))

    @property
    def progress(self) -> Progress | None:
        try:
            return progress_in(MDSTAT.read_text(), self.name)
        except OSError as error:
            raise StreamFailed(CODE, f"{MDSTAT} cannot be read: {error.strerror}.") from error

    @property
    def check_was_stopped(self) -> bool:
        """Whether the last check was stopped: the kernel then keeps its position in `sync_min`, else 0."""
        return self._read("sync_min") != "0"

    def begin_check(self) -> None:
        """Check the whole array. The kernel would continue where an earlier check was stopped."""
        self._write("sync_min", "0")
        self._write("sync_action", "check")

    def stop(self, state: str) -> None:
        """End the current action: `idle`, or `frozen`, which also prevents the kernel from starting it again."""
        self._write("sync_action", state)
        until = time.monotonic() + STOP_LIMIT_S
        while (now := self.action) != state:
            if time.monotonic() > until:
                raise StreamFailed(CODE, f"The kernel did not end {now} of {self.name} within {STOP_LIMIT_S:.0f} s.")
            time.sleep(_LOOK_EVERY_S)

    def _file(self, name: str) -> Path:
        return SYS_BLOCK / self.name / "md" / name

    def _read(self, name: str) -> str:
        try:
            return self._file(name).read_text().strip()
        except OSError as error:
            raise StreamFailed(CODE, f"{name} of {self.name} cannot be read: {error.strerror}.") from error

    def _write(self, name: str, value: str) -> None:
        try:
            self._file(name).write_text(value)
        except OSError as error:
            words = f"{name} of {self.name} was not set to {value}: {error.strerror}."
            raise StreamFailed(CODE, words) from error
