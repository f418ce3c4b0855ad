"""The engine memory bandwidth: its factors, and the workload of a point."""

from collections.abc import Mapping
from statistics import fmean

import msgspec

from webapp.plans.engines.base import RUNTIME, Levels
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Count, Size, Value
from worker.contract.memory_bandwidth import MemoryAccess, MemoryWorkload
from worker.contract.workload import KIB, MIB
from worker.recipes import memory_bandwidth as recipe

WORKLOAD = MemoryWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "memory_access"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = ""
CHART_BY = "memory_access"
SERIES_BY = "memory_threads"
DIRECTIONS_BY = ""
NAMED_BY = {"memory_access": "memory {}", "memory_buffer": "buffers of {}", "memory_threads": "{} threads"}
PHRASES = {"memory_access": "{}", "memory_threads": "{} threads", "runtime": "{} each"}

FACTORS = (
    Factor(
        "memory_access",
        "Memory access",
        Choice(tuple(MemoryAccess)),
        example="read, write",
        help="processors read or write the memory of the host, in order; nothing reaches the target",
    ),
    Factor(
        "memory_buffer",
        "Memory buffer",
        Size(low=4 * KIB, high=2**36, multiple=4 * KIB),
        unit="B",
        default=256 * MIB,
        help="of each thread, a power of two; a buffer that fits a cache of the processor measures the cache",
    ),
    Factor("memory_threads", "Memory threads", Count(1, 1024), default=1, help="each with a buffer of its own"),
    RUNTIME,
)
_FIELDS = {
    "memory_access": "access",
    "memory_buffer": "buffer_bytes",
    "memory_threads": "threads",
    "runtime": "runtime_s",
}


def silent(_point: Mapping[str, object]) -> tuple[str, ...]:
    return ()


def workload(point: Mapping[str, Value], *, seed: int) -> MemoryWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    fields = {field: point[name] for name, field in _FIELDS.items() if name in point}
    return msgspec.convert(fields | {"seed": seed}, MemoryWorkload)


def time_s(levels: Levels) -> float:
    return fmean(float(seconds or 0) for seconds in levels["runtime"])


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    return (point.get("memory_access"),)
