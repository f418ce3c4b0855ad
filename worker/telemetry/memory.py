"""Dirty memory and memory under writeback, the result of buffered writes."""

import re
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.telemetry.source import opened

PROC = Path("/proc")
_LINES = re.compile(rb"^(Dirty|Writeback): +(\d+) kB", re.MULTILINE)


class WaitingMemory:
    """Dirty and writeback of /proc/meminfo, in bytes."""

    def __init__(self, proc: Path = PROC) -> None:
        self._file = opened(proc / "meminfo")
        self.sensors = tuple(Sensor(kind=SensorKind.MEMORY, name=name) for name in self._now())

    def restart(self) -> None:
        """Nothing to do: the values are not counters."""

    def read(self) -> list[float | None]:
        now = self._now()
        return [now.get(sensor.name) for sensor in self.sensors]

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _now(self) -> dict[str, int]:
        found = _LINES.findall(self._file.read()) if self._file else []
        return {name.decode().lower(): int(kib) * 1024 for name, kib in found}
