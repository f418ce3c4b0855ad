"""What every engine's workload has in common: what it needs of a target, and what it does to it.

The guard, previews and estimates know a workload only by these fields and properties. Bytes and seconds.
"""

from enum import StrEnum
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from worker.contract.base import Message

KIB = 1024
MIB = 1024 * KIB

FileBytes = Annotated[int, Meta(ge=512, le=2**60, multiple_of=512)]


class Buffers(StrEnum):
    """Content of the written data."""

    INCOMPRESSIBLE = "incompressible"  # random, and no two blocks are alike: fio's scramble_buffers
    REFILLED = "refilled"  # new random data for every I/O: costs fio's thread so much time that it slows fast drives
    REPEATED = "repeated"  # one random buffer used again, a drive may deduplicate it
    ZEROES = "zeroes"


class Workload(Message, tag_field="engine", frozen=True, kw_only=True):
    """Base of the engines' workloads; `recipes.workload_problems` checks what types cannot."""

    size_bytes: FileBytes | None = None  # of each file; of the part of a device that is used; None: the whole device
    files: Annotated[int, Meta(ge=1, le=1024)] = 1  # directories only
    prefill: bool = True  # files are written once, whole, before they are first used
    buffers: Buffers = Buffers.INCOMPRESSIBLE
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1  # of random offsets and data

    @classmethod
    def engine_name(cls) -> str:
        """The engine's name in the contract."""
        return str(cls.__struct_config__.tag)

    @property
    def engine(self) -> str:
        return self.engine_name()

    @property
    def direct(self) -> bool:
        """Whether it opens files with O_DIRECT."""
        raise NotImplementedError

    @property
    def writes(self) -> bool:
        """Whether it overwrites what is on a block device or in a file."""
        raise NotImplementedError

    @property
    def uniform(self) -> bool:
        """Whether it should run at one speed from start to end, so that anything else is worth a warning."""
        return True

    @property
    def words(self) -> str:
        """What it does, in a word or two: `randwrite`, `file copy`."""
        raise NotImplementedError

    @property
    def random(self) -> bool:
        return False

    @property
    def writes_in_order(self) -> bool:
        """Whether it only writes, each block once, from the first to the last."""
        return False

    @property
    def write_share(self) -> float:
        """Part of the moved bytes that is written, 0 to 1."""
        raise NotImplementedError

    @property
    def moved_bytes(self) -> int | None:
        """Bytes it reads and writes in all; None where a time ends it."""
        raise NotImplementedError

    @property
    def time_s(self) -> int:
        """Seconds until a time ends it: the fields `runtime_s` and, if it has one, `ramp_s`; 0 where an amount does."""
        raise NotImplementedError

    @property
    def largest_io_bytes(self) -> int:
        raise NotImplementedError

    @property
    def space_bytes(self) -> int:
        """Bytes that its files need in a directory."""
        raise NotImplementedError

    @property
    def features(self) -> tuple[str, ...]:
        """What the host's engine must offer, in the words of `Capabilities.engines`."""
        raise NotImplementedError

    def rated(self) -> Self:
        """The workload without what does not decide how fast it is: amount, time, ramp and seed."""
        return msgspec.structs.replace(self, seed=1)
