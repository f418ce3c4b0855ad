"""The workloads of the engines, and the streams that run them. Units: bytes, ns, s."""

from enum import StrEnum
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from worker.contract.base import Id, Message, Name, Path
from worker.contract.engine import KIB, MIB, Buffers, Workload
from worker.contract.file_copy import CopyWorkload
from worker.contract.stopping import StopRule, least_s

__all__ = ["KIB", "MIB", "Buffers", "CopyWorkload", "Workload"]  # re-exported


class Pattern(StrEnum):
    """fio's `rw`."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    READWRITE = "readwrite"
    RANDRW = "randrw"

    @property
    def reads(self) -> bool:
        return self not in (Pattern.WRITE, Pattern.RANDWRITE)

    @property
    def writes(self) -> bool:
        return self not in (Pattern.READ, Pattern.RANDREAD)

    @property
    def mixed(self) -> bool:
        return self in (Pattern.READWRITE, Pattern.RANDRW)

    @property
    def random(self) -> bool:
        return self in (Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.RANDRW)


class IoEngine(StrEnum):
    IO_URING = "io_uring"
    LIBAIO = "libaio"
    PSYNC = "psync"

    @property
    def asynchronous(self) -> bool:
        return self is not IoEngine.PSYNC


class SyncDepth(StrEnum):
    """What an engine without a queue (psync) does with a requested depth above 1."""

    REFUSE = "refuse"  # the workload is refused
    THREADS = "threads"  # numjobs x iodepth threads of depth 1


class Sync(StrEnum):
    """fio's `sync`: flags for opening the file."""

    NONE = "none"
    SYNC = "sync"
    DSYNC = "dsync"


class UringOptions(Message, frozen=True, kw_only=True):
    fixedbufs: bool = False
    registerfiles: bool = False
    hipri: bool = False
    sqthread_poll: bool = False
    nonvectored: bool = False

    def wanted(self) -> tuple[str, ...]:
        """Names of the enabled features."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name))


class CpusPolicy(StrEnum):
    """fio's `cpus_allowed_policy`: all jobs on any of the processors, or each job on one processor in turn."""

    SHARED = "shared"
    SPLIT = "split"


_CPU = "[0-9]{1,5}(-[0-9]{1,5})?"
_CPUS = rf"^({_CPU}(\+{_CPU})*)?\Z"


class Placement(Message, frozen=True, kw_only=True):
    """Processors and priority of fio's processes. They end with fio, so nothing must be restored."""

    nice: Annotated[int, Meta(ge=-20, le=19)] = 0
    ionice: Annotated[str, Meta(pattern=r"^(none|idle|be/[0-7]|rt/[0-7])\Z")] = "none"  # class and level, as ionice(1)
    cpus: Annotated[str, Meta(max_length=200, pattern=_CPUS)] = ""  # 0-3+8
    cpus_policy: CpusPolicy = CpusPolicy.SHARED
    numa_node: Annotated[int, Meta(ge=0, le=1023)] | None = None  # processors and memory of this node


BlockBytes = Annotated[int, Meta(ge=512, le=16 * MIB, multiple_of=512)]


class BlockShare(Message, frozen=True, kw_only=True):
    """One entry of fio's bssplit."""

    block_bytes: BlockBytes
    percent: Annotated[int, Meta(ge=1, le=100)]


class FioWorkload(Workload, tag="fio", frozen=True, kw_only=True):
    """Exactly one of `runtime_s` and `amount_bytes` limits it."""

    pattern: Pattern
    block_bytes: BlockBytes = 4 * KIB
    block_split: Annotated[tuple[BlockShare, ...], Meta(max_length=64)] = ()  # replaces block_bytes
    read_percent: Annotated[int, Meta(ge=0, le=100)] | None = None  # mixed patterns only
    ioengine: IoEngine = IoEngine.IO_URING
    uring: UringOptions = UringOptions()
    numjobs: Annotated[int, Meta(ge=1, le=1024)] = 1
    iodepth: Annotated[int, Meta(ge=1, le=4096)] = 1  # per job
    sync_depth: SyncDepth = SyncDepth.REFUSE
    direct: bool = True
    sync: Sync = Sync.NONE
    fsync_every: Annotated[int, Meta(ge=0, le=2**31)] = 0  # fio's fsync=N writes, 0 is never
    end_fsync: bool = False
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] | None = None
    amount_bytes: Annotated[int, Meta(ge=512, le=2**60)] | None = None  # total of all jobs
    ramp_s: Annotated[int, Meta(ge=0, le=86400)] = 0
    stop: StopRule | None = None  # may end it before `runtime_s`
    least_runtime_s: Annotated[int, Meta(ge=5, le=86400)] = 5  # before which the rule does not end it
    placement: Placement = Placement()

    @property
    def threads(self) -> int:
        """Threads that do I/O."""
        return self.numjobs * (1 if self.ioengine.asynchronous else self.iodepth)

    @property
    def depth(self) -> int:
        """Total requested I/Os in flight: numjobs x iodepth."""
        return self.numjobs * self.iodepth

    @property
    def writes(self) -> bool:
        return self.pattern.writes

    @property
    def words(self) -> str:
        return self.pattern.value

    @property
    def random(self) -> bool:
        return self.pattern.random

    @property
    def writes_in_order(self) -> bool:
        return self.pattern is Pattern.WRITE and self.threads == 1

    @property
    def write_share(self) -> float:
        return 1 - (self.read_percent or 0) / 100 if self.writes else 0.0

    @property
    def moved_bytes(self) -> int | None:
        return self.amount_bytes

    @property
    def time_s(self) -> int:
        return (self.runtime_s or 0) + self.ramp_s

    @property
    def may_end_early(self) -> bool:
        return self.stop is not None

    @property
    def least_time_s(self) -> int:
        longest = self.runtime_s or 0
        return self.ramp_s + (min(longest, least_s(self.stop, self.least_runtime_s)) if self.stop else longest)

    @property
    def largest_io_bytes(self) -> int:
        return max((share.block_bytes for share in self.block_split), default=self.block_bytes)

    @property
    def space_bytes(self) -> int:
        return (self.size_bytes or 0) * self.files

    @property
    def features(self) -> tuple[str, ...]:
        return (self.ioengine.value, *self.uring.wanted())

    def rated(self) -> Self:
        return msgspec.structs.replace(
            self, amount_bytes=None, runtime_s=None, ramp_s=0, stop=None, least_runtime_s=5, seed=1
        )


AnyWorkload = FioWorkload | CopyWorkload  # the registry: every engine's workload


class TargetKind(StrEnum):
    BLOCK = "block"
    DIRECTORY = "directory"
    FILE = "file"
    POOL = "pool"  # drives for layouts; in a policy, never in a stream
    SLOT = "slot"  # a drive that only its RAID controller sees, for virtual drives; never in a stream


class TargetRef(Message, frozen=True, kw_only=True):
    """A target as known to the server; the worker checks it against its policy and the actual devices."""

    id: Id  # the entry of the host's policy file
    kind: TargetKind
    path: Path
    stable_id: Name  # wwn-…, nvme-eui…, loop:<backing file>, dir:<path>, file:<path>
    serial: Annotated[str, Meta(max_length=100)] = ""  # the drive's serial, else its stable id


class Stream(Message, frozen=True, kw_only=True):
    """One workload at one target; the streams of a trial start together."""

    number: Annotated[int, Meta(ge=0, le=63)]
    target: TargetRef
    workload: AnyWorkload
