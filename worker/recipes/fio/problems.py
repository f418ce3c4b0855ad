"""Problems of a workload that types cannot express. Each rule yields messages that say what to do."""

from collections.abc import Iterator

from worker.contract.fio_options import RATE_LIMITS, WRITE_LIMITS, SubmitMode
from worker.contract.workload import (
    BlockShare,
    Buffers,
    CpusPolicy,
    FioWorkload,
    IoEngine,
    Sync,
    SyncDepth,
    TargetKind,
    least_s,
)
from worker.recipes.base import size_words, write_stop_rule

# Problems of a workload's further options: offsets, limits, distributions, data and verification.

_NEEDS_QUEUE = ("iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low")
_URING = (IoEngine.IO_URING, IoEngine.IO_URING_CMD)
_SYNCING = ("fdatasync", "fsync_on_close", "sync_file_range")
_ONE_ENGINE = {
    "force_async": IoEngine.IO_URING,
    "sqthread_poll_cpu": IoEngine.IO_URING,
    "userspace_reap": IoEngine.LIBAIO,
}
NEEDS = {
    "rate_process": "rate or rate_iops",
    "thinktime_spin": "thinktime",
    "thinktime_blocks": "thinktime",
    "thinktime_iotime": "thinktime",
    "latency_window": "latency_target",
    "latency_percentile": "latency_target",
    "latency_run": "latency_target",
    "rate_ignore_thinktime": "thinktime",
    "dedupe_mode": "dedupe_percentage",
    "dedupe_working_set_percentage": "dedupe_percentage",
    "buffer_compress_chunk": "buffer_compress_percentage",
    "write_percentage_random": "percentage_random",
    "verify_pattern": "verify",
    "verify_interval": "verify",
    "verify_backlog": "verify",
    "verify_backlog_batch": "verify_backlog",
    "verify_async": "verify",
    "verify_fatal": "verify",
}  # an option -> the option without which it has no effect

SECTOR = 512


def _option_problems(work: FioWorkload, kind: TargetKind) -> tuple[str, ...]:
    """Only for a workload with such options: the others have none of these problems."""
    return (*(problem for rule in _OPTION_RULES for problem in rule(work)), *_region(work, kind))


def _needed(work: FioWorkload) -> Iterator[str]:
    given = {*work.options.wanted()}
    for name in sorted(given & NEEDS.keys()):
        needed = NEEDS[name]
        if given.isdisjoint(needed.split(" or ")):
            yield f"{name} needs {needed}"


def _order(work: FioWorkload) -> Iterator[str]:
    if work.options.rw_sequencer and work.run_length == 1:
        yield "rw_sequencer needs a run_length above 1"
    for name in ("percentage_random", "norandommap"):
        if getattr(work.options, name) is not None and not work.pattern.random:
            yield f"{name} needs a random pattern, not {work.pattern}"
    if work.options.write_percentage_random is not None and not work.pattern.mixed:
        yield f"write_percentage_random is only for mixed patterns, not for {work.pattern}: remove it"
    if work.options.norandommap is False and work.options.random_distribution not in (None, "random"):
        yield "fio keeps no map of visited blocks with a random_distribution: remove norandommap"


def _distribution(work: FioWorkload) -> Iterator[str]:
    """As fio checks it, but before the trial starts."""
    name, _, value = (work.options.random_distribution or "").partition(":")
    if name and not work.pattern.random:
        yield f"random_distribution is only for random patterns, not for {work.pattern}: remove it"
    if name == "zipf" and float(value) == 1:
        yield "fio does not support zipf:1; use a value near it, such as zipf:1.01"
    if name == "zoned":
        zones = [tuple(map(int, zone.split("/"))) for zone in value.split(":")]
        if [sum(column) for column in zip(*zones, strict=True)] != [100, 100]:
            yield "the zones of random_distribution must add up to 100 % of the I/Os and 100 % of the size"


def _queue(work: FioWorkload) -> Iterator[str]:
    options = work.options.wanted()
    for name in _NEEDS_QUEUE:
        value = options.get(name)
        if isinstance(value, int) and value > work.iodepth:
            yield f"{name}={value} is larger than the queue depth {work.iodepth}"
    for name, engine in _ONE_ENGINE.items():
        if name in options and work.ioengine is not engine:
            yield f"{name} needs I/O engine {engine}, not {work.ioengine}"
    if work.options.io_submit_mode == SubmitMode.OFFLOAD and work.ioengine in _URING:
        yield "fio cannot offload the submission of io_uring: use libaio or psync, or io_submit_mode inline"
    if "sqthread_poll_cpu" in options and not work.uring.sqthread_poll:
        yield "sqthread_poll_cpu needs sqthread_poll"
    least, most = work.options.iodepth_batch_complete_min, work.options.iodepth_batch_complete_max
    if least and most and least > most:
        yield "iodepth_batch_complete_min is larger than iodepth_batch_complete_max"


