"""The interface of a telemetry source, and a kernel file that stays open for repeated reads."""

import os
from pathlib import Path
from typing import Protocol

from worker.contract.items import Sensor

BUFFER_BYTES = 16 * 1024


class Source(Protocol):
    """Sensors that are read together. `sensors` lists only existing ones."""

    @property
    def sensors(self) -> tuple[Sensor, ...]: ...

    def restart(self) -> None:
        """Start counting now."""

    def read(self) -> list[float | None]:
        """A value for each sensor since the last read or restart; None if it has none."""

    def close(self) -> None: ...


class OpenFile:
    """A file of procfs or sysfs. Opening a file costs several times as much as reading it."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._buffer = bytearray(BUFFER_BYTES)

    def read(self) -> bytes:
        """The current content in a single read, so that it is consistent; b"" if it cannot be read."""
        try:
            while (length := os.preadv(self._fd, [self._buffer], 0)) == len(self._buffer):
                self._buffer = bytearray(2 * len(self._buffer))
        except OSError:
            return b""
        return bytes(self._buffer[:length])

    def number(self) -> int | None:
        found = self.read().strip()
        return int(found) if found.removeprefix(b"-").isdigit() else None

    def close(self) -> None:
        os.close(self._fd)


def opened(path: Path) -> OpenFile | None:
    """None if the file is missing, unreadable or empty (the hardware refuses the sensor)."""
    try:
        file = OpenFile(path)
    except OSError:
        return None
    if file.read():
        return file
    file.close()
    return None


def short(value: float) -> float:
    """One decimal, or 0 without a decimal, because most shares are 0 and each is sent every second."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded
