"""The measured job of the fio engine. The functions explain the choice of options."""

from worker.contract.workload import BlockShare, FioWorkload, IoEngine, Placement, Stream, Sync
from worker.recipes.base import Recipe
from worker.recipes.fio.names import size_text
from worker.recipes.fio.problems import parts_of
from worker.recipes.fio.text import (
    COMMAND,
    Options,
    content,
    file_names,
    filename,
    flag,
    further,
    job_text,
    workload_of,
)


def render(stream: Stream) -> Recipe:
    """The measured job, as fio job text."""
    work = workload_of(stream)
    options = [
        *filename(stream),
        *_region(stream),
        *_pattern(work),
        *_engine(work),
        *_syncing(work),
        *_data(work),
        *further(work),
        *_stop(work),
        *_placement(work.placement),
        *_reporting(work),
    ]
    return Recipe(job_text("sweetspot", options), COMMAND, file_names(stream))


def _region(stream: Stream) -> Options:
    """The bytes that each job uses. fio's size is the total of a job's files; ours is the size of each file.

    Each random job uses every file completely. Sequential jobs divide each file into equal parts;
    `problems` refuses a size that does not divide exactly.
    If all jobs started at the beginning, the others would read data that the first one has just
    brought into a cache, and write the same blocks at the same time.
    With `offset_increment`, each job uses its own region of this size.
    """
    work = workload_of(stream)
    parts = parts_of(work)
    if parts == 1:
        return [("size", size_text(work.size_bytes * work.files))] if work.size_bytes else []
    if work.size_bytes is None:
        share = f"{100 // parts}%"
        return [("size", share), ("offset_increment", share)]
    part_bytes = work.size_bytes // parts  # `problems` checks that it is a multiple of a block
    return [("size", size_text(part_bytes * work.files)), ("offset_increment", size_text(part_bytes))]


def _pattern(work: FioWorkload) -> Options:
    """norandommap: every random offset is drawn independently.

    By default fio visits every block once before it repeats one. This needs a bitmap per job and
    file (256 MB for 8 TB), and the distribution of a short run on a small file differs from that
    of a long run. Independent draws have the same distribution at every size, as in other tools.
    """
    options = [("rw", work.pattern.value + sequence(work))]
    if work.read_percent is not None:
        options.append(("rwmixread", str(work.read_percent)))
    options.append(blocks(work))
    if work.pattern.random:
        options.append(("norandommap", "1"))
    if work.pattern.random or work.pattern.mixed or not work.one_block_size or work.options.percentage_random:
        options.append(("randseed", str(work.seed)))
    return options


def sequence(work: FioWorkload) -> str:
    """The suffix of rw. Sequential: bytes from the end of an I/O to the start of the next one, below 0 for reverse.

    Random: the number of I/Os before the next random offset.
    """
    if work.pattern.random:
        return f":{work.run_length}" if work.run_length > 1 else ""
    gap = -2 * work.block_bytes - work.skip_bytes if work.reverse else work.skip_bytes
    return f":{gap}" if gap else ""


def blocks(work: FioWorkload) -> tuple[str, str]:
    """Block sizes; reads and writes are separated by a comma if they differ."""
    if work.block_range is not None:
        return "bsrange", "-".join(map(size_text, work.block_range))
    if work.block_split:
        return "bssplit", ",".join(_shares(split) for split in (work.block_split, work.write_block_split) if split)
    sizes = (work.block_bytes, work.write_block_bytes or work.block_bytes)
    return "bs", ",".join(map(size_text, dict.fromkeys(sizes)))


def _shares(split: tuple[BlockShare, ...]) -> str:
    return ":".join(f"{size_text(share.block_bytes)}/{share.percent}" for share in split)


def _engine(work: FioWorkload) -> Options:
    options = [("ioengine", work.ioengine.value)]
    options += [(name, "1") for name in work.uring.wanted()]
    depth = work.iodepth if work.ioengine.asynchronous else 1
    return [*options, ("iodepth", str(depth)), ("numjobs", str(work.threads))]


def _syncing(work: FioWorkload) -> Options:
    """Buffered jobs give the kernel no hints: fio's hints would disable read-ahead (random) or double it
    (sequential), so that the setting read_ahead_kb had no effect."""
    options = [("direct", flag(work.direct))]
    if not work.direct:
        options.append(("fadvise_hint", "0"))
    if not work.pattern.stores:
        return options
    if work.sync is not Sync.NONE:
        options.append(("sync", work.sync.value))
    if work.fsync_every:
        options.append(("fsync", str(work.fsync_every)))
    if work.end_fsync:
        options.append(("end_fsync", "1"))
    return options


def _data(work: FioWorkload) -> Options:
    """A file that is not prefilled is not preallocated either, because allocation is part of the cost of writing it."""
    if not work.pattern.stores:
        return []
    return content(work) if work.prefill else [*content(work), ("fallocate", "none")]


def _stop(work: FioWorkload) -> Options:
    if work.moved_bytes is not None:
        return [("io_size", size_text(work.moved_bytes // work.threads))]
    options = [("runtime", f"{work.runtime_s}s"), ("time_based", "1")]
    if work.ramp_s:
        options.append(("ramp_time", f"{work.ramp_s}s"))
    return options


_IO_CLASSES = {"rt": "1", "be": "2", "idle": "3"}


def _placement(place: Placement) -> Options:
    """fio applies these options in each job; a job ends with the kernel's error if that fails."""
    options = [("nice", str(place.nice))] if place.nice else []
    io_class, _, level = place.ionice.partition("/")
    if io_class in _IO_CLASSES:
        options += [("prioclass", _IO_CLASSES[io_class]), ("prio", level or "0")]
    if place.cpus:
        options += [("cpus_allowed", place.cpus.replace("+", ",")), ("cpus_allowed_policy", place.cpus_policy.value)]
    if place.numa_node is not None:
        options += [("numa_cpu_nodes", str(place.numa_node)), ("numa_mem_policy", f"bind:{place.numa_node}")]
    return options


def _reporting(work: FioWorkload) -> Options:
    """Histograms of total latency; with a submission thread of the kernel, only completion latency exists.

    exitall_on_error: when one job has failed, the others must not continue to measure.
    """
    total = not (work.ioengine is IoEngine.IO_URING and work.uring.sqthread_poll)
    return [
        ("lat_percentiles", flag(total)),
        ("clat_percentiles", flag(not total)),
        ("group_reporting", "1"),
        ("exitall_on_error", "1"),
    ]
