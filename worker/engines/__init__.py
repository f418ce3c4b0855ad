"""Engines run streams. Each engine is a package in this folder and a line in `ENGINES`."""

import os
from collections.abc import Iterable, Mapping
from typing import Protocol

from worker.contract.inventory import Capabilities, EngineOffer
from worker.contract.items import StreamResult
from worker.contract.workload import (
    ArrayActionWorkload,
    CopyWorkload,
    FioWorkload,
    IdleWorkload,
    MemoryWorkload,
    OltpWorkload,
    PgbenchWorkload,
    Stream,
    SysbenchWorkload,
    Workload,
)
from worker.engines import array_action, file_copy, fio, idle, memory_bandwidth, pgbench, sysbench, sysbench_oltp
from worker.engines.base import Check
from worker.engines.fio import prefill as prefill
from worker.engines.running import Running
from worker.process.scope import isolation


class Engine(Protocol):
    """A package of `engines`."""

    def offer(self) -> EngineOffer | None:
        """The features that work on this host, found by trying them; None if the engine does not work."""
        ...

    def installation(self) -> str:
        """A text that changes when another version of the engine is installed, so that `offer` is called again."""
        ...

    def check(self) -> Iterable[Check]:
        """The engine's checks for `sweetspot-worker doctor`."""
        ...

    def run_stream(self, running: Running) -> StreamResult:
        """Run the stream's job on its target. Raises StreamFailed; then nothing of it is left running."""
        ...


ENGINES: Mapping[type[Workload], Engine] = {
    FioWorkload: fio,
    CopyWorkload: file_copy,
    PgbenchWorkload: pgbench,
    SysbenchWorkload: sysbench,
    OltpWorkload: sysbench_oltp,
    IdleWorkload: idle,
    MemoryWorkload: memory_bandwidth,
    ArrayActionWorkload: array_action,
}


def engine_of(stream: Stream) -> Engine:
    return ENGINES[type(stream.workload)]


def capabilities(*, settings: tuple[str, ...]) -> Capabilities:
    """Everything a plan may ask of this host. The first call takes about a second."""
    offers = {kind.engine_name(): engine.offer() for kind, engine in ENGINES.items()}
    return Capabilities(
        engines={name: offer for name, offer in offers.items() if offer},
        settings=settings,
        as_root=os.geteuid() == 0,
        isolation=isolation(),
    )
