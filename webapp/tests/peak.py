"""Peak memory and CPU time of a piece of work in this process, or in another process of this machine."""

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_libc = ctypes.CDLL(None)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"  # to clear_refs, proc(5): VmHWM becomes VmRSS


@dataclass
class Cost:
    """`memory_bytes`: highest resident memory above that at the start. `cpu_s`: user and system time of all threads."""

    memory_bytes: int = 0
    cpu_s: float = 0.0


@contextmanager
def measured_cost() -> Iterator[Cost]:
    """Fill in the cost of the block when it ends, also after an exception.

    The allocator returns its unused memory first. Otherwise memory that earlier work has freed would hide new work.

    The garbage collector forgets all earlier objects first, as in a new process. Otherwise their number would decide
    when it collects garbage of the block: a full collection waits until a quarter as many new objects have survived.
    """
    cost = Cost()
    gc.collect()
    gc.freeze()
    gc.collect()  # counts the old objects: none
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    memory_bytes, cpu_s = _status_bytes("VmRSS"), cpu_seconds(os.getpid())
    try:
        yield cost
    finally:
        cost.memory_bytes = max(0, _status_bytes("VmHWM") - memory_bytes)
        cost.cpu_s = cpu_seconds(os.getpid()) - cpu_s


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, in steps of a clock tick (usually 10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
