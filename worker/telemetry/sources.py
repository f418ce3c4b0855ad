"""All telemetry sources. To add one, write a class on `Source` and a line in `every_source`."""

import logging
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Self

from worker.contract.items import MAX_SENSORS, Sensor, SensorKind
from worker.kernel import pci, sysfs
from worker.kernel.counters import Counters, counters_in, sample_between
from worker.kernel.sysfs import SYS, text
from worker.kernel.targets import OpenTarget
from worker.kernel.usage import PROC
from worker.process.run import ToolError, ask
from worker.telemetry.kernel_log import KernelWatch

# The base of telemetry sources, and a kernel file that stays open for repeated reads.

BUFFER_BYTES = 16 * 1024


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
        value = self.read().strip()
        return int(value) if value.removeprefix(b"-").isdigit() else None

    def close(self) -> None:
        os.close(self._fd)


class Source(ABC):
    """Sensors that are read together. `sensors` lists only existing ones."""

    sensors: tuple[Sensor, ...]

    def __init__(self) -> None:
        self._open_files: list[OpenFile] = []

    def restart(self) -> None:  # noqa: B027 - most sources keep it
        """Start counting now. Sources without counters have nothing to do."""

    @abstractmethod
    def read(self) -> list[float | None]:
        """A value for each sensor since the last read or restart; None if it has none."""

    def close(self) -> None:
        for file in self._open_files:
            file.close()

    def _open(self, path: Path) -> OpenFile | None:
        """Keep the file open until `close`. None if it is missing, unreadable or empty (the hardware refuses it)."""
        try:
            file = OpenFile(path)
        except OSError:
            return None
        if not file.read():
            file.close()
            return None
        self._open_files.append(file)
        return file


# Dirty memory and memory under writeback, the result of buffered writes.

_LINES = re.compile(rb"^(Dirty|Writeback): +(\d+) kB", re.MULTILINE)


class WaitingMemory(Source):
    """Dirty and writeback of /proc/meminfo, in bytes."""

    def __init__(self, proc: Path = PROC) -> None:
        super().__init__()
        self._file = self._open(proc / "meminfo")
        self.sensors = tuple(Sensor(kind=SensorKind.MEMORY, name=name) for name in self._now())

    def read(self) -> list[float | None]:
        now = self._now()
        return [now.get(sensor.name) for sensor in self.sensors]

    def _now(self) -> dict[str, int]:
        lines = _LINES.findall(self._file.read()) if self._file else []
        return {name.decode().lower(): int(kib) * 1024 for name, kib in lines}


# Sensors that are slow or disturb I/O, read every few seconds in a separate thread.
#
# The worker queries the temperature of a drive once per `EVERY_S`, because the query competes with the I/O. A drive
# that hangs blocks only this thread. IPMI reads the power from the baseboard management controller over a slow bus:
# `ipmitool dcmi power reading`, parsed according to its documentation; not tested on real hardware. Each value
# appears in one sample; other samples have none.

log = logging.getLogger(__name__)

EVERY_S = 10.0
IPMI_LIMIT_S = 5.0
DEV = Path("/dev")
_NODES = ("ipmi0", "ipmi/0", "ipmidev/0")
_READING = re.compile(r"^\s*Instantaneous power reading:\s+([0-9]+) Watts", re.MULTILINE)
_ACTIVE = re.compile(r"^\s*Power reading state is:\s+activated", re.MULTILINE)

Ask = Callable[[], float | None]


