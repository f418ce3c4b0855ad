"""Workload of the sysbench engine: `sysbench fileio` on files of its own."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import FileBytes, Workload

BlockBytes = Annotated[int, Meta(ge=512, le=16 * 1024 * 1024, multiple_of=512)]


class FileTest(StrEnum):
    """sysbench's `--file-test-mode`. Its mix has one latency for reads, writes and fsyncs, so it is left out."""

    SEQRD = "seqrd"
    SEQWR = "seqwr"  # new files in the first pass; the others rewrite them
    SEQREWR = "seqrewr"  # files that are there
    RNDRD = "rndrd"
    RNDWR = "rndwr"


class SysbenchWorkload(Workload, tag="sysbench", frozen=True, kw_only=True):
    """Prepares `files` with `size_bytes` each, and reads or writes them for `runtime_s`. Each trial has new files."""

    prefill: bool = False
    test: FileTest = FileTest.RNDRD
    size_bytes: FileBytes | None = 64 * 1024 * 1024
    block_bytes: BlockBytes = 16 * 1024
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    direct: bool = True
    fsync: bool = False  # after each write
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] = 10

    @property
    def measures_writes(self) -> bool:
        return self.test not in (FileTest.SEQRD, FileTest.RNDRD)

    @property
    def writes(self) -> bool:
        """It always writes its files first."""
        return True

    @property
    def reads(self) -> bool:
        """It reads only what it has written."""
        return False

    @property
    def words(self) -> str:
        return f"sysbench {self.test}"

    @property
    def random(self) -> bool:
        return self.test in (FileTest.RNDRD, FileTest.RNDWR)

    @property
    def write_share(self) -> float:
        return 1.0 if self.measures_writes else 0.0

    @property
    def load_bytes(self) -> int:
        return self.space_bytes

    @property
    def time_s(self) -> int:
        return self.runtime_s

    @property
    def largest_io_bytes(self) -> int:
        return self.block_bytes

    @property
    def space_bytes(self) -> int:
        return self.files * (self.size_bytes or 0)

    @property
    def needs_folder(self) -> bool:
        return True
