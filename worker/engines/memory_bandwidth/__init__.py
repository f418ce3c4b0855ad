"""The memory bandwidth engine: `sysbench memory` reads or writes memory."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from worker.contract.base import KIB, MIB
from worker.contract.items import StreamResult
from worker.contract.memory_bandwidth import MemoryWorkload
from worker.engines.base import Check, StreamFailed
from worker.engines.running import Running
from worker.engines.sysbench import following
from worker.engines.sysbench.following import installation as installation
from worker.engines.sysbench.following import offer as offer
from worker.recipes.base import size_words
from worker.recipes.memory_bandwidth import METRICS

MEMINFO = Path("/proc/meminfo")
_RATE = r"^ *[0-9.]+ MiB transferred \(([0-9.]+) MiB/sec\)$"


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. Samples and result have no direction."""
    work = running.stream.workload
    assert isinstance(work, MemoryWorkload)
    _check_memory(work)
    recipe = running.recipe()
    running.report_start(time.time(), recipe, command=following.COMMAND, metrics=METRICS)
    sampler = running.sampler()
    measured = following.measure(running, recipe, sampler, lambda _: sampler.emit((), time.monotonic()))
    metrics = {"memory_bytes_per_s": MIB * measured.number(_RATE)}
    return following.stream_result(running, sampler, measured, metrics=metrics)


def _check_memory(work: MemoryWorkload) -> None:
    """Raises StreamFailed if the buffers would not leave half of the memory that is available."""
    wanted = work.threads * work.buffer_bytes
    for line in MEMINFO.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and 2 * wanted > (there := KIB * int(rest.split()[0])):
            raise StreamFailed(
                "option_refused",
                f"{work.threads} buffers of {size_words(work.buffer_bytes)} are more than half of the "
                f"{there // MIB} MiB of memory that are available: use fewer threads or smaller buffers.",
            )


def check() -> Iterator[Check]:
    for each in following.check():
        yield msgspec.structs.replace(each, name="memory")