class SlowSensors(Source):
    def __init__(self, devices: Sequence[str], sys: Path = SYS, dev: Path = DEV) -> None:
        super().__init__()
        sensors: dict[Sensor, Ask] = {
            Sensor(kind=SensorKind.TEMPERATURE, name=name): way for name, way in drive_inputs(devices, sys).items()
        }
        if any((dev / node).exists() for node in _NODES):
            sensors[Sensor(kind=SensorKind.POWER, name="server (IPMI)")] = server_watts
        self._asked = sensors
        self.sensors = tuple(sensors)
        self._fresh: dict[Sensor, float | None] = {}
        self._closed = threading.Event()
        if sensors:
            threading.Thread(target=self._run, name="slow sensors", daemon=True).start()

    def read(self) -> list[float | None]:
        return [self._fresh.pop(sensor, None) for sensor in self.sensors]

    def close(self) -> None:
        """Returns at once, because a sensor may never answer."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            for sensor, way in self._asked.items():
                if not self._closed.is_set():
                    self._fresh[sensor] = way()
            self._closed.wait(EVERY_S)


def server_watts() -> float | None:
    """Power of the whole server in watts; None if the management controller does not report it."""
    try:
        output = ask("ipmitool", "dcmi", "power", "reading", limit_s=IPMI_LIMIT_S)
    except ToolError as error:
        log.debug("IPMI power cannot be read: %s", error)
        return None
    return read_dcmi(output.out)


def read_dcmi(text: str) -> float | None:
    """Parse the output of `ipmitool dcmi power reading`."""
    match = _READING.search(text)
    return float(match.group(1)) if match and _ACTIVE.search(text) else None


# Temperatures from the kernel's hardware monitoring (Documentation/hwmon/sysfs-interface.rst), in °C.
#
# Reading a processor's temperature is cheap. Reading a drive's sends a command to the drive (drivetemp: SMART or SCT;
# nvme: its SMART log), which competes with the I/O: see `slow`.

CPU_DRIVERS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
DRIVE_DRIVERS = frozenset({"drivetemp", "nvme"})
_WHOLE = re.compile(r"^(Package id|Tctl|Tdie|Physical id)")  # the package, not single cores
_PATH = re.compile(r"^nvme([0-9]+)c[0-9]+(n[0-9]+)\Z")  # a namespace on one of several paths


class CpuTemperatures(Source):
    """Temperatures of every package, or of all inputs if none is labelled as a package."""

    def __init__(self, sys: Path = SYS) -> None:
        super().__init__()
        inputs = [place for monitor in monitors(CPU_DRIVERS, sys) for place in _cpu_inputs(monitor)]
        names = Counter(name for name, _, _ in inputs)
        self._files: dict[str, OpenFile] = {}
        for name, where, path in inputs:
            unique = name if names[name] == 1 else f"{name} {where}"
            if unique not in self._files and (file := self._open(path)):
                self._files[unique] = file
        self.sensors = tuple(Sensor(kind=SensorKind.TEMPERATURE, name=name) for name in self._files)

    def read(self) -> list[float | None]:
        return [degrees(file.number()) for file in self._files.values()]


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
        value = text(path)
        return degrees(int(value)) if value.removeprefix("-").isdigit() else None

    return ask


def _drives_of(device: Path) -> list[str]:
    """Block devices of a SCSI disk or an NVMe controller; the controller may have the name of its PCI function."""
    scsi = [entry.name for entry in device.glob("block/*")]
    namespaces = [entry.name for pattern in ("nvme*n*", "nvme/*/nvme*n*") for entry in device.glob(pattern)]
    return scsi + [_PATH.sub(r"nvme\1\2", name) for name in namespaces]


# Power from the processors' energy counters (RAPL, Documentation/power/powercap/powercap.rst). Requires root.


class Energy(Source):
    """Watts of each package, and of its memory if that is counted."""

    def __init__(self, sys: Path = SYS) -> None:
        super().__init__()
        self._files: dict[str, OpenFile] = {}
        self._ranges: dict[str, int] = {}
        for zone in sorted((sys / "class/powercap").glob("intel-rapl:*")):
            name = _name_of(zone, sys)
            if name and name not in self._files and (file := self._open(zone / "energy_uj")):
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
    name = text(zone / "name")
    if zone.name.count(":") == 1:
        return name
    above = text(sys / "class/powercap" / zone.name.rpartition(":")[0] / "name")
    return f"{above} {name}" if name == "dram" else ""


# Utilisation of each core, and interrupts, from /proc/stat (proc(5)), read once per second.
#
# The line `intr` has the total, followed by the sum over all processors for each interrupt number. These are the same
# counts as in /proc/interrupts, which takes a thousand times longer to read on a host with many processors and
# queues.

# Columns of a cpu line: user nice system idle iowait irq softirq steal (guest time is part of user and nice).
_SHARES: tuple[tuple[SensorKind, tuple[int, ...]], ...] = (
    (SensorKind.CPU_USER, (0, 1)),
    (SensorKind.CPU_SYSTEM, (2,)),
    (SensorKind.CPU_IRQ, (5, 6)),
    (SensorKind.CPU_IOWAIT, (4,)),
)
_STEAL = (SensorKind.CPU_STEAL, (7,))
_COUNTED = 8


class ProcStat(Source):
    """Shares of each core's time in percent, and interrupts per second: total, and of each controller in `devices`."""

    def __init__(self, devices: Sequence[str], proc: Path = PROC, sys: Path = SYS) -> None:
        super().__init__()
        self._file = self._open(proc / "stat")
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


