"""The table of factors: everything a trial depends on and that a plan may vary.

A factor's stored values are those of `Trial.point` and `Result.point`. Options of the workload go into
`contract.workload.Workload`; settings have the worker's names, in `setting_rows`, and are kept as text.
To add a factor, add a row here or there; `points.py` says where an option of the workload goes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from webapp.plans.setting_rows import SAME_STATE, SETTING_ROWS
from webapp.plans.values import (
    BlockSplit,
    Choice,
    Count,
    Duration,
    LayoutLine,
    Size,
    Switch,
    Token,
    Value,
    ValueRefused,
    Values,
    Whole,
)
from worker.contract.purge import PurgeMethod
from worker.contract.workload import MIB, Buffers, CpusPolicy, IoEngine, Pattern, Sync, SyncDepth

__all__ = ["FACTORS", "Factor", "FactorKind", "Value", "ValueRefused", "by_cost", "closest"]


PURGE_LABELS = {
    "none": "none",
    PurgeMethod.DISCARD.value: "discard",
    PurgeMethod.NVME_FORMAT.value: "NVMe format, user data erase",
    PurgeMethod.NVME_FORMAT_CRYPTO.value: "NVMe format, crypto erase",
    PurgeMethod.NVME_SANITIZE_BLOCK.value: "NVMe sanitize, block erase",
    PurgeMethod.NVME_SANITIZE_CRYPTO.value: "NVMe sanitize, crypto erase",
    PurgeMethod.ATA_SECURE_ERASE.value: "ATA secure erase",
    PurgeMethod.ATA_ENHANCED_ERASE.value: "ATA enhanced secure erase",
    PurgeMethod.SCSI_FORMAT.value: "SCSI format",
}


AT_ONCE = "at_once"  # how many targets of a host a trial uses together
MOST_AT_ONCE = 16


class FactorKind(StrEnum):
    WORKLOAD = "workload"
    PROCESS = "process"  # of fio's own processes: part of the workload, in a point only where the plan names it
    DRIVE = "drive"  # done to the drive before the trial; in a point only where the plan names it
    TARGETS = "targets"  # how many a trial uses; in a point only where the plan names it
    LAYOUT = "layout"  # of drives: built before the trials that name it, taken down at the end
    SETTING = "setting"  # of the host: applied, read back, put back at the end


@dataclass(frozen=True)
class Factor:
    """`cost` orders the factors of a randomised run: the higher, the more slowly it changes; 0 is shuffled freely."""

    name: str
    label: str
    values: Values
    unit: str = ""  # of the stored values: B, s, %, …
    kind: FactorKind = FactorKind.WORKLOAD
    cost: int = 0
    default: Value = None
    help: str = ""

    @property
    def numeric(self) -> bool:
        return self.values.numeric

    def parse(self, text: str) -> Value:
        """A typed value as it is stored. Raises ValueRefused."""
        return self.values.parse(text)

    def format(self, value: object) -> str:
        """A stored value as people read it; what is no value of this factor is shown as it is."""
        if value is None or isinstance(value, str | int | bool):
            return self.values.format(value)
        return str(value)

    def write(self, value: Value) -> str:
        """A stored value as `parse` reads it."""
        return self.values.write(value)


_WORKLOAD = (
    Factor("pattern", "Pattern", Choice(tuple(Pattern)), help="fio's rw"),
    Factor("read_percent", "Reads", Count(0, 100, " %"), unit="%", default=50, help="of a mixed pattern"),
    Factor("block_size", "Block size", Size(high=16 * MIB), unit="B", default=4096),
    Factor("block_split", "Block sizes", BlockSplit(), help="several at once, instead of one block size: 4k/60:8k/40"),
    Factor("ioengine", "I/O engine", Choice(tuple(IoEngine)), default=IoEngine.IO_URING.value),
    Factor("fixedbufs", "Fixed buffers", Switch(), default=False, help="io_uring: buffers registered once"),
    Factor("registerfiles", "Registered files", Switch(), default=False, help="io_uring: files registered once"),
    Factor("hipri", "Polled completions", Switch(), default=False, help="io_uring: needs poll queues of the device"),
    Factor("sqthread_poll", "Submission thread", Switch(), default=False, help="io_uring: a kernel thread submits"),
    Factor("nonvectored", "Non-vectored", Switch(), default=False, help="io_uring: read and write, not readv, writev"),
    Factor("numjobs", "Jobs", Count(1, 1024), default=1, help="processes or threads, each with the queue depth"),
    Factor("iodepth", "Queue depth", Count(1, 4096), default=1, help="of each job"),
    Factor(
        "sync_depth",
        "Depth without a queue",
        Choice(tuple(SyncDepth), {"refuse": "refused", "threads": "as threads"}),
        default=SyncDepth.REFUSE.value,
        help="what an engine without a queue does at depths above 1: refuse, or one thread for each unit of depth",
    ),
    Factor("direct", "Direct", Switch(), default=True, help="O_DIRECT: past the page cache"),
    Factor("sync", "Open flags", Choice(tuple(Sync)), default=Sync.NONE.value, help="O_SYNC or O_DSYNC"),
    Factor("fsync_every", "fsync every", Count(0, 2**31, " writes"), default=0, help="0 is never"),
    Factor("end_fsync", "fsync at the end", Switch(), default=False),
    Factor(
        "size",
        "Size",
        Size(whole="whole device"),
        unit="B",
        cost=20,
        help="of each file, or of the part of a device that is used; `whole` for a whole device",
    ),
    Factor("files", "Files", Count(1, 1024), cost=20, default=1, help="in a directory"),
    Factor("runtime", "Time", Duration(low=1), unit="s", default=10, help="of one trial"),
    Factor("amount", "Amount", Size(multiple=1), unit="B", help="moved by one trial over all jobs, instead of a time"),
    Factor("ramp", "Ramp", Duration(high=86400), unit="s", default=0, help="before measuring begins"),
    Factor("prefill", "Written first", Switch(), cost=10, default=True, help="files are written whole before use"),
    Factor(
        "buffers",
        "Data",
        Choice(tuple(Buffers)),
        cost=10,
        default=Buffers.INCOMPRESSIBLE.value,
        help="what is written: incompressible, refilled for every I/O (slows fio), one random buffer repeated, zeroes",
    ),
    Factor("drop_caches", "Caches dropped", Switch(), default=False, help="the host's page cache, before each trial"),
)

_PROCESS = (
    Factor("nice", "nice", Whole(-20, 19), kind=FactorKind.PROCESS, help="of fio's processes; below 0 takes root"),
    Factor(
        "ionice",
        "I/O priority",
        Token(pattern=r"none|idle|be/[0-7]|rt/[0-7]", example="`none`, `idle`, `be/4` or `rt/0`"),
        kind=FactorKind.PROCESS,
        help="class and level as ionice has them; bfq and mq-deadline look at it",
    ),
    Factor(
        "cpus",
        "CPUs",
        Token(pattern=r"\d{1,5}(-\d{1,5})?(\+\d{1,5}(-\d{1,5})?)*", example="`0`, `0-3` or `0-3+8-11`"),
        kind=FactorKind.PROCESS,
        help="processors that fio may run on",
    ),
    Factor(
        "cpus_policy",
        "CPU sharing",
        Choice(tuple(CpusPolicy)),
        kind=FactorKind.PROCESS,
        help="of `cpus`: every job on any of them, or split, one each",
    ),
    Factor("numa_node", "NUMA node", Count(0, 1023), kind=FactorKind.PROCESS, help="of fio's processors and memory"),
)
_DRIVE = (
    Factor(
        "purge",
        "Purge before",
        Choice(("none", *PurgeMethod), PURGE_LABELS),
        kind=FactorKind.DRIVE,
        cost=30,
        help="of the whole drive before each trial, or of all drives under its layout: destroys everything on them",
    ),
)
_TARGETS = (
    Factor(
        AT_ONCE,
        "Targets at once",
        Count(1, MOST_AT_ONCE),
        kind=FactorKind.TARGETS,
        help="of one host and kind, in groups as they were chosen: each gets the whole workload, all start together, "
        "and the result is their sum",
    ),
)
_LAYOUT = Factor(
    "layout",
    "Layout",
    LayoutLine(),
    kind=FactorKind.LAYOUT,
    cost=200,
    help="drives of a pool put together and formatted; what is on them is destroyed. Several in one line: "
    "raid0 x1..8 chunk 64k · raid5 x4 chunk 8k..2M *2 / xfs|ext4 · 2 arrays of raid0 x4 chunk 64k / lvm stripe 256k · "
    "vd raid5 x4 strip 8k..1M *2 wb|wt",
)
_SETTINGS = tuple(
    Factor(row.name, row.label, row.values, row.unit, FactorKind.SETTING, row.cost, help=row.help)
    for row in SETTING_ROWS
)

FACTORS: Mapping[str, Factor] = {
    factor.name: factor for factor in (*_WORKLOAD, _LAYOUT, *_TARGETS, *_PROCESS, *_DRIVE, *_SETTINGS)
}

# Given one, the other does not apply: which of them a part names decides.
ALTERNATIVES = (("block_size", "block_split"), ("runtime", "amount"), ("cpus", "numa_node"), *SAME_STATE)


def by_cost(names: Iterable[str]) -> tuple[str, ...]:
    """Slowest first, then in the order of the table. Names that are unknown come last, by alphabet."""
    place = {name: index for index, name in enumerate(FACTORS)}
    known = sorted((n for n in names if n in FACTORS), key=lambda n: (-FACTORS[n].cost, place[n]))
    return (*known, *sorted(n for n in names if n not in FACTORS))


def closest(name: str) -> str:
    """The known factor that was probably meant, or nothing."""
    return next(iter(get_close_matches(name, FACTORS, n=1, cutoff=0.6)), "")
