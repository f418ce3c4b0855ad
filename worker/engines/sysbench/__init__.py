"""The sysbench engine: `sysbench fileio` prepares files in a temporary folder, and reads or writes them."""

import re
import time

from worker.contract.base import MIB
from worker.contract.items import Direction, StreamResult
from worker.contract.sysbench import SysbenchWorkload
from worker.engines.base import StreamFailed
from worker.engines.running import Running
from worker.engines.sysbench import following
from worker.engines.sysbench.following import check as check
from worker.engines.sysbench.following import installation as installation
from worker.engines.sysbench.following import offer as offer
from worker.engines.sysbench.reports import EVENTS, Seconds

_RATES = re.compile(r"reads: ([0-9.]+) MiB/s writes: ([0-9.]+) MiB/s")


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. Samples have no latencies, because sysbench prints them only at its end."""
    work = running.stream.workload
    assert isinstance(work, SysbenchWorkload)
    recipe = running.recipe()
    running.report_start(time.time(), recipe, command=following.COMMAND)
    sampler = running.sampler()
    direction = Direction.WRITE if work.measures_writes else Direction.READ

    def ios_of(text: str) -> float | None:
        rates = _RATES.search(text)
        return MIB * (float(rates[1]) + float(rates[2])) / work.block_bytes if rates else None

    seconds = Seconds(sampler, direction, ios_of, event_bytes=work.block_bytes)
    measured = following.measure(running, recipe, sampler, seconds.take)
    ios = int(measured.number(EVENTS))
    if not ios:
        raise StreamFailed("sysbench_error", f"sysbench completed no I/O in {work.runtime_s} s.")
    whole = seconds.finish(measured, ios)
    return following.stream_result(running, sampler, measured, directions=(whole,))
