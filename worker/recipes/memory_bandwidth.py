"""The memory bandwidth engine's recipe: `sysbench memory`, with a buffer for each thread."""

from worker.contract.items import Metric, Unit
from worker.contract.memory_bandwidth import MemoryWorkload
from worker.contract.workload import KIB, Stream, TargetKind
from worker.recipes.base import Recipe, size_words
from worker.recipes.sysbench import INSTALLATION as INSTALLATION
from worker.recipes.sysbench import SysbenchJob, recipe_of

LABEL = "Memory bandwidth"
METRICS = (Metric(name="memory_bytes_per_s", label="Memory bandwidth", unit=Unit.BYTES_PER_S),)
DEFAULT_METRIC = "memory_bytes_per_s"
_MORE_THAN_ANY_TIME_NEEDS = "1000000T"  # the run time ends it


def feature_words(feature: str) -> str:
    return feature


def problems(workload: MemoryWorkload, _kind: TargetKind) -> tuple[str, ...]:
    size = workload.buffer_bytes
    lower = 1 << (size.bit_length() - 1)
    if size == lower:
        return ()
    near = f"{size_words(lower)} or {size_words(2 * lower)}"
    return (f"sysbench takes only buffers with a power of two as their size, not {size_words(size)}: use {near}",)


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, MemoryWorkload)
    command = (
        "sysbench", "memory", f"--memory-oper={work.access}", f"--memory-block-size={work.buffer_bytes // KIB}K",
        "--memory-scope=local", f"--memory-total-size={_MORE_THAN_ANY_TIME_NEEDS}", f"--threads={work.threads}",
        f"--time={work.runtime_s}", "--report-interval=1", "run",
    )  # fmt: skip
    return recipe_of(SysbenchJob(run=command))
