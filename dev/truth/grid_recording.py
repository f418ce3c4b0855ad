"""Measure a complete grid on a drive of this machine, for `dev.truth.measured_grids`.

    python -m dev.truth.grid_recording throttled FILE

    throttled  reads of a drive of 4,000 IOPS and 80 MB/s: block size, depth, jobs; 144 combinations
    patterns   a drive that writes more slowly than it reads: pattern, block size, depth, jobs; 144 combinations
    options    reads of a drive in memory, without limits: depth, jobs, options of io_uring; 192 combinations
    disk       a file on the disk of this machine: pattern, block size, depth, jobs; 144 combinations

Each repeat measures all combinations for 1 s in a random order. The rows are those that `sweetspot results --json`
prints of a run: the point, the repeat, rates and latency of each trial. Other load on the machine is noise of the grid,
so measure while it is quiet. Needs root, loop devices and the cgroups of `dev.truth.drive`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dev.console import run_command, say
from dev.stack import loop_device, processes
from dev.stack.state import default_state
from dev.truth.drive import Limit, drives
from dev.truth.trial import run
from worker.contract.packing import supported_percentile, unpack
from worker.contract.workload import KIB, FioWorkload, Pattern, UringOptions
from worker.engines.base import StreamFailed

REPEATS, RUNTIME_S = 3, 1
DISK_BYTES = 1024 * 1024 * KIB
THROTTLED = Limit(iops=4000, bytes_per_s=80_000_000)
SLOW_WRITES = {"iops": 2500, "bytes_per_s": 60_000_000}

Levels = Mapping[str, Any]
Devices = Callable[[], AbstractContextManager[str]]


@dataclass(frozen=True)
class Recording:
    """`factors`: levels by name. `work`: the workload of a combination. `device`: opens the drive."""

    factors: Mapping[str, Sequence[Any]]
    work: Callable[[Levels], FioWorkload]
    device: Devices


@contextmanager
def _throttled() -> Iterator[str]:
    with drives(1) as (drive,):
        drive.limit(THROTTLED)
        yield drive.path


@contextmanager
def _slow_writes() -> Iterator[str]:
    with drives(1) as (drive,):
        drive.limit(THROTTLED)
        drive.throttle.limit(drive.lower, **SLOW_WRITES, ways=["write"])
        yield drive.path


@contextmanager
def _unlimited() -> Iterator[str]:
    with drives(1) as (drive,):
        yield drive.path


@contextmanager
def _on_disk() -> Iterator[str]:
    state = default_state("truth-grid")
    state.prepare()
    with state.locked():
        image = state.root / "disk.img"
        device = loop_device.attach(image, DISK_BYTES)
        try:
            yield device
        finally:
            processes.run(["losetup", "--detach", device])
            image.unlink()


def _load(levels: Levels) -> FioWorkload:
    return FioWorkload(
        pattern=Pattern(levels.get("pattern", "randread")), block_bytes=levels.get("block_size", 4 * KIB),
        iodepth=levels["iodepth"], numjobs=levels["numjobs"], runtime_s=RUNTIME_S,
    )  # fmt: skip


def _options(levels: Levels) -> FioWorkload:
    uring = UringOptions(**{name: levels[name] for name in ("fixedbufs", "registerfiles", "sqthread_poll")})
    return FioWorkload(
        pattern=Pattern.RANDREAD, iodepth=levels["iodepth"], numjobs=levels["numjobs"], uring=uring, runtime_s=RUNTIME_S
    )


JOBS, SWITCH = (1, 2, 4, 8), (False, True)
RECORDINGS: Mapping[str, Recording] = {
    "throttled": Recording(
        {
            "block_size": [each * KIB for each in (4, 8, 16, 32, 48, 64)],
            "iodepth": [1, 2, 4, 8, 16, 32],
            "numjobs": JOBS,
        },
        _load,
        _throttled,
    ),
    "patterns": Recording(
        {
            "pattern": ["read", "randread", "randwrite"],
            "block_size": [each * KIB for each in (4, 16, 32, 64)],
            "iodepth": [1, 4, 16, 64],
            "numjobs": [1, 2, 4],
        },
        _load,
        _slow_writes,
    ),
    "options": Recording(
        {
            "iodepth": [1, 2, 4, 8, 16, 32],
            "numjobs": JOBS,
            **dict.fromkeys(("fixedbufs", "registerfiles", "sqthread_poll"), SWITCH),
        },
        _options,
        _unlimited,
    ),
    "disk": Recording(
        {
            "pattern": ["read", "randread", "randwrite"],
            "block_size": [4 * KIB, 16 * KIB, 64 * KIB],
            "iodepth": [1, 4, 16, 32],
            "numjobs": JOBS,
        },
        _load,
        _on_disk,
    ),
}


def recorded(recording: Recording) -> Iterator[dict[str, Any]]:
    """A row for each trial that succeeded."""
    names, levels_of = recording.factors.keys(), recording.factors.values()
    combinations = [dict(zip(names, levels, strict=True)) for levels in product(*levels_of)]
    with recording.device() as path:
        for repeat in range(1, REPEATS + 1):
            order = [combinations[place] for place in np.random.default_rng(repeat).permutation(len(combinations))]
            for number, levels in enumerate(order, start=1):
                row = _measured(path, recording.work(levels))
                if row:
                    yield {"point": levels, "repeat": repeat, **row}
                if number % 24 == 0:
                    say(f"repeat {repeat}: {number} of {len(order)}")


def _measured(path: str, work: FioWorkload) -> dict[str, Any]:
    """Rates and latency in the columns of a result; {} if the trial failed."""
    try:
        trial = run(path, work)
    except StreamFailed as failure:
        say(f"    {work.pattern.value} {work.block_bytes} {work.iodepth} {work.numjobs}: {failure.code}")
        return {}
    (direction,) = trial.result.directions
    return {
        "iops": round(direction.iops, 1),
        "bytes_per_s": round(direction.bytes_per_s),
        "latency_mean_ns": round(direction.latency_mean_ns),
        "p99_ns": supported_percentile(unpack(direction.latency), 99.0),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.truth.grid_recording", description="Measure a complete grid.")
    parser.add_argument("recording", choices=list(RECORDINGS))
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    rows = list(recorded(RECORDINGS[options.recording]))
    options.file.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(run_command(main))
