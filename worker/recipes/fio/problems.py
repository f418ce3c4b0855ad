"""Problems of a workload that types cannot express. Each rule yields messages that say what to do."""

from collections.abc import Iterator

from worker.contract.stopping import least_s
from worker.contract.workload import BlockShare, CpusPolicy, FioWorkload, IoEngine, SyncDepth, TargetKind
from worker.recipes.fio import access_problems, option_problems
from worker.recipes.sizes import size_words
from worker.recipes.stop_rules import write

MAX_JOBS = 1024
MAX_STOP_RULE_S = 86400  # the worker keeps all samples until the stream ends
SPLIT_BLOCKS = 40  # smallest size for several block sizes, in blocks of the largest: then about 1 % of the shares moves


def problems(workload: FioWorkload, kind: TargetKind) -> tuple[str, ...]:
    """All reasons why the workload cannot run on a target of this kind; () if it can."""
    own = [problem for rule in RULES for problem in rule(workload)]
    with_target = [problem for rule in TARGET_RULES for problem in rule(workload, kind)]
    of_options = option_problems.problems(workload, kind) if workload.options.wanted() else ()
    return (*own, *with_target, *of_options)


def parts_of(work: FioWorkload) -> int:
    """Number of parts of each file or device: one per sequential job, unless the jobs have their own offsets."""
    return 1 if work.pattern.random or work.options.offset_increment else work.threads


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
        yield f"stop rule {write(work.stop)} needs a runtime, its maximum time: replace the amount by a runtime"
        return
    least = least_s(work.stop, work.least_runtime_s)
    if work.runtime_s < least:
        yield f"stop rule {write(work.stop)} needs at least {least} s: use a longer runtime"
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
    if wanted and work.ioengine is not IoEngine.IO_URING:
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
        yield (
            f"size {size_words(work.size_bytes)} is too small for {_several(work)}: at the end of a file fio replaces "
            "large blocks by small ones, so their shares would change; use "
            f"{size_words(SPLIT_BLOCKS * block_bytes * parts)} or more"
        )
    elif not work.pattern.random:
        yield from _uneven_size(work, work.size_bytes)


def _several(work: FioWorkload) -> str:
    return "block_split" if work.block_split else "several block sizes"


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


RULES = (_mix, _stop, _stop_rule, _depth, _uring, _split, _seed, _placed, *access_problems.RULES)
TARGET_RULES = (_size, _files, *access_problems.TARGET_RULES)