def _limits(work: FioWorkload) -> Iterator[str]:
    """A trial that ends by an amount has a time limit, which assumes that the drive sets the speed."""
    slowed = {*RATE_LIMITS, "thinktime", "latency_target"}
    if work.amount_bytes is not None and (limits := sorted(slowed & work.options.wanted().keys())):
        yield f"{', '.join(limits)} needs a runtime, because the time of an amount would be unknown"
    limits_writes = not work.options.wanted().keys().isdisjoint(WRITE_LIMITS.values())
    if limits_writes and not work.pattern.mixed:
        yield f"separate limits of writes are only for mixed patterns, not for {work.pattern}: use rate or rate_iops"


def _data(work: FioWorkload) -> Iterator[str]:
    """scramble_buffers would change duplicates, and a repeated buffer is a duplicate."""
    generated = work.options.dedupe_percentage is not None or work.options.buffer_compress_percentage is not None
    if generated and work.buffers is not Buffers.REFILLED:
        yield "dedupe_percentage and buffer_compress_percentage need buffers=refilled"
    if work.options.buffer_pattern and work.buffers is not Buffers.REPEATED:
        yield "buffer_pattern needs buffers=repeated"


def _verify(work: FioWorkload) -> Iterator[str]:
    """fio skips verification at the end of a run time, and reads of a mix would verify data without checksums."""
    if not work.verifies:
        return
    if work.pattern.reads or not work.pattern.stores or work.pattern.trims:
        yield f"verify needs a pattern that only writes, not {work.pattern}"
    if work.amount_bytes is None:
        yield "verify needs an amount: at the end of a run time, fio does not read the data back"
    used_bytes = (work.size_bytes or 0) * work.files
    if used_bytes and not work.pattern.random and (work.amount_bytes or 0) > used_bytes:
        yield "verify of a sequential pattern writes each block once: use an amount up to the size"
    if not work.one_block_size:
        yield "verify needs a single block size"
    shared = not (work.options.offset_increment or work.options.own_files)
    if work.threads > 1 and shared and work.pattern.random:
        yield "verify needs offset_increment with several random jobs, which would overwrite each other's blocks"
    if (work.options.verify == "pattern") is not bool(work.options.verify_pattern):
        yield "verify=pattern needs verify_pattern, and no other checksum has one"


def _region(work: FioWorkload, kind: TargetKind) -> Iterator[str]:
    """The used part must stay inside the target."""
    given = sorted(name for name in ("offset", "offset_increment") if work.options.wanted().get(name))
    if given and kind is TargetKind.DIRECTORY:
        yield f"{' and '.join(given)} need a device or a file: files in a directory are used from start to end"
    if given and work.size_bytes is None:
        yield f"{' and '.join(given)} need a size, so that the used part ends inside the target"


_OPTION_RULES = (_needed, _order, _distribution, _queue, _limits, _data, _verify)


# Problems of block sizes, the order of accesses, trims and I/O engines with special needs.


def _blocks(work: FioWorkload) -> Iterator[str]:
    separate = work.write_block_bytes is not None or bool(work.write_block_split)
    if work.write_block_bytes is not None and (work.block_split or work.block_range):
        yield "write_block_size needs block_size: for several sizes, use block_split and write_block_split"
    if separate and not work.pattern.mixed:
        yield f"separate block sizes of writes are only for mixed patterns, not for {work.pattern}: remove them"
    low, high = work.block_range or (1, 2)
    if high <= low or high % low:
        yield "the end of block_range must be a multiple of its start, and larger"


def _sectors(work: FioWorkload) -> Iterator[str]:
    """No drive has sectors below 512 bytes; those above are known only with the target (`sector_multiples`)."""
    uneven = (f"{what} of {size} bytes" for what, size in work.sector_multiples if size % SECTOR)
    if words := ", ".join(uneven):
        yield f"{words}: direct I/O, trims and sg need multiples of {SECTOR} bytes"


def _sequence(work: FioWorkload) -> Iterator[str]:
    if work.pattern.random and (work.reverse or work.skip_bytes):
        yield f"reverse and skip are only for sequential patterns, not for {work.pattern}: remove them"
    if work.run_length > 1 and not work.pattern.random:
        yield f"run_length is only for random patterns, not for {work.pattern}: remove it"
    if work.reverse and not work.one_block_size:
        yield "reverse needs a single block size, because fio steps back by a fixed number of bytes"
    if work.skip_bytes and work.skip_bytes % min(work.block_sizes):
        yield "skip must be a multiple of the block size"


def _mapped(work: FioWorkload) -> Iterator[str]:
    if work.ioengine is IoEngine.MMAP and work.direct:
        yield "I/O engine mmap uses the page cache: disable direct"
    if work.ioengine.sends_commands and work.pattern.trims:
        yield f"trims need another I/O engine than {work.ioengine}"


