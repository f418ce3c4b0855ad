"""How busy everything under the targets is: members of an array or of a file system, the drives under a volume."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.engines.fio.device import Counters, counters_in, sample_between
from worker.inventory import sysfs
from worker.inventory.sysfs import SYS
from worker.telemetry.source import OpenFile, opened, short

MOST = 128  # devices


class Members:
    """Utilisation in percent and time-weighted mean queue depth, from /sys/class/block/<name>/stat."""

    def __init__(self, devices: Iterable[str], sys: Path = SYS) -> None:
        self._files: dict[str, OpenFile] = {}
        for name in islice(devices, MOST):
            # a queue that does not count would read as a device without any work
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
