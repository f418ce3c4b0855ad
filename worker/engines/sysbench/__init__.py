"""The sysbench engine: `sysbench fileio` prepares files in a temporary folder, and reads or writes them."""

import re
import time

from worker.contract.base import MIB
from worker.contract.items import Attachment, Direction, MediaType, StreamResult
from worker.contract.sysbench import SysbenchWorkload
from worker.engines.base import StreamFailed, direction_result
from worker.engines.running import Running
from worker.engines.sysbench import following
from worker.engines.sysbench.following import check as check
from worker.engines.sysbench.following import installation as installation
from worker.engines.sysbench.following import offer as offer
from worker.engines.sysbench.reports import EVENTS, Seconds, latency_in, moments_of

_RATES = re.compile(r"reads: ([0-9.]+) MiB/s writes: ([0-9.]+) MiB/s")


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. Samples have no latencies, because sysbench prints them only at its end."""
    work = running.stream.workload
    assert isinstance(work, SysbenchWorkload)
    recipe, started_at = running.recipe(), time.time()
    running.report_start(started_at, recipe, command=following.COMMAND)
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
    seconds.finish(ios)
    latency = latency_in(measured.report)
    return StreamResult(
        stream=running.stream.number,
        started_at=started_at,
        began_at=sampler.began_unix,
        ended_at=time.time(),
        engine_version=following.version(),
        exit_code=0,
        stderr=measured.stderr,
        directions=(
            direction_result(
                direction,
                ios=ios,
                moved_bytes=ios * work.block_bytes,
                runtime_ms=measured.runtime_ms,
                latency=latency,
                moments=moments_of(measured, latency),
            ),
        ),
        usr_cpu_percent=measured.usr_cpu_percent,
        sys_cpu_percent=measured.sys_cpu_percent,
        device=sampler.whole(),
        samples=sampler.count,
        attachments=(Attachment(name="sysbench.txt", media_type=MediaType.TEXT, text=measured.report),),
    )
