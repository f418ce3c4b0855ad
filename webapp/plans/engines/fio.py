"""The engine fio: its factors, and the workload of a point."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean

import msgspec

from webapp.plans.engines.base import (
    BUFFERS,
    DROP_CACHES,
    FILES,
    PREFILL,
    RUNTIME,
    SIZE,
    SIZE_MEMORY,
    SIZE_PERCENT,
    Levels,
)
from webapp.plans.engines.fio_options import FACTORS as OPTIONS
from webapp.plans.engines.fio_options import NAMES as OPTION_NAMES
from webapp.plans.load import LOAD, RAMP_S, LoadShare, is_share
from webapp.plans.setting_rows import Factor, FactorKind
from webapp.plans.values import (
    BLOCK,
    BlockRange,
    BlockSplit,
    Choice,
    Count,
    Duration,
    Size,
    StopRuleText,
    Switch,
    Token,
    Value,
    Whole,
    least_runtime_s,
)
from worker.contract.workload import (
    BlockShare,
    CpusPolicy,
    FioWorkload,
    IoEngine,
    Pattern,
    Placement,
    Sync,
    SyncDepth,
)
from worker.recipes import fio as recipe

WORKLOAD = FioWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "pattern"
MAX_PASSES = 1000
ALTERNATIVES = (
    ("block_size", "block_split"),
    ("block_size", "block_range"),
    ("block_split", "block_range"),
    ("size", "size_percent"),
    ("size", "size_memory"),
    ("size_percent", "size_memory"),
    ("runtime", "amount"),
    ("runtime", "passes"),
    ("amount", "passes"),
    ("offset", "offset_percent"),
    ("offset_increment", "offset_increment_percent"),
    ("files", "own_files"),
    ("cpus", "numa_node"),
)
SILENT_BY = "pattern"
CHART_BY = "pattern"
SERIES_BY = "ioengine"
DIRECTIONS_BY = "pattern"
NAMED_BY = {"pattern": "{}", "block_size": "{}", "numjobs": "{} jobs", "iodepth": "QD {}", "ioengine": "{}"}
PHRASES = {
    "pattern": "{}",
    "read_percent": "{} reads",
    "block_size": "{}",
    "block_split": "split {}",
    "ioengine": "{}",
    "numjobs": "{} threads",
    "iodepth": "queue depth {}",
    "load": "load {}",
    "runtime": "{} each",
    "amount": "{} each",
    "passes": "{} passes",
    "stop": "until {}",
}

FACTORS = (
    Factor("pattern", "Pattern", Choice(tuple(Pattern)), help="fio's rw", example="randread, randwrite"),
    Factor(
        "read_percent", "Reads", Count(0, 100, " %"), unit="%", default=50, help="share of reads in a mixed pattern"
    ),
    Factor("block_size", "Block size", BLOCK, unit="B", default=4096),
    Factor(
        "block_split",
        "Block sizes",
        BlockSplit(),
        help="several block sizes with shares in %, instead of one: 4k/60:8k/40",
    ),
    Factor(
        "block_range", "Block size range", BlockRange(), help="random block sizes, instead of one", example="4k-64k"
    ),
    Factor(
        "write_block_size",
        "Write block size",
        BLOCK,
        unit="B",
        kind=FactorKind.OPTION,
        help="of the writes of a mixed pattern; block_size is then the size of reads",
        example="64k",
    ),
    Factor(
        "write_block_split",
        "Write block sizes",
        BlockSplit(),
        kind=FactorKind.OPTION,
        help="of the writes of a mixed pattern; block_split is then the split of reads",
        example="8k/50:64k/50",
    ),
    Factor(
        "reverse",
        "Reverse",
        Switch(),
        kind=FactorKind.OPTION,
        help="sequential patterns: from the end to the start",
        example="on, off",
    ),
    Factor(
        "skip",
        "Skip",
        Size(low=0, high=2**50),
        unit="B",
        kind=FactorKind.OPTION,
        help="sequential patterns: bytes left out after each I/O; the stride is this plus the block size",
        example="0, 64k",
    ),
    Factor(
        "run_length",
        "Run length",
        Count(1, 2**31, " I/Os"),
        kind=FactorKind.OPTION,
        help="random patterns: I/Os from each random offset",
        example="1, 8",
    ),
    Factor(
        "ioengine",
        "I/O engine",
        Choice(tuple(IoEngine)),
        default=IoEngine.IO_URING.value,
        help="sg and io_uring_cmd send SCSI and NVMe commands to a whole drive, past the block layer",
    ),
    Factor("fixedbufs", "Fixed buffers", Switch(), default=False, help="io_uring: buffers registered once"),
    Factor("registerfiles", "Registered files", Switch(), default=False, help="io_uring: files registered once"),
    Factor("hipri", "Polled completions", Switch(), default=False, help="io_uring: needs poll queues of the device"),
    Factor("sqthread_poll", "Submission thread", Switch(), default=False, help="io_uring: a kernel thread submits"),
    Factor("nonvectored", "Non-vectored", Switch(), default=False, help="io_uring: read and write, not readv, writev"),
    Factor("numjobs", "Jobs", Count(1, 1024), default=1, help="processes or threads, each with its own queue depth"),
    Factor("iodepth", "Queue depth", Count(1, 4096), default=1, help="of each job"),
    Factor(
        LOAD,
        "Load",
        LoadShare(),
        unit="%",
        kind=FactorKind.OPTION,
        help="share of the maximum IOPS of the same point; I/Os arrive at random times, and do not wait for each other",
        example="10%, 25%, 50%, 75%, 90%, 95%, max",
    ),
    Factor(
        "sync_depth",
        "Depth without a queue",
        Choice(tuple(SyncDepth), {"refuse": "refused", "threads": "as threads"}),
        default=SyncDepth.REFUSE.value,
        help="for I/O engines without a queue at depths above 1: refuse, or use one thread per unit of depth",
    ),
    Factor("direct", "Direct", Switch(), default=True, help="O_DIRECT: past the page cache"),
    Factor("sync", "Open flags", Choice(tuple(Sync)), default=Sync.NONE.value, help="O_SYNC or O_DSYNC"),
    Factor("fsync_every", "fsync every", Count(0, 2**31, " writes"), default=0, help="0 is never"),
    Factor("end_fsync", "fsync at the end", Switch(), default=False),
    SIZE,
    SIZE_PERCENT,
    SIZE_MEMORY,
    FILES,
    RUNTIME,
    Factor(
        "amount",
        "Amount",
        Size(multiple=1),
        unit="B",
        help="bytes moved by all jobs of a trial, instead of a run time",
        example="1G",
    ),
    Factor(
        "passes",
        "Passes",
        Count(1, MAX_PASSES),
        kind=FactorKind.OPTION,
        help="times that each job goes through its used part, instead of a run time; resolved when a run starts",
        example="1",
    ),
    Factor(
        "offset_percent",
        "Offset, share of capacity",
        Count(1, 99, " %"),
        unit="%",
        kind=FactorKind.OPTION,
        cost=10,
        help="start of the used part of a device or file; resolved when a run starts",
        example="50",
    ),
    Factor(
        "offset_increment_percent",
        "Offset per job, share of capacity",
        Count(1, 99, " %"),
        unit="%",
        kind=FactorKind.OPTION,
        cost=10,
        help="distance between the starts of two jobs; resolved when a run starts",
        example="25",
    ),
    Factor("ramp", "Ramp", Duration(high=86400), unit="s", default=0, help="time before the measurement starts"),
    Factor(
        "stop",
        "Stop rule",
        StopRuleText(),
        kind=FactorKind.STOPPING,
        help="ends a trial before its time: `confidence 2%`, `settled 60s` or `snia 60s`; the time is then the maximum",
        example="confidence 2%",
    ),
    Factor(
        "runtime_min",
        "Minimum time",
        Duration(low=5, high=86400),
        unit="s",
        kind=FactorKind.STOPPING,
        help="of one trial with a stop rule; 5 s if not given",
        example="10s",
    ),
    PREFILL,
    BUFFERS,
    DROP_CACHES,
    Factor(
        "nice",
        "nice",
        Whole(-20, 19),
        kind=FactorKind.PROCESS,
        help="nice value of fio's processes; values below 0 need root",
    ),
    Factor(
        "ionice",
        "I/O priority",
        Token(pattern=r"none|idle|be/[0-7]|rt/[0-7]", example="`none`, `idle`, `be/4` or `rt/0`"),
        kind=FactorKind.PROCESS,
        help="class and level as in ionice; used by bfq and mq-deadline",
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
        help="use of `cpus`: all jobs share them, or split: one CPU per job",
    ),
    Factor(
        "numa_node", "NUMA node", Count(0, 1023), kind=FactorKind.PROCESS, help="NUMA node of fio's CPUs and memory"
    ),
    *OPTIONS,
)


@lru_cache(maxsize=1000)  # many points have the same split
def block_shares(value: Value) -> tuple[BlockShare, ...]:
    """The parts of a stored block split."""
    shares = BlockSplit().shares(value)
    return tuple(BlockShare(block_bytes=size, percent=percent) for size, percent in shares)


URING = ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored")
# Factors with a different name in the contract.
_FIELDS = {
    "block_size": "block_bytes",
    "write_block_size": "write_block_bytes",
    "skip": "skip_bytes",
    "size": "size_bytes",
    "runtime": "runtime_s",
    "amount": "amount_bytes",
    "ramp": "ramp_s",
    "runtime_min": "least_runtime_s",
}
# Factors that are fields of a part of the contract's workload.
_PART_OF = {
    **dict.fromkeys(URING, "uring"),
    **dict.fromkeys(Placement.__struct_fields__, "placement"),
    **dict.fromkeys(OPTION_NAMES, "options"),
}
# Factors whose stored value is converted.
_CONVERTED: Mapping[str, Callable[[Value], object]] = {
    "block_split": block_shares,
    "write_block_split": block_shares,
    "block_range": BlockRange().ends,
    "stop": StopRuleText().rule,
}
# `plans.sizes` gives the point its size, offsets and amount.
_RELATIVE = ("size_percent", "size_memory", "offset_percent", "offset_increment_percent", "passes")
_ELSEWHERE = {*_CONVERTED, *_RELATIVE, "drop_caches", LOAD}.union(_PART_OF)
# Factors whose value is copied into the workload unchanged.
_PLAIN = {factor.name: _FIELDS.get(factor.name, factor.name) for factor in FACTORS if factor.name not in _ELSEWHERE}


_OF_MIXES = (
    "read_percent", "write_block_size", "write_block_split", "write_rate", "write_rate_iops", "write_percentage_random",
)  # fmt: skip
_OF_SEQUENTIAL = ("reverse", "skip")
_OF_RANDOM = (
    "run_length", "rw_sequencer", "random_distribution", "norandommap", "percentage_random", "write_percentage_random",
)  # fmt: skip
_OF_WRITES = (*(name for name in OPTION_NAMES if name.startswith("verify")), "fdatasync", "sync_file_range")


def silent(point: Mapping[str, object]) -> tuple[str, ...]:
    """Factors without effect at this point: those of mixed, random, sequential or writing patterns only, and the
    minimum time without a stop rule."""
    if point.get("pattern") not in tuple(Pattern):
        return ()
    pattern = Pattern(str(point["pattern"]))
    return (
        *(() if pattern.mixed else _OF_MIXES),
        *(_OF_SEQUENTIAL if pattern.random else _OF_RANDOM),
        *(() if pattern.stores else _OF_WRITES),
        *(("runtime_min",) if "runtime_min" in point and "stop" not in point else ()),
    )


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    """The access order, the share of reads (only in points of mixes), and whether I/O is direct."""
    pattern = point.get("pattern")
    random = pattern is not None and Pattern(str(pattern)).random
    return random, point.get("read_percent"), point.get("direct")


def time_s(levels: Levels) -> float | None:
    """The mean maximum run time with its ramp; None for an amount."""
    if "runtime" not in levels or "amount" in levels or "passes" in levels:
        return None
    return _mean(levels["runtime"]) + _mean(levels.get("ramp", (0,)))


def _mean(seconds: Sequence[Value]) -> float:
    return fmean(float(value or 0) for value in seconds)


def workload(point: Mapping[str, Value], *, seed: int) -> FioWorkload:
    """The contract's workload for a point; raises msgspec.ValidationError if the contract does not allow it. That of a
    share of the load has no rate yet (`plans.load`).

    `seed` is the seed of fio's random offsets.
    """
    fields: dict[str, object] = {"seed": seed}
    parts: dict[str, dict[str, Value]] = {}
    for name, value in point.items():
        if name in _PLAIN:
            fields[_PLAIN[name]] = value
        elif name in _PART_OF:
            parts.setdefault(_PART_OF[name], {})[name] = value
        elif name in _CONVERTED:
            fields[name] = _CONVERTED[name](value)
    if "stop" in point:
        fields.setdefault("least_runtime_s", least_runtime_s(int(point["runtime"] or 0) if "runtime" in point else 0))
    if is_share(point):
        fields["ramp_s"] = max(int(point.get("ramp") or 0), RAMP_S)
    work = msgspec.convert(fields | parts, FioWorkload)
    return msgspec.structs.replace(work, files=work.threads) if work.options.own_files else work
