"""`make bench`: the worker's overhead, CPU time and turnover on this machine.

Each figure is a ratio against a measurement taken beside it, or a share of a core, so that noise of the machine shows
in the spread and not in the verdict. The drive is an unlimited loop device over a file on this machine's disk.

| figure | definition |
| --- | --- |
| overhead | IOPS of a trial through the worker, with its live stream ÷ IOPS of the same job run by hand, in turn |
| worker's CPU | CPU time of the worker's process, without fio, over a streaming trial |
| turnover | from the end of one trial's fio to the start of the next one's, no settings changed |
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise

from dev.bench.figures import Figure, cpu_s, figure, show
from dev.console import ToolError, run_command, step
from dev.demo import start
from dev.stack import processes, services
from dev.stack.state import State
from dev.stack.temporary import installation

OVERHEAD_WANTED, CPU_WANTED_PERCENT, TURNOVER_WANTED_MS = 0.99, 3.0, 300.0
FACTORS = {"pattern": "randread", "block_size": "4k", "ioengine": "io_uring", "numjobs": "1"}


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if a figure misses its limit."""
    options = _options(arguments)
    if os.getuid() != 0:
        raise ToolError("make bench creates a loop device, which requires root.")
    with installation("bench") as state:
        start.bring_up(state)
        figures = [*_overhead(options.pairs, options.seconds, state), _turnover(options.trials)]
    return show(figures, as_json=options.json)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of trials for the overhead, at each depth")
    parser.add_argument("--seconds", type=int, default=10, help="length of each of these trials, in s")
    parser.add_argument("--trials", type=int, default=20, help="consecutive trials for the turnover")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    return parser.parse_args(arguments)


# ---- overhead and the worker's CPU


def _overhead(pairs: int, seconds: int, state: State) -> list[Figure]:
    figures, cpu = [], []
    for depth in (1, 32):
        ratios = []
        for pair in range(1, pairs + 1):
            with step(f"overhead at queue depth {depth}, pair {pair} of {pairs}"):
                iops, job_text, share = _through_the_worker(depth, seconds, state)
                ratios.append(iops / _by_hand(job_text))
                cpu.append(share)
        met = statistics.median(ratios) >= OVERHEAD_WANTED
        name = f"IOPS through the worker ÷ by hand, 4 KiB random read, depth {depth}"
        figures.append(figure(name, "ratio", ratios, f">= {OVERHEAD_WANTED}", met=met))
    met = statistics.median(cpu) < CPU_WANTED_PERCENT
    figures.append(figure("CPU of the worker's process", "% of a core", cpu, f"< {CPU_WANTED_PERCENT:g}", met=met))
    return figures


def _through_the_worker(depth: int, seconds: int, state: State) -> tuple[float, str, float]:
    """fio's own final IOPS, the job text, and the worker's CPU in % of a core from the trial's order to its close."""
    from dev.bench import runs
    from webapp.results.models import StreamRun, known

    cpu_before, started_at = _worker_cpu_s(state), time.monotonic()
    factors = {**FACTORS, "iodepth": str(depth), "runtime": f"{seconds}s"}
    run = runs.run_to_end(f"overhead {depth}", factors, target="loop0")
    share = 100 * (_worker_cpu_s(state) - cpu_before) / (time.monotonic() - started_at)
    stream = StreamRun.objects.get(attempt__run=run)
    return known(stream.results.get().iops), stream.job_text, share


def _worker_cpu_s(state: State) -> float:
    """Of the worker's own process, not of its children."""
    record = processes.known(state, services.WORKER)
    if record is None:
        raise processes.failure(state, services.WORKER, "ended during the measurement")
    return cpu_s(record.pid)


def _by_hand(job_text: str) -> float:
    """IOPS of the same job from fio alone, without a live stream."""
    done = subprocess.run(
        ["fio", "--output-format=json", "-"], input=job_text, capture_output=True, text=True, check=True
    )
    read = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
    return float(read["iops"])


# ---- turnover


def _turnover(trials: int) -> Figure:
    from dev.bench import runs
    from webapp.results.models import StreamRun

    with step(f"turnover over {trials} trials of 1 s"):
        factors = {**FACTORS, "iodepth": "1", "runtime": "1s"}
        run = runs.run_to_end("turnover", factors, target="loop0", repeats=trials)
    times = StreamRun.objects.filter(attempt__run=run).order_by("started_at").values_list("started_at", "ended_at")
    gaps_ms = [
        1000 * (begins - ended).total_seconds() for (_, ended), (begins, _) in pairwise(times) if ended is not None
    ]
    met = statistics.median(gaps_ms) < TURNOVER_WANTED_MS
    return figure("turnover, end of fio to start of the next", "ms", gaps_ms, f"< {TURNOVER_WANTED_MS:g}", met=met)


if __name__ == "__main__":
    run_command(main)
