"""The limit is in front of the drive: a busy processor, or one whose time the hypervisor took.

    processor    the device has no I/O in flight for at least 20 % of the time, while one or more cores work in at least
                 95 % of the time in nine of ten seconds, or all cores together in at least 90 % of the whole time. A
                 core works in user, system and interrupt time; the wait for I/O is free time (proc(5), /proc/stat)
    interrupts   the same, and more than half of the work of the busy cores is hard and soft interrupts
    hypervisor   at least 10 % of the time of all cores was stolen

Each trial of a point has to show it, over the whole trial. At low depths a device is idle between I/Os by nature: then
no core is busy, and nothing is said. All limits are our convention. A device with no counters is never called idle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean

import numpy as np

from webapp.analysis.answer import FindingKind
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, TimedFinding, timed
from webapp.core.formatting import significant
from worker.contract.items import SensorKind

MOST_UTILISATION = 80.0  # percent
BUSY_CORE, BUSY_SECONDS, BUSY_ALL = 95.0, 0.9, 90.0
MOST_INTERRUPTS = 0.5  # of the work of a core
LEAST_STOLEN = 10.0  # percent
MIN_SECONDS = 3
_WORK = (SensorKind.CPU_USER, SensorKind.CPU_SYSTEM, SensorKind.CPU_IRQ)


@dataclass(frozen=True)
class Processor:
    """The cores of one trial, in percent of their time."""

    busy: tuple[str, ...]  # names of cores that work all the time
    cores: int
    work: float  # of the busy cores; of all cores if there are none
    interrupts: float  # share of that work
    stolen: float  # of all cores


def processor(trial: RecordedTrial) -> Processor | None:
    """None if fewer than `MIN_SECONDS` were recorded."""
    shares = [trial.of_kind(kind) for kind in _WORK]
    names = tuple(name for name in shares[0] if all(name in each for each in shares))
    if not names or len(shares[0][names[0]]) < MIN_SECONDS:
        return None
    work = {name: np.add.reduce([each[name] for each in shares]) for name in names}
    known = {name: values[~np.isnan(values)] for name, values in work.items()}
    busy = tuple(name for name in names if len(known[name]) and _is_busy(known[name]))
    chosen = busy or names
    total = fmean(float(known[name].mean()) for name in chosen if len(known[name]))
    irq = fmean(float(np.nanmean(shares[2][name])) for name in chosen)
    stolen = trial.of_kind(SensorKind.CPU_STEAL)
    steal = fmean(float(np.nanmean(each)) for each in stolen.values()) if stolen else 0.0
    return Processor(busy, len(names), total, irq / total if total else 0.0, steal)


def _is_busy(work: np.ndarray) -> bool:
    return float((work >= BUSY_CORE).mean()) >= BUSY_SECONDS


def find(points: Sequence[RecordedPoint]) -> Sequence[TimedFinding]:
    known = [(point, [each for trial in point.trials if (each := processor(trial))]) for point in points]
    complete = [(point, each) for point, each in known if len(each) == len(point.trials)]
    return [*_processor_finding(complete), *_stolen_finding(complete)]


Judged = tuple[RecordedPoint, Sequence[Processor]]


def _processor_finding(known: Sequence[Judged]) -> Sequence[TimedFinding]:
    limited = [each for each in known if _is_limited(*each)]
    if not limited:
        return []
    ranked = sorted(limited, key=lambda each: _utilisation(each[0]))
    point, processors = ranked[0]
    used = _utilisation(point)
    sentence = (
        f"the host was the limit: {_cores(processors)} while the device was idle {100 - used:.0f} % of the time"
        f"{_queue(point)}"
    )
    size, points = log(100 / max(used, 1.0)), [point for point, _ in ranked]
    return timed(FindingKind.BOTTLENECK, sentence, point, points, size=size, value=100 - used)


def _is_limited(point: RecordedPoint, processors: Sequence[Processor]) -> bool:
    used = [_mean(trial.utilisation) for trial in point.trials]
    is_idle = all(share is not None and share <= MOST_UTILISATION for share in used)
    return is_idle and all(each.busy or each.work >= BUSY_ALL for each in processors)


def _utilisation(point: RecordedPoint) -> float:
    return fmean(_mean(trial.utilisation) or 0.0 for trial in point.trials)


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _cores(processors: Sequence[Processor]) -> str:
    """`core 3 was at 99 %`, `both cores were at 93 %`; `one core` if it was another one in other trials."""
    work = f"{fmean(each.work for each in processors):.0f} %"
    names, cores = {each.busy for each in processors}, processors[0].cores
    counts = {len(each.busy) for each in processors}
    handling = " with interrupts" if all(each.interrupts > MOST_INTERRUPTS for each in processors) else ""
    if 0 in counts or counts == {cores}:
        all_cores = {1: "the only core was", 2: "both cores were"}.get(cores, f"all {cores} cores were")
        return f"{all_cores} at {work}{handling}"
    if max(counts) > 1:
        number = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"
        return f"{number} of {cores} cores were at {work}{handling}"
    name = f"core {next(iter(names))[0].removeprefix('cpu')}" if len(names) == 1 else "one core"
    return f"{name} was at {work}{handling}"


def _queue(point: RecordedPoint) -> str:
    """The queue of the device against the depth that the workload asks for, if it is less than half full."""
    depths = [_mean(trial.queue_depth) for trial in point.trials]
    known = [depth for depth in depths if depth is not None]
    if not point.depth or point.depth < 2 or not known or fmean(known) > point.depth / 2:
        return ""
    return f" and held {significant(fmean(known))} of {point.depth} I/Os"


def _stolen_finding(known: Sequence[Judged]) -> Sequence[TimedFinding]:
    affected = [
        (point, of_point)
        for point, of_point in known
        if min(processor.stolen for processor in of_point) >= LEAST_STOLEN
    ]
    if not affected:
        return []
    point, processors = max(affected, key=lambda candidate: fmean(processor.stolen for processor in candidate[1]))
    stolen = fmean(processor.stolen for processor in processors)
    sentence = f"the hypervisor took {stolen:.0f} % of the processor's time"
    size, points = log(100 / max(100 - stolen, 1.0)), [point for point, _ in affected]
    return timed(FindingKind.STOLEN, sentence, point, points, size=size, value=stolen)
