"""Utilisation of all devices under the targets: members of arrays and file systems, drives under volumes."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.engines.device import Counters, counters_in, sample_between
from worker.inventory import sysfs
from worker.inventory.sysfs import SYS
from worker.telemetry.source import OpenFile, opened, short

MAX_DEVICES = 128


class Members:
    """Utilisation in percent and time-weighted mean queue depth, from /sys/class/block/<name>/stat."""

    def __init__(self, devices: Iterable[str], sys: Path = SYS) -> None:
        self._files: dict[str, OpenFile] = {}
        for name in islice(devices, MAX_DEVICES):
            # without iostats, a device would appear idle
            if sysfs.attribute(name, "queue/iostats", sys) != "0" and (file := opened(sysfs.node(name, sys) / "stat")):
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
            found = sample_between(name, before[name], self._before[name])
            values += (short(found.utilisation_percent), short(found.queue_depth)) if found else (None, None)
        return values

    def close(self) -> None:
        for file in self._files.values():
            file.close()