def _commands(work: FioWorkload) -> Iterator[str]:
    """fio 3.33 sends reads and writes with io_uring_cmd, and no flush."""
    if work.ioengine is not IoEngine.IO_URING_CMD:
        return
    if not work.direct:
        yield "I/O engine io_uring_cmd never uses the page cache: enable direct"
    syncs = work.sync is not Sync.NONE or work.fsync_every or work.end_fsync
    if syncs or not work.options.wanted().keys().isdisjoint(_SYNCING):
        yield "I/O engine io_uring_cmd cannot sync: remove sync, fsync and fdatasync"


def _on_blocks(work: FioWorkload, kind: TargetKind) -> Iterator[str]:
    if kind is not TargetKind.BLOCK and work.pattern.trims:
        yield f"{work.pattern} needs a block device, not a {kind}"
    if kind is not TargetKind.BLOCK and work.ioengine is IoEngine.SG:
        yield f"I/O engine sg needs a SCSI drive, not a {kind}"
    if kind is not TargetKind.BLOCK and work.ioengine is IoEngine.IO_URING_CMD:
        yield f"I/O engine io_uring_cmd needs an NVMe drive, not a {kind}"


MAX_JOBS = 1024
MAX_STOP_RULE_S = 86400  # the worker keeps all samples until the stream ends
SPLIT_BLOCKS = 40  # smallest size for several block sizes, in blocks of the largest: then about 1 % of the shares moves


def problems(workload: FioWorkload, kind: TargetKind) -> tuple[str, ...]:
    """All reasons why the workload cannot run on a target of this kind; () if it can."""
    of_rules = [problem for rule in RULES for problem in rule(workload)]
    with_target = [problem for rule in TARGET_RULES for problem in rule(workload, kind)]
    of_options = _option_problems(workload, kind) if workload.options.wanted() else ()
    return (*of_rules, *with_target, *of_options)


def parts_of(work: FioWorkload) -> int:
    """Parts of each file or device: one per sequential job, unless the jobs have offsets or files of their own."""
    return 1 if work.options.own_files else work.threads // work.visits_per_pass


def _mix(work: FioWorkload) -> Iterator[str]:
    if work.pattern.mixed and work.read_percent is None:
        yield f"pattern {work.pattern} needs read_percent"
    if not work.pattern.mixed and work.read_percent is not None:
        yield f"read_percent is only for mixed patterns, not for {work.pattern}: remove it"


def _stop(work: FioWorkload) -> Iterator[str]:
    if work.runtime_s is None and work.amount_bytes is None:
        yield "the workload never ends: give a runtime or an amount"
    if work.runtime_s is not None and work.amount_bytes is not None:
        yield "runtime and amount exclude each other: remove one"
    if work.ramp_s and work.amount_bytes is not None:
        yield "a ramp needs a runtime: with an amount, the data moved during the ramp would be missing"


def _stop_rule(work: FioWorkload) -> Iterator[str]:
    if work.stop is None:
        return
    if work.runtime_s is None:
        rule = write_stop_rule(work.stop)
        yield f"stop rule {rule} needs a runtime, its maximum time: replace the amount by a runtime"
        return
    least = least_s(work.stop, work.least_runtime_s)
    if work.runtime_s < least:
        yield f"stop rule {write_stop_rule(work.stop)} needs at least {least} s: use a longer runtime"
    if work.runtime_s > MAX_STOP_RULE_S:
        yield "a stop rule needs a runtime of at most 24 h"


def _depth(work: FioWorkload) -> Iterator[str]:
    if not work.ioengine.asynchronous and work.iodepth > 1 and work.sync_depth is not SyncDepth.THREADS:
        yield (
            f"I/O engine {work.ioengine} has one I/O in flight per thread, so depth {work.iodepth} is impossible: "
            "use depth 1, or sync_depth=threads for one thread per I/O"
        )
    if work.ioengine is IoEngine.LIBAIO and work.iodepth > 1 and not work.direct:
        yield "libaio is asynchronous only with direct I/O: enable direct, or use io_uring or depth 1"
    if work.threads > MAX_JOBS:
        yield f"{work.threads} threads exceed the limit of {MAX_JOBS}"


def _uring(work: FioWorkload) -> Iterator[str]:
    wanted = [name for name in work.uring.wanted() if (work.ioengine, name) != (IoEngine.PVSYNC2, "hipri")]
    if wanted and work.ioengine not in _URING:
        yield f"{', '.join(wanted)} need I/O engine io_uring, not {work.ioengine}"
    if work.uring.hipri and not work.direct:
        yield "hipri polls the device and needs direct I/O"


