"""`make bench`: the figures that are promised, measured on this machine in one go.

Everything is a ratio against something measured beside it, or a share of a core, so a
noisy machine shows in the spread and not in the verdict. The drive is a loop device
without a limit, over a file on this machine's disk.

| figure | what is compared |
| --- | --- |
| overhead | IOPS of a trial through the worker with its live stream ÷ the same job text run by hand, in turn |
| worker's CPU | CPU time of the worker's process (fio is another) over a streaming trial |
| turnover | from the end of one trial's fio to the start of the next one's, no settings changed |
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from webapp.local import demo, processes, services, stack
from webapp.local.console import Trouble, run_command, say, step
from webapp.local.state import State, default_state

if TYPE_CHECKING:
    from webapp.runs.models import Run

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RUN_LIMIT_S = 600.0
OVERHEAD_WANTED, CPU_WANTED_PERCENT, TURNOVER_WANTED_MS = 0.99, 3.0, 300.0


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    median: float
    lowest: float
    highest: float
    count: int
    wanted: str
    met: bool


def figure(name: str, unit: str, values: Sequence[float], wanted: str, *, met: bool) -> Figure:
    return Figure(name, unit, statistics.median(values), min(values), max(values), len(values), wanted, met)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if a figure misses what is wanted."""
    options = _options(arguments)
    if os.getuid() != 0:
        raise Trouble("make bench measures on a loop device, and making one takes root.")
    state = default_state("bench")
    try:
        demo.bring_up(state)
        figures = [*_overhead(options.pairs, options.seconds, state), _turnover(options.trials)]
    finally:
        with step("removing the bench's processes and data"):
            stack.remove(state)
    show(figures, as_json=options.json)
    return 0 if all(each.met for each in figures) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of trials for the overhead, at each depth")
    parser.add_argument("--seconds", type=int, default=10, help="length of each of them, in s")
    parser.add_argument("--trials", type=int, default=20, help="trials in a row for the turnover")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    return parser.parse_args(arguments)


# ---- running a plan


def _run(title: str, factors: dict[str, str], *, repeats: int = 1) -> "Run":
    """Run 4 KiB random reads on the loop device to the end. Raises Trouble unless every trial is done."""
    from webapp.hosts.models import Target
    from webapp.plans.document import Part, PlanDocument
    from webapp.plans.services import create_plan
    from webapp.runs.models import OPEN_RUN_STATES, RunState
    from webapp.runs.services import start_run

    basic = {"pattern": "randread", "block_size": "4k", "ioengine": "io_uring", "numjobs": "1"}
    document = PlanDocument(title=title, parts=(Part(name="main", factors={**basic, **factors}),), repeats=repeats)
    run = start_run(
        version=create_plan(document=document, by=None).versions.get(),
        targets=[Target.objects.get(slug="loop0", in_policy=True)],
        by=None,
    )
    until = time.monotonic() + RUN_LIMIT_S
    while run.state in OPEN_RUN_STATES:
        if time.monotonic() > until:
            raise Trouble(f"{title}: not done within {RUN_LIMIT_S:.0f} s; it is {run.state}.")
        time.sleep(0.2)
        run.refresh_from_db()
    if run.state != RunState.DONE or run.trials.exclude(state="done").exists():
        raise Trouble(f"{title}: {[(trial.state, trial.reason) for trial in run.trials.exclude(state='done')]}")
    return run


# ---- overhead and the worker's CPU


def _overhead(pairs: int, seconds: int, state: State) -> list[Figure]:
    figures, cpu = [], []
    for depth in (1, 32):
        ratios = []
        for pair in range(1, pairs + 1):
            with step(f"overhead at queue depth {depth}, pair {pair} of {pairs}"):
                ours, job_text, share = _through_the_worker(depth, seconds, state)
                ratios.append(ours / _by_hand(job_text))
                cpu.append(share)
        met = statistics.median(ratios) >= OVERHEAD_WANTED
        name = f"IOPS through the worker ÷ by hand, 4 KiB random read, depth {depth}"
        figures.append(figure(name, "ratio", ratios, f">= {OVERHEAD_WANTED}", met=met))
    met = statistics.median(cpu) < CPU_WANTED_PERCENT
    figures.append(figure("CPU of the worker's process", "% of a core", cpu, f"< {CPU_WANTED_PERCENT:g}", met=met))
    return figures


def _through_the_worker(depth: int, seconds: int, state: State) -> tuple[float, str, float]:
    """fio's own final IOPS, the job text, and the worker's CPU in % of a core from the trial's order to its close."""
    from webapp.results.models import StreamRun

    cpu_before, begun = _worker_cpu_s(state), time.monotonic()
    run = _run(f"overhead {depth}", {"iodepth": str(depth), "runtime": f"{seconds}s"})
    share = 100 * (_worker_cpu_s(state) - cpu_before) / (time.monotonic() - begun)
    stream = StreamRun.objects.get(attempt__run=run)
    return stream.results.get().iops, stream.job_text, share


def _worker_cpu_s(state: State) -> float:
    """User and system time of the worker's own process (proc(5), stat fields 14 and 15), not of its children."""
    record = processes.known(state, services.WORKER)
    if record is None:
        raise processes.failure(state, services.WORKER, "ended during the measurement")
    fields = Path(f"/proc/{record.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _by_hand(job_text: str) -> float:
    """IOPS of the same job, as a person would run it: no live stream."""
    done = subprocess.run(
        ["fio", "--output-format=json", "-"], input=job_text, capture_output=True, text=True, check=True
    )
    read = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
    return float(read["iops"])


# ---- turnover


def _turnover(trials: int) -> Figure:
    from webapp.results.models import StreamRun

    with step(f"turnover over {trials} trials of 1 s"):
        run = _run("turnover", {"iodepth": "1", "runtime": "1s"}, repeats=trials)
    times = StreamRun.objects.filter(attempt__run=run).order_by("started_at").values_list("started_at", "ended_at")
    gaps_ms = [
        1000 * (begins - ended).total_seconds() for (_, ended), (begins, _) in pairwise(times) if ended is not None
    ]
    met = statistics.median(gaps_ms) < TURNOVER_WANTED_MS
    return figure("turnover, end of fio to start of the next", "ms", gaps_ms, f"< {TURNOVER_WANTED_MS:g}", met=met)


def show(figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print them as a table."""
    say(f"{'figure':<66} {'median':>9} {'lowest':>9} {'highest':>9}  n  {'wanted':<8} unit")
    for each in figures:
        numbers = f"{each.median:>9.4g} {each.lowest:>9.4g} {each.highest:>9.4g} {each.count:>2}"
        say(f"{each.name:<66} {numbers}  {each.wanted:<8} {each.unit}{'' if each.met else '   MISSED'}")
    if as_json:
        say(json.dumps([asdict(each) for each in figures], indent=2))


if __name__ == "__main__":
    run_command(main)
