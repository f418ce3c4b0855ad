"""The fio engine's recipe: problems of a workload, and the exact job text."""

from worker.contract.fio_options import WRITE_VALUES
from worker.contract.items import Metric
from worker.contract.workload import (
    KIB,
    MIB,
    Buffers,
    FioWorkload,
    IoEngine,
    Placement,
    Stream,
    Sync,
    TargetKind,
    Workload,
)
from worker.recipes.base import Recipe, RecipeError, scratch_prefix, target_names
from worker.recipes.fio.problems import parts_of
from worker.recipes.fio.problems import problems as problems

# File names and sizes in the syntax of fio job files.
#
# Tested behaviour of fio 3.33 for values in a job file: `;` and `#` start a comment, `${NAME}` is replaced from the
# environment, `$ncpus`, `$jobname` and others are replaced and the value is then passed to a shell with `bc`, `:`
# separates file names unless written `\:`, and `-` means standard input. Characters that cannot be written safely are
# therefore refused.

FORBIDDEN = {
    "$": "fio replaces the text after it",
    ";": "fio treats the rest as a comment",
    "#": "fio treats the rest as a comment",
    "\\": "fio treats it as an escape character",
    "`": "fio may pass it to a shell",
}
UNITS = ((1024 * MIB, "g"), (MIB, "m"), (KIB, "k"))


def path_problem(path: str) -> str:
    """Why this path cannot be used in a job file; "" if it can."""
    for character in path:
        if not character.isprintable():
            return f"the path {path!r} contains the unprintable character {character!r}: rename it"
        if character in FORBIDDEN:
            return f"the path {path!r} contains {character!r} ({FORBIDDEN[character]}): rename it or use a link"
    if path != path.strip():
        return f"the path {path!r} starts or ends with a space, which fio drops: rename it"
    if path.rpartition("/")[2] in ("", "-", ".", ".."):
        return f"the path {path!r} has no file name at its end"
    return ""


def escaped_path(path: str) -> str:
    """The escaped path for `filename=`. Raises RecipeError."""
    problem = path_problem(path)
    if problem:
        raise RecipeError(f"fio cannot use this target: {problem}.")
    return path.replace(":", "\\:")


def size_text(size_bytes: int) -> str:
    """`4k`, `1m`, `16g`: binary units, fio's default (kb_base=1024); bytes if no unit divides the size."""
    for unit_bytes, letter in UNITS:
        if size_bytes % unit_bytes == 0 and size_bytes:
            return f"{size_bytes // unit_bytes}{letter}"
    return str(size_bytes)


# fio job text: the command that reads it, and options that jobs share.

# fio reads the job text from standard input (`-`), so there is no file to write or remove.
COMMAND = ("fio", "--output-format=json+", "--status-interval=1", "--eta=never", "-")

Options = list[tuple[str, str]]


def workload_of(stream: Stream) -> FioWorkload:
    assert isinstance(stream.workload, FioWorkload)
    return stream.workload


def job_text(section: str, options: Options) -> str:
    return "\n".join([f"[{section}]", *(f"{name}={value}" for name, value in options)]) + "\n"


def flag(on: bool) -> str:
    return "1" if on else "0"


def filename(stream: Stream) -> Options:
    """The `filename` option. A mistyped /dev name must not create a file."""
    names = ":".join(escaped_path(name) for name in target_names(stream))
    own_files = stream.target.kind is TargetKind.DIRECTORY
    return [("filename", names)] if own_files else [("filename", names), ("allow_file_create", "0")]


def file_names(stream: Stream) -> tuple[str, ...]:
    """Relative file names in a directory target; () for other kinds."""
    return target_names(stream) if stream.target.kind is TargetKind.DIRECTORY else ()


def content(work: Workload) -> Options:
    """Options for the data. Incompressible data is one random buffer; scramble_buffers varies its blocks cheaply."""
    options = work.options.wanted() if isinstance(work, FioWorkload) else {}
    return [_CONTENT[work.buffers], *((name, _text(options[name])) for name in DATA_OPTIONS if name in options)]


def further(work: FioWorkload) -> Options:
    """The further options of the workload that are not about data. fio separates values of reads and writes by a comma.

    fio would write the state of a verification to a file.
    """
    values = work.options.wanted()
    pairs = {name: values.pop(write, None) for name, write in WRITE_VALUES.items()}
    options = {name: _text(value) for name, value in values.items() if name not in (*DATA_OPTIONS, *PLACED)}
    options |= {name: f"{options.get(name, '')},{value}" for name, value in pairs.items() if value is not None}
    return [*options.items(), *([("verify_state_save", "0")] if work.verifies else [])]


def _text(value: object) -> str:
    """Values contain `+` for fio's comma, which separates the levels of a factor."""
    return flag(value) if isinstance(value, bool) else str(value).replace("+", ",")


