"""The measured job and the prefill, as fio job text.

Decisions, with their reasons, are in the comments of the functions that make them.
The text is given to fio on its standard input (`-`), so no file has to be written or cleaned up.
"""

import math

import msgspec

from worker.contract.workload import MIB, Buffers, IoEngine, Placement, Stream, Sync, TargetKind, Workload
from worker.recipes.names import RecipeError, fio_filename, fio_size, target_names
from worker.recipes.problems import parts_of, workload_problems

COMMAND = ("fio", "--output-format=json+", "--status-interval=1", "--eta=never", "-")
PREFILL_DEPTH = 16

Options = list[tuple[str, str]]


class Recipe(msgspec.Struct, frozen=True):
    """`job_text` goes to the standard input of `command`, which runs in the directory that holds `files`."""

    job_text: str
    command: tuple[str, ...]
    files: tuple[str, ...]  # relative names that a directory target needs; () for other kinds


def opening(stream: Stream, node: str) -> Stream:
    """The stream with the device node that its block target's path leads to: fio is given the node, not a link to it.

    Directory and file targets are named relative to their directory and stay as they are.
    """
    if stream.target.kind is not TargetKind.BLOCK or not node:
        return stream
    return msgspec.structs.replace(stream, target=msgspec.structs.replace(stream.target, path=node))


def render(stream: Stream) -> Recipe:
    """The measured job. Raises RecipeError naming everything that is wrong with the stream."""
    _refuse_problems(stream)
    work = stream.workload
    options = [
        *_target(stream),
        *_region(stream),
        *_pattern(work),
        *_engine(work),
        *_syncing(work),
        *_data(work),
        *_stop(work),
        *_placement(work.placement),
        *_reporting(work),
    ]
    return Recipe(_text("sweetspot", options), COMMAND, _files(stream))


def render_prefill(stream: Stream) -> Recipe | None:
    """The job that writes every file of a directory target once, whole; None when nothing is to be written first.

    Devices and single files are never prefilled: a stream that only reads must not overwrite them.
    """
    work = stream.workload
    if stream.target.kind is not TargetKind.DIRECTORY or not work.prefill:
        return None
    _refuse_problems(stream)
    size_bytes = work.size_bytes or 0
    block_bytes = math.gcd(size_bytes, MIB)  # divides the size, so that no tail stays unwritten
    options = [
        *_target(stream),
        ("size", fio_size(size_bytes * work.files)),
        ("rw", "write"),
        ("bs", fio_size(block_bytes)),
        ("ioengine", work.ioengine.value),
        ("iodepth", str(PREFILL_DEPTH if work.ioengine.asynchronous else 1)),
        ("direct", _flag(work.direct)),
        ("end_fsync", "1"),
        *_content(work),
        ("group_reporting", "1"),
    ]
    return Recipe(_text("prefill", options), COMMAND, _files(stream))