# Utilisation of all devices under the targets: members of arrays and file systems, drives under volumes.

MAX_DEVICES = 128


class Members(Source):
    """Utilisation in percent and time-weighted mean queue depth, from /sys/class/block/<name>/stat."""

    def __init__(self, devices: Iterable[str], sys: Path = SYS) -> None:
        super().__init__()
        self._files: dict[str, OpenFile] = {}
        for name in islice(devices, MAX_DEVICES):
            # without iostats, a device would appear idle
            if sysfs.attribute(name, "queue/iostats", sys) != "0" and (
                file := self._open(sysfs.node(name, sys) / "stat")
            ):
                self._files[name] = file
        self.sensors = tuple(
            Sensor(kind=kind, name=name)
            for name in self._files
            for kind in (SensorKind.UTILISATION, SensorKind.QUEUE_DEPTH)
        )
        self._before: dict[str, Counters | None] = {}
        self.restart()

    def restart(self) -> None:
        self._before = {name: counters_in(file.read()) for name, file in self._files.items()}

    def read(self) -> list[float | None]:
        values: list[float | None] = []
        before = self._before
        self.restart()
        for name in self._files:
            sample = sample_between(name, before[name], self._before[name])
            values += (short(sample.utilisation_percent), short(sample.queue_depth)) if sample else (None, None)
        return values


def short(value: float) -> float:
    """One decimal, or 0 without a decimal, because most shares are 0 and each is sent every second."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def every_source(
    open_targets: Iterable[OpenTarget], *, sys: Path = SYS, proc: Path = PROC, dev: Path = DEV
) -> tuple[Source, ...]:
    """Open all sources that this host has for these targets."""
    each = list(open_targets)
    targets = [
        name
        for name in dict.fromkeys(n for open_target in each for n in open_target.devices)
        if sysfs.exists(name, sys)
    ]
    below = list(dict.fromkeys(member for name in targets for member in sysfs.below(name, sys)))
    drives = sysfs.drives_under(targets, sys)
    return (
        Members(dict.fromkeys([*(name for open_target in each for name in open_target.several), *below]), sys),
        WaitingMemory(proc),
        CpuTemperatures(sys),
        SlowSensors(drives, sys, dev),
        Energy(sys),
        ProcStat(drives, proc, sys),
    )


class Telemetry:
    """The readings of one attempt: `sensors` lists the names once, `take` returns values in the same order.

    Not thread-safe: only the first stream calls it.
    """

    def __init__(self, sources: Sequence[Source], kernel: KernelWatch) -> None:
        self._sources = sources
        self.kernel_log = kernel.readable
        self.sensors = tuple(sensor for source in sources for sensor in source.sensors)[:MAX_SENSORS]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for source in self._sources:
            source.close()

    def restart(self) -> None:
        """Start counting rates now."""
        for source in self._sources:
            source.restart()

    def take(self) -> tuple[float | None, ...]:
        """The values since the last call; None for a sensor without a value."""
        return tuple(value for source in self._sources for value in source.read())[:MAX_SENSORS]
