"""Workload of the memory bandwidth engine: processors read or write the host's memory, without I/O."""

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from worker.contract.base import KIB, MIB, Workload


class MemoryAccess(StrEnum):
    READ = "read"
    WRITE = "write"


class MemoryWorkload(Workload, tag="memory_bandwidth", frozen=True, kw_only=True):
    """Each thread reads or writes a buffer of its own again and again, for `runtime_s`."""

    does_io: ClassVar[bool] = False
    prefill: bool = False
    access: MemoryAccess = MemoryAccess.READ
    buffer_bytes: Annotated[int, Meta(ge=4 * KIB, le=2**36, multiple_of=4 * KIB)] = 256 * MIB  # of each thread
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] = 10

    @property
    def writes(self) -> bool:
        """It writes memory, and nothing to its target."""
        return False

    @property
    def reads(self) -> bool:
        return False

    @property
    def uniform(self) -> bool:
        """Its samples have no speed to judge."""
        return False

    @property
    def words(self) -> str:
        return f"memory {self.access}"

    @property
    def write_share(self) -> float:
        return 0.0

    @property
    def time_s(self) -> int:
        return self.runtime_s

    @property
    def largest_io_bytes(self) -> int:
        return 512
