"""The workloads of the engines, their stop rules, the streams that run them, steps before them. Units: bytes, ns, s."""

import math
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from worker.contract.array_action import ArrayActionWorkload
from worker.contract.base import KIB, MIB, Buffers, Id, Message, Name, Number, Path, TargetKind, Workload
from worker.contract.file_copy import CopyWorkload
from worker.contract.fio_options import FioOptions
from worker.contract.idle import IdleWorkload
from worker.contract.memory_bandwidth import MemoryWorkload
from worker.contract.pgbench import PgbenchWorkload
from worker.contract.sysbench import SysbenchWorkload
from worker.contract.sysbench_oltp import OltpWorkload

# Stop rules: they end the measured part of a stream before its maximum time. `worker.stop_rules` applies them.

RoundSeconds = Annotated[int, Meta(ge=1, le=86400)]


class Rule(Message, tag_field="rule", frozen=True, kw_only=True):
    """Base class of the rules."""


class Confidence(Rule, tag="confidence", frozen=True, kw_only=True):
    """The 95 % interval of the mean rate is within ± `percent` of it."""

    percent: Annotated[float, Meta(ge=0.1, le=50)]


class SteadyRounds(Rule, tag="snia", frozen=True, kw_only=True):
    """Steady state after SNIA PTS 2.0: over the last five rounds."""

    round_s: RoundSeconds


class Settled(Rule, tag="settled", frozen=True, kw_only=True):
    """The rate has had no step, drift or stall for `hold_s`."""

    hold_s: Annotated[int, Meta(ge=10, le=86400)]


StopRule = Confidence | SteadyRounds | Settled

SNIA_ROUNDS = 5
# A verdict needs 10 whole seconds. Samples do not end with whole seconds, so a window of 11 s has surely as many.
SETTLED_LEAST_S = 11


def least_s(rule: StopRule, least_runtime_s: int) -> int:
    """The seconds before which the rule cannot end a stream."""
    match rule:
        case Confidence():
            return least_runtime_s
        case SteadyRounds():
            return max(least_runtime_s, SNIA_ROUNDS * rule.round_s)
        case Settled():
            return max(least_runtime_s, rule.hold_s, SETTLED_LEAST_S)


Milliseconds = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Stopped(Message, frozen=True, kw_only=True):
    """How a stream with a stop rule ended. Times count from the start of the measured part, after the ramp.

    If the rule was reached, the stream's result is that of the window, from the samples in it. Else the stream ended
    at its maximum time, the window is the whole measured part, and the result is the engine's own.
    """

    rule: StopRule
    reached: bool
    at_ms: Milliseconds  # the end of the sample with which the rule was reached, or of the stream
    from_ms: Milliseconds  # the window
    to_ms: Milliseconds
    interval_percent: Number | None = None  # half width of the 95 % interval of the mean; None: not computed


__all__ = [  # re-exported
    "KIB", "MIB", "ArrayActionWorkload", "Buffers", "CopyWorkload", "IdleWorkload", "MemoryWorkload",
    "OltpWorkload", "PgbenchWorkload", "SysbenchWorkload", "TargetKind", "Workload",
]  # fmt: skip


class Pattern(StrEnum):
    """fio's `rw`."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    READWRITE = "readwrite"
    RANDRW = "randrw"
    TRIM = "trim"  # trims discard the data of a block device
    RANDTRIM = "randtrim"
    TRIMWRITE = "trimwrite"  # each block is trimmed, then written
    RANDTRIMWRITE = "randtrimwrite"

    @cached_property
    def reads(self) -> bool:
        return not self.trims and self not in (Pattern.WRITE, Pattern.RANDWRITE)

    @cached_property
    def writes(self) -> bool:
        """Whether it destroys data: trims do so too."""
        return self not in (Pattern.READ, Pattern.RANDREAD)

    @cached_property
    def trims(self) -> bool:
        return self in (Pattern.TRIM, Pattern.RANDTRIM, Pattern.TRIMWRITE, Pattern.RANDTRIMWRITE)

    @cached_property
    def stores(self) -> bool:
        """Whether it writes data."""
        return self.writes and self not in (Pattern.TRIM, Pattern.RANDTRIM)

    @cached_property
    def mixed(self) -> bool:
        return self in (Pattern.READWRITE, Pattern.RANDRW)

    @cached_property
    def random(self) -> bool:
        return self.value.startswith("rand")


class IoEngine(StrEnum):
    IO_URING = "io_uring"
    LIBAIO = "libaio"
    PSYNC = "psync"
    SYNC = "sync"
    PVSYNC2 = "pvsync2"
    MMAP = "mmap"
    SG = "sg"  # SCSI commands, past the block layer
    IO_URING_CMD = "io_uring_cmd"  # NVMe commands through io_uring, past the block layer

    @cached_property
    def asynchronous(self) -> bool:
        return self in (IoEngine.IO_URING, IoEngine.LIBAIO, IoEngine.IO_URING_CMD)

    @cached_property
    def sends_commands(self) -> bool:
        """Whether it sends the drive's own commands, which the block layer neither splits nor counts."""
        return self in (IoEngine.SG, IoEngine.IO_URING_CMD)


