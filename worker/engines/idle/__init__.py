"""The idle engine: records the telemetry and the devices' counters, and does no I/O."""

import threading
import time
from collections.abc import Callable, Iterator

from worker import __version__
from worker.contract.idle import IdleWorkload
from worker.contract.inventory import EngineOffer
from worker.contract.items import Sample, StreamResult, StreamStarted
from worker.contract.workload import Stream
from worker.engines.base import Check, State, StreamFailed
from worker.engines.running import Sampler, Telemetry, recipe_at, stream_started
from worker.engines.stopping import SharedStop
from worker.kernel.targets import OpenTarget
from worker.process.scope import Scope
from worker.recipes import render

# Record one idle stream. It starts no program, so it needs no limits.

SAMPLE_S = 1.0


def run_stream(
    stream: Stream,
    open_target: OpenTarget,
    *,
    scope: Scope,  # noqa: ARG001 - of the interface
    cancelled: threading.Event,
    silence_limit_s: float,  # noqa: ARG001
    total_limit_s: float,  # noqa: ARG001
    on_started: Callable[[StreamStarted], None],
    on_sample: Callable[[Sample], None],
    telemetry: Telemetry | None = None,
    stop: SharedStop | None = None,  # noqa: ARG001 - it has no stop rules
) -> StreamResult:
    """As `engines.Engine` says. Samples and result have no direction."""
    assert isinstance(stream.workload, IdleWorkload)
    started_at = time.time()
    on_started(stream_started(started_at, stream, recipe_at(stream, open_target, render), telemetry))
    sampler = Sampler(stream.number, open_target.devices, on_sample, telemetry)
    for second in range(1, stream.workload.runtime_s + 1):
        due = sampler.began + second * SAMPLE_S
        if cancelled.wait(max(0.0, due - time.monotonic())):
            raise StreamFailed("cancelled", "The stream was cancelled.")
        sampler.emit((), time.monotonic())
    return StreamResult(
        stream=stream.number,
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
