"""Workload of the file copy engine: files are copied once inside their directory."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import MIB, Workload


class CopyMethod(StrEnum):
    BUFFERED = "buffered"  # read and write through the page cache
    DIRECT = "direct"  # O_DIRECT on both files
    KERNEL = "kernel"  # copy_file_range(2): the kernel copies, and may share blocks or offload
    REFLINK = "reflink"  # FICLONE: the copy shares the blocks of the source; no data is moved


class CopyWorkload(Workload, tag="file_copy", frozen=True, kw_only=True):
    """Copies `files` files of `size_bytes` each. It ends when all are copied and, with `fsync`, synced."""

    method: CopyMethod = CopyMethod.BUFFERED
    block_bytes: Annotated[int, Meta(ge=4096, le=64 * MIB, multiple_of=4096)] = MIB  # of each read and write
    fsync: bool = True  # of each complete copy; the time counts

    @property
    def direct(self) -> bool:
        return self.method is CopyMethod.DIRECT

    @property
    def writes(self) -> bool:
        return True

    @property
    def uniform(self) -> bool:
        """During the fsync at the end of each file, no reads or writes complete."""
        return False

    @property
    def needs_reflinks(self) -> bool:
        return self.method is CopyMethod.REFLINK

    @property
    def words(self) -> str:
        return f"file copy ({self.method})"

    @property
    def write_share(self) -> float:
        return 0.5

    @property
    def moved_bytes(self) -> int | None:
        """Each byte is read and written."""
        return 2 * self.files * (self.size_bytes or 0)

    @property
    def time_s(self) -> int:
        return 0

    @property
    def largest_io_bytes(self) -> int:
        return self.block_bytes

    @property
    def space_bytes(self) -> int:
        """Space for sources and copies."""
        return 2 * self.files * (self.size_bytes or 0)

    @property
    def kept_bytes(self) -> int:
        """The sources. The copies are removed after each trial."""
        return self.files * (self.size_bytes or 0)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.method,)