class SyncDepth(StrEnum):
    """What an I/O engine without a queue (psync, mmap) does with a requested depth above 1."""

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
        if self == _NO_URING:  # fast path: most workloads use none of these features
            return ()
        return tuple(name for name in self.__struct_fields__ if getattr(self, name))


_NO_URING = UringOptions()


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


BlockBytes = Annotated[int, Meta(ge=1, le=16 * MIB)]


class BlockShare(Message, frozen=True, kw_only=True):
    """One entry of fio's bssplit."""

    block_bytes: BlockBytes
    percent: Annotated[int, Meta(ge=1, le=100)]


Split = Annotated[tuple[BlockShare, ...], Meta(max_length=64)]


class FioWorkload(Workload, tag="fio", frozen=True, kw_only=True):
    """Exactly one of `runtime_s` and `amount_bytes` limits it."""

    pattern: Pattern
    block_bytes: BlockBytes = 4 * KIB
    block_split: Split = ()  # replaces block_bytes
    block_range: tuple[BlockBytes, BlockBytes] | None = None  # smallest and largest, replaces block_bytes
    write_block_bytes: BlockBytes | None = None  # of writes; block_bytes is then the size of reads
    write_block_split: Split = ()  # of writes; block_split is then the split of reads
    reverse: bool = False  # sequential patterns: from the end to the start
    skip_bytes: Annotated[int, Meta(ge=0, le=2**50, multiple_of=512)] = 0  # sequential patterns: after each I/O
    run_length: Annotated[int, Meta(ge=1, le=2**31)] = 1  # random patterns: I/Os from each random offset
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
    options: FioOptions = FioOptions()

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
    def reads(self) -> bool:
        return self.pattern.reads

    @property
    def verifies(self) -> bool:
        return self.options.verify is not None

    @property
    def words(self) -> str:
        return self.pattern.value

    @property
    def random(self) -> bool:
        return self.pattern.random and not self.pattern.trims

    @property
    def is_counted(self) -> bool:
        return not self.ioengine.sends_commands

    @property
    def writes_in_order(self) -> bool:
        skips = self.reverse or self.skip_bytes or self.options.percentage_random
        return self.pattern is Pattern.WRITE and self.threads == 1 and not skips

    @property
    def write_share(self) -> float:
        """fio mixes I/Os, so the shares in bytes depend on their sizes. Trims are not counted, nor is verification.

        With rate limits this is the maximum: while one direction has reached its limit, fio issues the other one.
        """
        if not self.pattern.mixed or self.options.limits_rate:
            return float(self.pattern.stores)
        read_share = (self.read_percent or 0) / 100
        read_bytes, write_bytes = read_share * self._mean_bytes(), (1 - read_share) * self._mean_bytes(of_writes=True)
        return write_bytes / (read_bytes + write_bytes)

    def _mean_bytes(self, *, of_writes: bool = False) -> float:
        split = (self.write_block_split if of_writes else ()) or self.block_split
        if split:
            return sum(share.block_bytes * share.percent for share in split) / 100
        if self.block_range is not None:
            return sum(self.block_range) / 2
        return (self.write_block_bytes if of_writes else None) or self.block_bytes

    @property
    def moved_bytes(self) -> int | None:
        """fio's io_size counts per job: the amount is shared evenly and rounded up to whole blocks."""
        if self.amount_bytes is None:
            return None
        step_bytes = self.threads * self.largest_io_bytes
        return -(-self.amount_bytes // step_bytes) * step_bytes

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
    def block_sizes(self) -> tuple[int, ...]:
        """All block sizes; of a range, both ends."""
        if self.block_range is not None:
            return self.block_range
        shares = (*self.block_split, *self.write_block_split)
        return tuple(share.block_bytes for share in shares) or (
            self.block_bytes, self.write_block_bytes or self.block_bytes
        )  # fmt: skip

    @property
    def largest_io_bytes(self) -> int:
        return max(self.block_sizes)

    @property
    def size_step_bytes(self) -> int:
        return math.lcm(*self.block_sizes) * (1 if self.options.own_files else self.threads)

    @property
    def one_block_size(self) -> bool:
        return len(set(self.block_sizes)) == 1

    @property
    def end_bytes(self) -> int | None:
        if self.size_bytes is None:
            return None
        first, step = self.options.offset or 0, self.options.offset_increment or 0
        return first + (self.threads - 1) * step + self.size_bytes

    @property
    def space_bytes(self) -> int:
        return (self.size_bytes or 0) * self.files

    @property
    def visits_per_pass(self) -> int:
        """Sequential jobs divide each file into equal parts, unless they have offsets or files of their own."""
        if self.options.own_files:
            return 1
        return self.threads if self.pattern.random or self.options.offset_increment is not None else 1

    @property
    def files_per_job(self) -> int:
        return 1 if self.options.own_files else self.files

    @property
    def sector_multiples(self) -> tuple[tuple[str, int], ...]:
        """Direct I/O and trims that are not whole logical sectors fail with EINVAL; so does `sg`.

        Sources: open(2), O_DIRECT: lengths and offsets are multiples of the logical block size; Linux, block/fops.c
        (blkdev_dio_invalid) and block/blk-lib.c (__blkdev_issue_discard: trims, also without O_DIRECT).
        """
        if not (self.direct or self.pattern.trims or self.ioengine.sends_commands):
            return ()
        return (
            *(("a block", size) for size in dict.fromkeys(self.block_sizes)),
            ("the skip", self.skip_bytes),
            ("the offset", self.options.offset or 0),
            ("the offset increment", self.options.offset_increment or 0),
            ("the block alignment", self.options.blockalign or 0),
        )

    @property
    def features(self) -> tuple[str, ...]:
        return (self.ioengine.value, *self.uring.wanted())

    def rated(self) -> Self:
        return msgspec.structs.replace(
            self, amount_bytes=None, runtime_s=None, ramp_s=0, stop=None, least_runtime_s=5, seed=1
        )


# The registry: every engine's workload.
AnyWorkload = (
    FioWorkload
    | CopyWorkload
    | PgbenchWorkload
    | SysbenchWorkload
    | OltpWorkload
    | IdleWorkload
    | MemoryWorkload
    | ArrayActionWorkload
)


class TargetRef(Message, frozen=True, kw_only=True):
    """A target as known to the server; the worker checks it against its policy and the actual devices."""

    id: Id  # the entry of the host's policy file
    kind: TargetKind
    path: Path
    stable_id: Name  # wwn-…, nvme-eui…, loop:<backing file>, dir:<path>, file:<path>
    serial: Annotated[str, Meta(max_length=100)] = ""  # the drive's serial, else its stable id


StreamName = Annotated[str, Meta(max_length=20, pattern=r"^([a-z][a-z0-9_-]*)?\Z")]


class Stream(Message, frozen=True, kw_only=True):
    """One workload at one target; the streams of a trial start together."""

    number: Annotated[int, Meta(ge=0, le=63)]
    name: StreamName = ""  # of streams with different workloads; each has its own files in a directory
    target: TargetRef
    workload: AnyWorkload


# Preparation steps: what the worker does to the targets of a trial before it measures them.

MAX_STEPS = 20
MAX_TIMES = 100


class _Step(Message, tag_field="step", frozen=True, kw_only=True):
    """Base class of the steps."""


class WriteStep(_Step, tag="write", frozen=True, kw_only=True):
    """Write the used part of each target: the workload's size or files, else the whole device or file."""

    random: bool = False  # offsets are drawn independently, as in a measurement
    block_bytes: BlockBytes
    times: Annotated[int, Meta(ge=1, le=MAX_TIMES)] = 1  # the size of the used part is written so many times
    amount_bytes: Annotated[int, Meta(ge=512, le=2**60)] | None = None  # of each target; replaces `times`


class FlushStep(_Step, tag="flush", frozen=True, kw_only=True):
    """Write the kernel's and the drive's volatile caches of each target to the medium."""


class PauseStep(_Step, tag="pause", frozen=True, kw_only=True):
    """Wait without I/O."""

    seconds: Annotated[int, Meta(ge=1, le=86400)]


Step = WriteStep | FlushStep | PauseStep
