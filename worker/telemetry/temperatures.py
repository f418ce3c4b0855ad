"""Temperatures from the kernel's hardware monitoring (Documentation/hwmon/sysfs-interface.rst), in °C.

Reading a processor's temperature is cheap. Reading a drive's sends a command to the drive (drivetemp:
SMART or SCT; nvme: its SMART log), which competes with the I/O: see `slow`.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.inventory.sysfs import SYS, text
from worker.telemetry.source import OpenFile, opened, short

CPU_DRIVERS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
DRIVE_DRIVERS = frozenset({"drivetemp", "nvme"})
_WHOLE = re.compile(r"^(Package id|Tctl|Tdie|Physical id)")  # the package, not single cores
_PATH = re.compile(r"^nvme([0-9]+)c[0-9]+(n[0-9]+)\Z")  # a namespace on one of several paths


class CpuTemperatures:
    """Temperatures of every package, or of all inputs if none is labelled as a package."""

    def __init__(self, sys: Path = SYS) -> None:
        found = [place for monitor in monitors(CPU_DRIVERS, sys) for place in _cpu_inputs(monitor)]
        names = Counter(name for name, _, _ in found)
        self._files: dict[str, OpenFile] = {}
        for name, where, path in found:
            unique = name if names[name] == 1 else f"{name} {where}"
            if unique not in self._files and (file := opened(path)):
                self._files[unique] = file
        self.sensors = tuple(Sensor(kind=SensorKind.TEMPERATURE, name=name) for name in self._files)

    def restart(self) -> None:
        """Nothing to do: the values are not counters."""

    def read(self) -> list[float | None]:
        return [degrees(file.number()) for file in self._files.values()]

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def degrees(thousandths: int | None) -> float | None:
    return None if thousandths is None else short(thousandths / 1000)


def monitors(drivers: frozenset[str], sys: Path) -> list[Path]:
    return [each for each in sorted((sys / "class/hwmon").glob("hwmon*")) if text(each / "name") in drivers]


def _cpu_inputs(monitor: Path) -> list[tuple[str, str, Path]]:
    """Name, device and file of each input."""
    labelled = {each: text(each.with_name(each.name.replace("_input", "_label"))) for each in _inputs(monitor)}
    chosen = {path: label for path, label in labelled.items() if _WHOLE.match(label)} or labelled
    where = (monitor / "device").resolve().name
    return [(f"CPU {label or path.name.removesuffix('_input')}", where, path) for path, label in chosen.items()]


def _inputs(monitor: Path) -> list[Path]:
    return sorted(monitor.glob("temp*_input"), key=lambda path: int(re.sub(r"[^0-9]", "", path.name) or 0))


def drive_inputs(devices: Sequence[str], sys: Path = SYS) -> dict[str, Callable[[], float | None]]:
    """The query for each drive with a sensor; the first sensor is that of the whole drive."""
    ways: dict[str, Callable[[], float | None]] = {}
    for monitor in monitors(DRIVE_DRIVERS, sys):
        path = monitor / "temp1_input"
        for name in _drives_of((monitor / "device").resolve()):
            if name in devices and path.exists():
                ways[name] = _asker(path)
    return ways


def _asker(path: Path) -> Callable[[], float | None]:
    def ask() -> float | None:
        found = text(path)
        return degrees(int(found)) if found.removeprefix("-").isdigit() else None

    return ask


def _drives_of(device: Path) -> list[str]:
    """Block devices of a SCSI disk or an NVMe controller; the controller may have the name of its PCI function."""
    scsi = [entry.name for entry in device.glob("block/*")]
    namespaces = [entry.name for pattern in ("nvme*n*", "nvme/*/nvme*n*") for entry in device.glob(pattern)]
    return scsi + [_PATH.sub(r"nvme\1\2", name) for name in namespaces]
