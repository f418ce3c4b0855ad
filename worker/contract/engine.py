"""The common part of all engines' workloads: what they need from a target, and what they do to it.

The guard, previews and estimates use only these fields and properties. Units are bytes and seconds.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

import msgspec
from msgspec import Meta

from worker.contract.base import Message

KIB = 1024
MIB = 1024 * KIB

FileBytes = Annotated[int, Meta(ge=512, le=2**60, multiple_of=512)]


class Buffers(StrEnum):
    """Content of the written data."""

    INCOMPRESSIBLE = "incompressible"  # random, all blocks different: fio's scramble_buffers
    REFILLED = "refilled"  # new random data for every I/O; generating it takes so long that fast drives look slower
    REPEATED = "repeated"  # the same random buffer for all blocks; a drive may deduplicate it
    ZEROES = "zeroes"


class Workload(Message, tag_field="engine", frozen=True, kw_only=True):
    """Base of the engines' workloads; `recipes.workload_problems` checks what the types cannot."""

    does_io: ClassVar[bool] = True  # if not, its result has no I/Os, no bytes and no latencies
    needs_array: ClassVar[bool] = False  # it acts on the only md array of a layout, beside other streams
    size_bytes: FileBytes | None = None  # of each file, or of the used part of a device; None: the whole device
    files: Annotated[int, Meta(ge=1, le=1024)] = 1  # directories only
    prefill: bool = True  # files are written completely before their first use
    buffers: Buffers = Buffers.INCOMPRESSIBLE
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1  # for random offsets and data

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
        """Whether it overwrites a block device or an existing file."""
        raise NotImplementedError

    @property
    def reads(self) -> bool:
        """Whether it reads data that was there before."""
        return self.write_share < 1

    @property
    def uniform(self) -> bool:
        """Whether a constant speed from start to end is expected, so that any change is worth a warning."""
        return True

    @property
    def replaces_member(self) -> bool:
        """Whether it rebuilds a member of the array, so that no later trial may use the layout."""
        return False

    @property
    def needs_reflinks(self) -> bool:
        """Whether the file system must be able to share blocks between files."""
        return False

    @property
    def words(self) -> str:
        """A short name of the work: `randwrite`, `file copy`."""
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
        """The written share of all moved bytes, 0 to 1."""
        raise NotImplementedError

    @property
    def moved_bytes(self) -> int | None:
        """Total bytes read and written; None if a time limits it."""
        raise NotImplementedError

    @property
    def load_bytes(self) -> int:
        """Bytes that each trial writes before its measured part; at most about so many."""
        return 0

    @property
    def startup_s(self) -> float:
        """Expected time before the measured part on any drive, besides that of `load_bytes`."""
        return 0.0

    @property
    def verifies(self) -> bool:
        """Whether it reads back everything that it has written."""
        return False

    @property
    def needs_folder(self) -> bool:
        """Whether it needs a temporary folder in its directory (`recipes.names.temporary_folder`)."""
        return False

    @property
    def time_s(self) -> int:
        """Maximum run time in seconds, the fields `runtime_s` and perhaps `ramp_s`; 0 if an amount limits it."""
        raise NotImplementedError

    @property
    def may_end_early(self) -> bool:
        """Whether it has a stop rule, which may end it before its maximum run time."""
        return False

    @property
    def least_time_s(self) -> int:
        """The shortest run time in seconds with its ramp: less than `time_s` only with a stop rule."""
        return self.time_s

    @property
    def largest_io_bytes(self) -> int:
        raise NotImplementedError

    @property
    def size_step_bytes(self) -> int:
        """Sizes that are multiples of it are used completely."""
        return self.largest_io_bytes

    @property
    def end_bytes(self) -> int | None:
        """End of the used part of a device or of each file; None: the whole device."""
        return self.size_bytes

    @property
    def space_bytes(self) -> int:
        """Bytes that its files need in a directory."""
        raise NotImplementedError

    @property
    def kept_bytes(self) -> int:
        """Bytes of its files in a directory that stay for later trials."""
        return 0 if self.needs_folder else self.space_bytes

    @property
    def sector_multiples(self) -> tuple[tuple[str, int], ...]:
        """Sizes and offsets in bytes that must be multiples of a device's logical sector, each with its name.

        Empty if the page cache is between the workload and the device.
        """
        return ()

    @property
    def features(self) -> tuple[str, ...]:
        """Required features of the host's engine, see `Capabilities.engines`."""
        raise NotImplementedError

    def rated(self) -> Self:
        """The workload without amount, time, ramp and seed, which do not determine its speed."""
        return msgspec.structs.replace(self, seed=1)
