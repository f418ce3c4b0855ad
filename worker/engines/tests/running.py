"""A stream for an engine under test, with lists for its reports."""

import threading
from collections.abc import Callable

from worker.contract.items import Sample, StreamStarted
from worker.contract.workload import Stream
from worker.engines.running import Running
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits
from worker.process.scope import Scope


def running(
    stream: Stream,
    target: OpenTarget,
    scope: Scope,
    cancelled: threading.Event,
    *,
    silence_s: float = 10,
    total_s: float = 20,
    on_started: Callable[[StreamStarted], None] = lambda _: None,
    on_sample: Callable[[Sample], None] = lambda _: None,
) -> Running:
    def report(item: StreamStarted | Sample) -> None:
        if isinstance(item, StreamStarted):
            on_started(item)
        else:
            on_sample(item)

    limits = Limits(total_s=total_s, silence_s=silence_s)
    return Running(stream=stream, target=target, scope=scope, limits=limits, cancelled=cancelled, report=report)
