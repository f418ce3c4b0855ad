"""The idle engine: records the telemetry and the devices' counters, and does no I/O.

It starts no program, so it needs no limits.
"""

import time
from collections.abc import Iterator

from worker import __version__
from worker.contract.idle import IdleWorkload
from worker.contract.inventory import EngineOffer
from worker.contract.items import StreamResult
from worker.engines.base import Check, State, StreamFailed
from worker.engines.running import Running

SAMPLE_S = 1.0


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. Samples and result have no direction."""
    work = running.stream.workload
    assert isinstance(work, IdleWorkload)
    started_at = time.time()
    running.report_start(started_at, running.recipe())
    sampler = running.sampler()
    for second in range(1, work.runtime_s + 1):
        due = sampler.began + second * SAMPLE_S
        if running.cancelled.wait(max(0.0, due - time.monotonic())):
            raise StreamFailed("cancelled", "The stream was cancelled.")
        sampler.emit((), time.monotonic())
    return StreamResult(
        stream=running.stream.number,
        started_at=started_at,
        ended_at=time.time(),
        engine_version=__version__,
        exit_code=0,
        stderr="",
        directions=(),
        usr_cpu_percent=0,
        sys_cpu_percent=0,
        device=sampler.whole(),
        samples=sampler.count,
    )


def offer() -> EngineOffer:
    return EngineOffer(version=__version__, features=())


def installation() -> str:
    return __version__


def check() -> Iterator[Check]:
    yield Check("idle", State.OK, f"version {__version__}")
