"""All telemetry sources. To add one, write a module in this folder and a line in `every_source`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from worker.contract.items import MAX_SENSORS
from worker.inventory import sysfs
from worker.inventory.sysfs import SYS
from worker.open_target import OpenTarget
from worker.telemetry.energy import Energy
from worker.telemetry.kernel_log import KernelWatch
from worker.telemetry.members import Members
from worker.telemetry.memory import WaitingMemory
from worker.telemetry.proc_stat import PROC, ProcStat
from worker.telemetry.slow import DEV, SlowSensors
from worker.telemetry.source import Source
from worker.telemetry.temperatures import CpuTemperatures


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
    drives = [name for name in dict.fromkeys([*targets, *below]) if not sysfs.parents(name, sys)]
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
