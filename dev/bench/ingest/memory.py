"""The worker's memory during a long trial."""

import argparse
import time
from pathlib import Path

from dev.bench.figures import Figure, figure
from dev.console import ToolError, say, step
from dev.demo import start
from dev.stack import processes, services
from dev.stack.state import State

POLL_S = 0.5
LIMIT_S = 600.0  # beyond the length of the trial
MIB = 1024 * 1024
GROWTH_WANTED_MIB = 2
FACTORS = {"pattern": "randread", "block_size": "4k", "iodepth": "4", "size": "16m"}


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """Growth of the worker's resident memory from the trial's second quarter to its last."""
    start.bring_up(state)
    with step(f"a trial of {options.minutes:g} minutes"):
        sizes = _sizes(state, int(options.minutes * 60))
    quarter = len(sizes) // 4
    growth = (max(sizes[-quarter:]) - max(sizes[quarter : 2 * quarter])) / MIB
    say(f"    {min(sizes) / MIB:.1f} to {max(sizes) / MIB:.1f} MiB in {len(sizes)} readings")
    wanted, met = f"< {GROWTH_WANTED_MIB}", growth < GROWTH_WANTED_MIB
    return [figure("worker's memory, last quarter minus second", "MiB", [growth], wanted, met=met)]


def _sizes(state: State, seconds: int) -> list[int]:
    """The worker's resident bytes, twice a second from the trial's first sample to its end. Raises ToolError."""
    from dev.bench import runs
    from webapp.results.models import Sample

    run = runs.start("Long", {**FACTORS, "runtime": f"{seconds}s"}, target="scratch")
    samples = Sample.objects.filter(attempt__run=run)
    found: list[int] = []
    until = time.monotonic() + seconds + LIMIT_S
    while runs.is_open(run):
        record = processes.known(state, services.WORKER)
        if record is None or time.monotonic() > until:
            raise ToolError("The trial did not end.")
        if samples.exists():
            found.append(_resident_bytes(record.pid))
        time.sleep(POLL_S)
    runs.require_done(run)
    return found


def _resident_bytes(pid: int) -> int:
    """VmRSS of proc(5), in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
