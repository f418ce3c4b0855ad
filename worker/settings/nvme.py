"""Features of an NVMe controller, read and set through the kernel's admin passthrough, without a tool.

NVM Express Base Specification 1.4, 5.14 Get Features, 5.21 Set Features; the command's layout is
`struct nvme_passthru_cmd` of linux/nvme_ioctl.h.
"""

import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

from worker.kernel.sysfs import SYS
from worker.settings.base import Setting, SettingScope, refused

_ADMIN_COMMAND = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
_SET_FEATURES, _GET_FEATURES = 0x09, 0x0A
_LIMIT_MS = 5000
_POWER_STATE, _WRITE_CACHE = 0x02, 0x06


class NvmeFeature(Setting):
    """One number in Dword 11. It is set without "save", so a restart of the controller resets it."""

    scope = SettingScope.CONTROLLER
    by_name_only = True

    def __init__(
        self, name: str, feature: int, description: str, allowed: Callable[[str], bool], mask: int, *, sys: Path = SYS
    ) -> None:
        self.name = name
        self._feature = feature
        self._description = description
        self._allowed = allowed
        self._mask = mask
        self._sys = sys

    def describe(self) -> str:
        return self._description

    def read(self, subject: str) -> str:
        return str(self._command(subject, _GET_FEATURES) & self._mask)

    def apply(self, subject: str, value: str) -> None:
        if not (value.isascii() and value.isdigit() and self._allowed(value)):
            raise refused(f"{self.name} cannot be {value!r}: {self._description}.")
        self._command(subject, _SET_FEATURES, int(value))

    def missing(self, subject: str) -> str:
        return f"{subject} is not an NVMe controller, or has no {self.name}."

    def _command(self, subject: str, opcode: int, value: int = 0) -> int:
        """The command's result; raises SettingError with the kernel's or the controller's reason."""
        head, tail = (opcode, *[0] * 9), (0, 0, 0, 0, _LIMIT_MS, 0)
        command = bytearray(_COMMAND.pack(*head, self._feature, value, *tail))
        try:
            fd = os.open(self._device(subject), os.O_RDWR | os.O_CLOEXEC)
            try:
                status = fcntl.ioctl(fd, _ADMIN_COMMAND, command)
            finally:
                os.close(fd)
        except OSError as error:
            raise refused(f"{self.name} of {subject}: {error.strerror}.") from error
        if status:
            raise refused(f"{self.name} of {subject}: the controller refused the command with status {status:#x}.")
        return int(_COMMAND.unpack(bytes(command))[-1])

    def _device(self, subject: str) -> Path:
        found = next((self._sys / "bus/pci/devices" / subject / "nvme").glob("nvme*"), None)
        if found is None:
            raise refused(self.missing(subject))
        return Path("/dev") / found.name


NVME_WRITE_CACHE = NvmeFeature(
    "nvme.write_cache", _WRITE_CACHE, "the volatile write cache of the controller: 0 off, 1 on", "01".__contains__, 1
)
NVME_POWER_STATE = NvmeFeature(
    "nvme.power_state", _POWER_STATE, "power state of the controller, 0 (fastest) to 31", lambda v: int(v) < 32, 31
)
