"""Settings that are one file in a device's /sys/block/<device>/queue."""

import os
import re
from pathlib import Path

from worker.inventory import sysfs
from worker.settings.base import SettingError


class QueueFile:
    """A whole number in a file of the queue directory. None of them survives a reboot."""

    survives_reboot = False
    _form = re.compile(r"^\d{1,18}$")

    def __init__(
        self,
        name: str,
        description: str,
        *,
        choices: tuple[str, ...] = (),
        rank: int = 2,
        disturbs: tuple[str, ...] = (),
        sys: Path = sysfs.SYS,
    ) -> None:
        self.name = name
        self.rank = rank
        self.disturbs = disturbs
        self._description = description
        self._choices = choices
        self._sys = sys

    def describe(self) -> str:
        return self._description

    def discover(self, device: str) -> bool:
        """A file that is there may still not be readable: wbt_lat_usec where the kernel has no throttling."""
        try:
            self.read(device)
        except SettingError:
            return False
        return True

    def read(self, device: str) -> str:
        try:
            return self._path(device).read_text().strip()
        except OSError as error:
            raise self._refused(device, "cannot be read", error) from error

    def choices(self, device: str) -> tuple[str, ...]:
        return self._choices if self.discover(device) else ()

    def apply(self, device: str, value: str) -> None:
        if not self._form.match(value):
            raise SettingError("setting_refused", f"{self.name} cannot be {value!r}: it is a whole number.")
        self._write(device, value)

    def verify(self, asked: str, observed: str) -> bool:
        return asked.isdigit() and observed.isdigit() and int(asked) == int(observed)

    def restore(self, device: str, value: str) -> None:
        self._write(device, value)

    def _write(self, device: str, value: str) -> None:
        """One write call, so that the kernel's answer is about the whole value."""
        try:
            fd = os.open(self._path(device), os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(fd, value.encode())
            finally:
                os.close(fd)
        except OSError as error:
            raise self._refused(device, f"was not set to {value!r}", error) from error

    def _path(self, device: str) -> Path:
        return sysfs.node(device, self._sys) / "queue" / self.name

    def _refused(self, device: str, what: str, error: OSError) -> SettingError:
        hint = " The worker is not root." if isinstance(error, PermissionError) and os.geteuid() else ""
        return SettingError("setting_refused", f"{self.name} of {device} {what}: {error.strerror}.{hint}")
