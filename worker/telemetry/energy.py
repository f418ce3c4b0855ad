"""Power from the processors' energy counters (RAPL, Documentation/power/powercap/powercap.rst). Requires root."""

import time
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.inventory.sysfs import SYS, text
from worker.telemetry.source import OpenFile, opened, short


class Energy:
    """Watts of each package, and of its memory if that is counted."""

    def __init__(self, sys: Path = SYS) -> None:
        self._files: dict[str, OpenFile] = {}
        self._ranges: dict[str, int] = {}
        for zone in sorted((sys / "class/powercap").glob("intel-rapl:*")):
            name = _name_of(zone, sys)
            if name and name not in self._files and (file := opened(zone / "energy_uj")):
                self._files[name] = file
                limit = text(zone / "max_energy_range_uj")
                self._ranges[name] = int(limit) if limit.isdecimal() else 0
        self.sensors = tuple(Sensor(kind=SensorKind.POWER, name=name) for name in self._files)
        self.restart()

    def restart(self) -> None:
        self._before, self._at = self._now(), time.monotonic()

    def read(self) -> list[float | None]:
        before, before_at = self._before, self._at
        self.restart()
        return [self._watts(name, before[name], self._before[name], self._at - before_at) for name in self._files]

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _now(self) -> dict[str, int | None]:
        return {name: file.number() for name, file in self._files.items()}

    def _watts(self, name: str, before: int | None, now: int | None, elapsed_s: float) -> float | None:
        """The counter wraps around at its range, at most once per minute even at 1 kW."""
        if before is None or now is None or elapsed_s <= 0:
            return None
        spent_uj = now - before if now >= before else now + self._ranges[name] - before
        return short(spent_uj / 1e6 / elapsed_s) if spent_uj >= 0 else None


def _name_of(zone: Path, sys: Path) -> str:
    """`package-0`, `psys`, or `package-0 dram`; not cores and graphics, which are part of their package."""
    own = text(zone / "name")
    if zone.name.count(":") == 1:
        return own
    above = text(sys / "class/powercap" / zone.name.rpartition(":")[0] / "name")
    return f"{above} {own}" if own == "dram" else ""