def _split(work: FioWorkload) -> Iterator[str]:
    if work.block_split:
        yield from _shares("block_split", work.block_split)
    if work.write_block_split:
        yield from _shares("write_block_split", work.write_block_split)
    if work.write_block_split and not work.block_split:
        yield "write_block_split needs block_split"


def _shares(name: str, split: tuple[BlockShare, ...]) -> Iterator[str]:
    total = sum(share.percent for share in split)
    if total != 100:
        yield f"the shares of {name} add up to {total} %, not 100 %"
    sizes = [share.block_bytes for share in split]
    if len(set(sizes)) < len(sizes):
        yield f"{name} lists a block size twice"
    smallest = min(sizes)
    for uneven in (size for size in sizes if size % smallest):
        yield (
            f"fio would round blocks of {size_words(uneven)} down to a multiple of the smallest, "
            f"{size_words(smallest)}: use only multiples of it in {name}"
        )


def _size(work: FioWorkload, kind: TargetKind) -> Iterator[str]:
    parts = parts_of(work)
    if work.size_bytes is None:
        if kind is TargetKind.DIRECTORY:
            yield "a directory target needs the size of its files"
        elif parts > 100:
            yield f"{parts} sequential jobs would each use less than 1 % of the target: give a size"
        elif 100 % parts:
            yield _uneven_percent(parts)
        return
    block_bytes = work.largest_io_bytes
    if work.size_bytes < block_bytes:
        yield f"size {work.size_bytes} is smaller than a block of {block_bytes} bytes"
    elif work.size_bytes < block_bytes * parts:
        yield f"size {work.size_bytes} gives each of {parts} sequential jobs less than a block of {block_bytes} bytes"
    elif not work.one_block_size and work.size_bytes < SPLIT_BLOCKS * block_bytes * parts:
        sizes = "block_split" if work.block_split else "several block sizes"
        yield (
            f"size {size_words(work.size_bytes)} is too small for {sizes}: at the end of a file fio replaces "
            "large blocks by small ones, so their shares would change; use "
            f"{size_words(SPLIT_BLOCKS * block_bytes * parts)} or more"
        )
    elif not work.pattern.random:
        yield from _uneven_size(work, work.size_bytes)


def _uneven_size(work: FioWorkload, size_bytes: int) -> Iterator[str]:
    """Sequential jobs: fio leaves out the rest of a part that is shorter than a block, without an error.

    With several block sizes, smaller blocks end the part. Random jobs use the whole file. Its rest is less than one
    block, so it has no effect on the result.
    """
    parts = parts_of(work)
    block_bytes = min(work.block_sizes)
    step = parts * block_bytes
    if size_bytes % step == 0:
        return
    by = f"{size_words(block_bytes)} blocks" if parts == 1 else f"{parts} jobs × {size_words(block_bytes)}"
    below = size_bytes // step * step
    nearest = [size_words(near) for near in (below, below + step) if near]
    yield f"size {size_words(size_bytes)} is not a multiple of {by}: use {' or '.join(nearest)}"


def _uneven_percent(parts: int) -> str:
    """fio divides a device of unknown size in whole percent."""
    used = 100 // parts * parts
    return (
        f"{parts} sequential jobs would use only {used} % of the target, because fio divides a whole device in whole "
        f"percent: give a size, or use a number of jobs that divides 100"
    )


def _files(work: FioWorkload, kind: TargetKind) -> Iterator[str]:
    if work.files > 1 and kind is not TargetKind.DIRECTORY:
        yield f"{work.files} files need a directory target, not a {kind}"
    if work.options.own_files and kind is not TargetKind.DIRECTORY:
        yield f"own_files needs a directory target, not a {kind}"
    elif work.options.own_files and work.files != work.threads:
        yield f"own_files needs one file for each job: {work.threads} files, not {work.files}"


def _seed(work: FioWorkload) -> Iterator[str]:
    if work.seed == 0:
        yield "seed 0 makes fio use the same offsets in every job: use another seed"


def _placed(work: FioWorkload) -> Iterator[str]:
    place = work.placement
    if place.cpus_policy is CpusPolicy.SPLIT and not place.cpus:
        yield "cpus_policy split needs cpus"
    if place.cpus and place.numa_node is not None:
        yield "cpus and numa_node exclude each other: remove one"
    if any(int(first) > int(last) for first, last in _ranges(place.cpus)):
        yield f"cpus {place.cpus} contains a range whose end is below its start"


def _ranges(cpus: str) -> Iterator[tuple[str, str]]:
    for part in cpus.split("+") if cpus else ():
        first, _, last = part.partition("-")
        yield first, last or first


RULES = (
    _mix,
    _stop,
    _stop_rule,
    _depth,
    _uring,
    _split,
    _seed,
    _placed,
    _blocks,
    _sectors,
    _sequence,
    _mapped,
    _commands,
)
TARGET_RULES = (_size, _files, _on_blocks)
