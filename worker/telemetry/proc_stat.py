"""Utilisation of each core, and interrupts, from /proc/stat (proc(5)), read once per second.

The line `intr` has the total, followed by the sum over all processors for each interrupt number.
These are the same counts as in /proc/interrupts, which takes a thousand times longer to read on a
host with many processors and queues.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.inventory import pci, sysfs
from worker.inventory.sysfs import SYS
from worker.telemetry.source import opened, short

PROC = Path("/proc")
# Columns of a cpu line: user nice system idle iowait irq softirq steal (guest time is part of user and nice).
_SHARES: tuple[tuple[SensorKind, tuple[int, ...]], ...] = (
    (SensorKind.CPU_USER, (0, 1)),
    (SensorKind.CPU_SYSTEM, (2,)),
    (SensorKind.CPU_IRQ, (5, 6)),
    (SensorKind.CPU_IOWAIT, (4,)),
)
_STEAL = (SensorKind.CPU_STEAL, (7,))
_COUNTED = 8


class ProcStat:
    """Shares of each core's time in percent, and interrupts per second: total, and of each controller in `devices`."""

    def __init__(self, devices: Sequence[str], proc: Path = PROC, sys: Path = SYS) -> None:
        self._file = opened(proc / "stat")
        self._irqs = _irqs_of(devices, sys)
        cores, counts = self._now()
        stolen = any(times[_STEAL[1][0]] for times in cores.values())  # only under a hypervisor
        self._shares = (*_SHARES, _STEAL) if stolen else _SHARES
        self._cores = tuple(cores)
        self._lines = tuple(self._irqs) if counts else ()
        self.sensors = (
            *(Sensor(kind=kind, name=core) for core in self._cores for kind, _ in self._shares),
            *(Sensor(kind=SensorKind.INTERRUPTS, name=name) for name in self._lines),
        )
        self.restart()

    def restart(self) -> None:
        self._before, self._at = self._now(), time.monotonic()

    def read(self) -> list[float | None]:
        (cores, counts), at = self._now(), time.monotonic()
        (cores_before, counts_before), elapsed_s = self._before, at - self._at
        self._before, self._at = (cores, counts), at
        values: list[float | None] = []
        for core in self._cores:
            values += self._core(cores.get(core), cores_before.get(core))
        for name in self._lines:
            here, before = counts.get(name), counts_before.get(name)
            known = here is not None and before is not None and elapsed_s > 0
            values.append(round(max(0, here - before) / elapsed_s) if known else None)  # type: ignore[operator]
        return values

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _core(self, now: Sequence[int] | None, before: Sequence[int] | None) -> list[float | None]:
        """No values for a core that is offline."""
        if now is None or before is None:
            return [None] * len(self._shares)
        spent = [max(0, here - there) for here, there in zip(now, before, strict=True)]  # iowait may decrease slightly
        if not (whole := sum(spent)):
            return [None] * len(self._shares)
        return [short(100 * sum(spent[at] for at in columns) / whole) for _, columns in self._shares]

    def _now(self) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
        cores: dict[str, tuple[int, ...]] = {}
        counts: dict[str, int] = {}
        for line in (self._file.read() if self._file else b"").splitlines():
            if line.startswith(b"cpu") and line[3:4].isdigit():
                words = line.split(maxsplit=_COUNTED + 1)
                cores[words[0].decode()] = tuple(map(int, words[1 : _COUNTED + 1]))
            elif line.startswith(b"intr "):
                words = line.split()
                counts = {name: sum(int(words[n]) for n in at if n < len(words)) for name, at in self._irqs.items()}
        return cores, counts


def _irqs_of(devices: Sequence[str], sys: Path) -> Mapping[str, tuple[int, ...]]:
    """Columns of the line `intr` by name: total, and the devices' controllers."""
    places: dict[str, tuple[int, ...]] = {"all": (1,)}
    for device in devices:
        address = sysfs.controller(device, sys)
        numbers = pci.interrupts(address, sys) if address else ()
        if numbers:
            driver = (sys / "bus/pci/devices" / address / "driver").resolve().name
            places[f"{driver} {address}"] = tuple(2 + number for number in numbers)
    return places