def amount_per_job(work: Workload) -> int:
    """fio's io_size counts per job: the amount is shared evenly and rounded up to whole blocks.

    So at least `amount_bytes` is moved in all, and at most one block a job more.
    """
    assert work.amount_bytes is not None
    block_bytes = largest_block(work)
    blocks = -(-work.amount_bytes // (work.threads * block_bytes))
    return blocks * block_bytes


def largest_block(work: Workload) -> int:
    return max((share.block_bytes for share in work.block_split), default=work.block_bytes)


def _refuse_problems(stream: Stream) -> None:
    problems = workload_problems(stream.workload, stream.target.kind)
    if problems:
        raise RecipeError(f"This workload cannot run: {'; '.join(problems)}.")


def _files(stream: Stream) -> tuple[str, ...]:
    return target_names(stream) if stream.target.kind is TargetKind.DIRECTORY else ()


def _target(stream: Stream) -> Options:
    names = ":".join(fio_filename(name) for name in target_names(stream))
    options = [("filename", names)]
    if stream.target.kind is not TargetKind.DIRECTORY:
        options.append(("allow_file_create", "0"))  # a mistyped /dev name must not become a file
    return options


def _region(stream: Stream) -> Options:
    """Which bytes each job uses. fio's size is per job over all of its files; ours is of each file.

    Random jobs all use the whole of every file. Sequential jobs share each file out in equal
    parts, one after the other: if all began at its start, all but the first would read what
    the first has just brought into a cache, and write the same blocks at the same time.
    """
    work = stream.workload
    parts = parts_of(work)
    if parts == 1:
        return [("size", fio_size(work.size_bytes * work.files))] if work.size_bytes else []
    if work.size_bytes is None:
        share = f"{100 // parts}%"
        return [("size", share), ("offset_increment", share)]
    block_bytes = largest_block(work)
    part_bytes = work.size_bytes // parts // block_bytes * block_bytes
    return [("size", fio_size(part_bytes * work.files)), ("offset_increment", fio_size(part_bytes))]


def _pattern(work: Workload) -> Options:
    """norandommap: every random offset is drawn independently.

    fio's default visits every block once before any twice; that keeps a bit map per job and
    file (256 MB for 8 TB), and gives a short run on a small file another distribution than a
    long one. Independent draws are the same at every size and are what other tools do.
    """
    options = [("rw", work.pattern.value)]
    if work.read_percent is not None:
        options.append(("rwmixread", str(work.read_percent)))
    if work.block_split:
        shares = ":".join(f"{fio_size(share.block_bytes)}/{share.percent}" for share in work.block_split)
        options.append(("bssplit", shares))
    else:
        options.append(("bs", fio_size(work.block_bytes)))
    if work.pattern.random:
        options.append(("norandommap", "1"))
    if work.pattern.random or work.pattern.mixed or work.block_split:
        options.append(("randseed", str(work.seed)))
    return options


def _engine(work: Workload) -> Options:
    options = [("ioengine", work.ioengine.value)]
    options += [(name, "1") for name in work.uring.wanted()]
    depth = work.iodepth if work.ioengine.asynchronous else 1
    return [*options, ("iodepth", str(depth)), ("numjobs", str(work.threads))]


def _syncing(work: Workload) -> Options:
    """Buffered jobs give the kernel no hints: fio's own would switch read-ahead off (random) or double it
    (sequential), and read_ahead_kb would not do what it says."""
    options = [("direct", _flag(work.direct))]
    if not work.direct:
        options.append(("fadvise_hint", "0"))
    if not work.pattern.writes:
        return options
    if work.sync is not Sync.NONE:
        options.append(("sync", work.sync.value))
    if work.fsync_every:
        options.append(("fsync", str(work.fsync_every)))
    if work.end_fsync:
        options.append(("end_fsync", "1"))
    return options


def _data(work: Workload) -> Options:
    """A file that is not prefilled is not preallocated either: allocating is part of what writing it costs."""
    if not work.pattern.writes:
        return []
    return _content(work) if work.prefill else [*_content(work), ("fallocate", "none")]


def _content(work: Workload) -> Options:
    """A random buffer whose blocks scramble_buffers makes different; new random data for each I/O only if asked for."""
    return [_CONTENT[work.buffers]]


_CONTENT = {
    Buffers.INCOMPRESSIBLE: ("scramble_buffers", "1"),
    Buffers.REFILLED: ("refill_buffers", "1"),
    Buffers.REPEATED: ("scramble_buffers", "0"),
    Buffers.ZEROES: ("zero_buffers", "1"),
}


def _stop(work: Workload) -> Options:
    if work.amount_bytes is not None:
        return [("io_size", fio_size(amount_per_job(work)))]
    options = [("runtime", f"{work.runtime_s}s"), ("time_based", "1")]
    if work.ramp_s:
        options.append(("ramp_time", f"{work.ramp_s}s"))
    return options


_IO_CLASSES = {"rt": "1", "be": "2", "idle": "3"}


def _placement(place: Placement) -> Options:
    """Set by fio in each of its jobs, which ends with the kernel's reason where it cannot be."""
    options = [("nice", str(place.nice))] if place.nice else []
    io_class, _, level = place.ionice.partition("/")
    if io_class in _IO_CLASSES:
        options += [("prioclass", _IO_CLASSES[io_class]), ("prio", level or "0")]
    if place.cpus:
        options += [("cpus_allowed", place.cpus.replace("+", ",")), ("cpus_allowed_policy", place.cpus_policy.value)]
    if place.numa_node is not None:
        options += [("numa_cpu_nodes", str(place.numa_node)), ("numa_mem_policy", f"bind:{place.numa_node}")]
    return options


def _reporting(work: Workload) -> Options:
    """Histograms of total latency; a submission thread of the kernel leaves only completion latency.

    exitall_on_error: the jobs that are left must not go on measuring when one has failed.
    """
    total = not (work.ioengine is IoEngine.IO_URING and work.uring.sqthread_poll)
    return [
        ("lat_percentiles", _flag(total)),
        ("clat_percentiles", _flag(not total)),
        ("group_reporting", "1"),
        ("exitall_on_error", "1"),
    ]


def _flag(on: bool) -> str:
    return "1" if on else "0"


def _text(section: str, options: Options) -> str:
    return "\n".join([f"[{section}]", *(f"{name}={value}" for name, value in options)]) + "\n"