# The measured job of the fio engine. The functions explain the choice of options.

PLACED = ("norandommap", "fadvise_hint", "own_files")  # in the job beside the options that decide them
DATA_OPTIONS = (
    "dedupe_percentage",
    "dedupe_mode",
    "dedupe_working_set_percentage",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "buffer_pattern",
)  # also of prefilled files


_CONTENT = {
    Buffers.INCOMPRESSIBLE: ("scramble_buffers", "1"),
    Buffers.REFILLED: ("refill_buffers", "1"),
    Buffers.REPEATED: ("scramble_buffers", "0"),
    Buffers.ZEROES: ("zero_buffers", "1"),
}


def render(stream: Stream) -> Recipe:
    """The measured job, as fio job text."""
    work = workload_of(stream)
    options = [
        *_files(stream),
        *_region(stream),
        *_pattern(work),
        *_engine(work),
        *_syncing(work),
        *_data(work),
        *further(work),
        *_stop(work),
        *placement(work.placement),
        *_reporting(work),
    ]
    return Recipe(job_text("sweetspot", options), COMMAND, file_names(stream))


def _files(stream: Stream) -> Options:
    """All jobs use all files, or each job uses the file with its number."""
    if workload_of(stream).options.own_files:
        return [("filename_format", f"{scratch_prefix(stream)}$jobnum")]
    return filename(stream)


def _region(stream: Stream) -> Options:
    """The bytes that each job uses. fio's size is the total of a job's files; ours is the size of each file.

    Each random job uses every file completely. Sequential jobs divide each file into equal parts;
    `problems` refuses a size that does not divide exactly.
    If all jobs started at the beginning, the others would read data that the first one has just
    brought into a cache, and write the same blocks at the same time.
    With `offset_increment`, each job uses its own region of this size; with 0, all use the same region.
    """
    work = workload_of(stream)
    parts = parts_of(work)
    if parts == 1:
        return [("size", size_text(work.size_bytes * work.files_per_job))] if work.size_bytes else []
    if work.size_bytes is None:
        share = f"{100 // parts}%"
        return [("size", share), ("offset_increment", share)]
    part_bytes = work.size_bytes // parts  # `problems` checks that it is a multiple of a block
    return [("size", size_text(part_bytes * work.files)), ("offset_increment", size_text(part_bytes))]


def _pattern(work: FioWorkload) -> Options:
    """norandommap: every random offset is drawn independently, unless the workload says otherwise.

    By default fio visits every block once before it repeats one. This needs a bitmap per job and
    file (256 MB for 8 TB), and the distribution of a short run on a small file differs from that
    of a long run. Independent draws have the same distribution at every size, as in other tools.
    """
    options = [("rw", work.pattern.value + sequence(work))]
    if work.read_percent is not None:
        options.append(("rwmixread", str(work.read_percent)))
    options.append(blocks(work))
    if work.pattern.random:
        options.append(("norandommap", flag(work.options.norandommap is not False)))
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
        return "bssplit", ",".join(
            ":".join(f"{size_text(share.block_bytes)}/{share.percent}" for share in split)
            for split in (work.block_split, work.write_block_split)
            if split
        )
    sizes = (work.block_bytes, work.write_block_bytes or work.block_bytes)
    return "bs", ",".join(map(size_text, dict.fromkeys(sizes)))


def _engine(work: FioWorkload) -> Options:
    options = [("ioengine", work.ioengine.value)]
    options += [(name, "1") for name in work.uring.wanted()]
    depth = work.iodepth if work.ioengine.asynchronous else 1
    return [*options, ("iodepth", str(depth)), ("numjobs", str(work.threads))]


def _syncing(work: FioWorkload) -> Options:
    """Buffered jobs give the kernel no hints unless the workload says so: fio's hints would disable read-ahead
    (random) or double it (sequential), so that the setting read_ahead_kb had no effect.

    io_uring_cmd: the kernel refuses O_DIRECT for a character device. Its commands never use the page cache.
    """
    options = [("direct", flag(work.direct and work.ioengine is not IoEngine.IO_URING_CMD))]
    if not work.direct:
        options.append(("fadvise_hint", work.options.fadvise_hint or "0"))
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


def placement(place: Placement) -> Options:
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
    total = not work.uring.sqthread_poll
    return [
        ("lat_percentiles", flag(total)),
        ("clat_percentiles", flag(not total)),
        ("group_reporting", "1"),
        ("exitall_on_error", "1"),
    ]


LABEL = "fio"
METRICS: tuple[Metric, ...] = ()
DEFAULT_METRIC = "iops"
INSTALLATION = "Install Debian's package fio."


def feature_words(feature: str) -> str:
    return f"I/O engine {feature}" if feature in tuple(IoEngine) else f"io_uring option {feature}"
