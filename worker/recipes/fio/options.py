"""The options of fio job files: the factor that each sets, its notation, and why others are refused.

This is an allowlist: any other option is refused by name, including options of newer fio versions. `refused_options`
has the reasons, `option_values` reads the texts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

import msgspec

from worker.contract.fio_options import RATE_LIMITS, FioOptions
from worker.contract.workload import Buffers, CpusPolicy, IoEngine, Pattern, Sync

# Readers of the texts of fio's options: each returns values of factors. `""` is an option without a value.
#
# They raise OptionRefused for a value that Sweetspot cannot run in the same way as fio.

Stored = str | int | bool
Values = Mapping[str, Stored]


class OptionRefused(ValueError):
    """The option is supported, but not this value. The message gives the reason."""


_SIZE = re.compile(r"([0-9]+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"([0-9]+)\s*(d|h|m|s|)", re.IGNORECASE | re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def read_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise OptionRefused(f"{text!r} is not a size in bytes like 4k, 1m or 16g")
    unit: int = 1024 ** " kmgtp".index(match[2].lower() or " ")
    return int(match[1]) * unit


def read_seconds(text: str) -> int:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise OptionRefused(f"{text!r} is not a time in whole seconds like 30, 30s or 5m")
    return int(match[1]) * _SECONDS[match[2].lower()]


def read_count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text.strip()):
        raise OptionRefused(f"{text!r} is not a whole number")
    return int(text)


def read_switch(text: str) -> bool:
    if text.strip() not in ("", "0", "1"):
        raise OptionRefused(f"{text!r} is neither 0 nor 1")
    return text.strip() != "0"


def read_as(factor: str, read: Callable[[str], Stored]) -> Callable[[str], Values]:
    return lambda text: {factor: read(text)}


def read_pattern(text: str) -> Values:
    """`randread`, `randread:8` (I/Os from each random offset), `read:64k` and `read:-8k` (bytes between two I/Os)."""
    name, colon, sequence = text.strip().partition(":")
    name = {"rw": "readwrite"}.get(name, name)
    if name not in tuple(Pattern):
        raise OptionRefused(f"the pattern {text!r} is not one of {', '.join(Pattern)}")
    if not colon:
        return {"pattern": name}
    if Pattern(name).random:
        return {"pattern": name, "run_length": read_count(sequence)}
    sign = -1 if sequence.startswith("-") else 1
    return {"pattern": name, "skip": sign * read_size(sequence.removeprefix("-"))}


def sequence(gap_bytes: int, block_bytes: int) -> Values:
    """The factors of the bytes between two sequential I/Os: below 0, the I/Os run backwards. Raises OptionRefused."""
    if gap_bytes >= 0:
        return {"skip": gap_bytes} if gap_bytes else {}
    skip = -gap_bytes - 2 * block_bytes
    if skip < 0:
        raise OptionRefused(f"of {gap_bytes} bytes would read blocks twice: give at least twice the block size.")
    return {"reverse": True} | ({"skip": skip} if skip else {})


def read_engine(text: str) -> Values:
    if text.strip() not in tuple(IoEngine):
        raise OptionRefused(f"the engine {text!r} is not one of {', '.join(IoEngine)}")
    return {"ioengine": text.strip()}


def read_nice(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,2}", text.strip()) or not -20 <= int(text) <= 19:
        raise OptionRefused(f"{text!r} is not a nice value from -20 to 19")
    return int(text)


def read_cpus(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*", text.strip()):
        raise OptionRefused(f"{text!r} is not a list of processors like 0-3,8")
    return text.strip().replace(",", "+")


def read_cpus_policy(text: str) -> str:
    if text.strip() not in tuple(CpusPolicy):
        raise OptionRefused(f"{text!r} is not one of {', '.join(CpusPolicy)}")
    return text.strip()


def read_percent(text: str) -> int:
    value = read_count(text)
    if value > 100:
        raise OptionRefused(f"{value} is more than 100 %")
    return value


def read_sync(text: str) -> Values:
    name = {"0": "none", "": "sync", "1": "sync"}.get(text.strip(), text.strip())
    if name not in tuple(Sync):
        raise OptionRefused(f"{text!r} is not one of {', '.join(Sync)}")
    return {"sync": name}


def _directions(text: str, read: str, write: str) -> dict[str, str]:
    """`reads,writes` as texts of two factors; a single value is for both, and reads may be left out: `,writes`."""
    values = [value.strip() for value in text.split(",")]
    if len(values) > 2 and values[2] not in ("", values[1]):
        raise OptionRefused(f"{text!r} has a separate value for trims: give values for reads and writes only")
    both = {read: values[0]} if values[0] else {}
    return both | ({write: values[1]} if len(values) > 1 and values[1] and values[1] != values[0] else {})


def read_block_size(text: str) -> Values:
    sizes = {factor: read_size(size) for factor, size in _directions(text, "block_size", "write_block_size").items()}
    return {"block_size": 4096} | sizes


def read_block_split(text: str) -> Values:
    splits = _directions(text.lower(), "block_split", "write_block_split")
    for split in splits.values():
        if not re.fullmatch(r"[0-9]+[km]?/[0-9]+(:[0-9]+[km]?/[0-9]+)*", split):
            raise OptionRefused(f"{split!r} is not a split like 4k/60:64k/40 with all shares")
    if "block_split" not in splits:
        raise OptionRefused(f"{text!r} has no split for reads")
    return splits


def read_block_range(text: str) -> Values:
    if not re.fullmatch(r"[0-9]+[km]?-[0-9]+[km]?", text.strip().lower()):
        raise OptionRefused(f"{text!r} is not a range like 4k-64k for reads and writes together")
    return {"block_range": text.strip().lower()}


def read_limits(factor: str) -> Callable[[str], Values]:
    return lambda text: dict(_directions(text, factor, f"write_{factor}"))


def read_size_or_percent(text: str) -> Values:
    if text.strip().endswith("%"):
        return {"size_percent": read_percent(text.strip().removesuffix("%"))}
    return {"size": read_size(text)}


def read_unchanged(text: str) -> str:
    """The factor's notation is fio's, but for the comma, which separates levels."""
    return text.strip().replace(",", "+")


def read_flag(text: str) -> str:
    return "on" if read_switch(text) else "off"


def read_number(low: int, high: int) -> Callable[[str], Values]:
    """Checks a number that the reader of the job combines with other options."""

    def read(text: str) -> Values:
        if not low <= read_count(text) <= high:
            raise OptionRefused(f"{text!r} is outside {low} to {high}")
        return {}

    return read


def read_buffers_if(on: Buffers, *, when: bool = True) -> Callable[[str], Values]:
    return lambda text: {"buffers": on.value} if read_switch(text) is when else {}


def read_always(*allowed: str, why: str) -> Callable[[str], Values]:
    def read(text: str) -> Values:
        if text.strip() not in allowed:
            raise OptionRefused(f"{text!r} is not supported: {why}")
        return {}

    return read


def read_anything(_text: str) -> Values:
    return {}


class Meaning(StrEnum):
    """How the reader of a job interprets the value."""

    VALUE = "value"  # unchanged
    PER_JOB = "per job"  # per job: multiply by the number of jobs
    OVER_FILES = "over files"  # total of all files of a job: divide by the number of files
    SEQUENCE = "sequence"  # bytes between two I/Os: positive or negative, depends on the block size
    IGNORED = "ignored"  # does not affect the measurement, or is always set
    LOGGING = "logging"  # ignored, and the plan's note says so


class Option(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    factor: str = ""  # the factor it sets; "" if none
    read: Callable[[str], Values]
    aliases: tuple[str, ...] = ()
    meaning: Meaning = Meaning.VALUE
    note: str = ""  # note for the person who imports the job


def _ignored(*names: str, why: str, meaning: Meaning = Meaning.IGNORED) -> tuple[Option, ...]:
    return tuple(Option(name=name, read=read_anything, meaning=meaning, note=why) for name in names)


def _fixed(name: str, *allowed: str, why: str) -> Option:
    return Option(name=name, read=read_always(*allowed, why=why), meaning=Meaning.IGNORED, note=why)


def _simple(name: str, factor: str, read: Callable[[str], Stored], *aliases: str) -> Option:
    return Option(name=name, factor=factor, read=read_as(factor, read), aliases=aliases)


# Options whose factor has fio's name and notation. Rate limits of reads and writes are in one option.
_SAME = tuple(name for name in FioOptions.__struct_fields__ if name not in RATE_LIMITS)
_FLAGS = (
    "pre_read",
    "serialize_overlap",
    "userspace_reap",
    "fsync_on_close",
    "verify_fatal",
    "latency_run",
    "rate_ignore_thinktime",
)
_ALIASES = {
    "blockalign": ("ba",),
    "iodepth_batch": ("iodepth_batch_submit",),
    "iodepth_batch_complete_min": ("iodepth_batch_complete",),
}

_LOGS = (
    "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_avg_msec", "log_hist_msec",
    "log_hist_coarseness", "log_max_value", "log_offset", "log_prio", "log_entries", "log_compression",
    "log_compression_cpus", "log_store_compressed", "log_unix_epoch", "log_alternate_epoch",
    "log_alternate_epoch_clock_id", "per_job_logs", "bwavgtime", "iopsavgtime", "disk_util", "slat_percentiles",
    "block_error_percentiles", "significant_figures", "unified_rw_reporting", "output", "output-format",
    "status-interval", "eta", "eta-newline", "minimal", "append-terse", "bandwidth-log", "error_dump",
)  # fmt: skip
_LOGS_WHY = "a sample of every second and the whole latency histogram are always stored"

_OPTIONS = (
    Option(
        name="rw",
        factor="pattern",
        read=read_pattern,
        aliases=("readwrite",),
        meaning=Meaning.SEQUENCE,
        note="rw=read:64k sets skip, rw=read:-8k sets reverse, rw=randread:8 sets run_length",
    ),
    _simple("rwmixread", "read_percent", read_percent),
    _simple("rwmixwrite", "read_percent", lambda text: 100 - read_percent(text)),
    Option(
        name="bs",
        factor="block_size",
        read=read_block_size,
        aliases=("blocksize",),
        note="a second value is that of writes: write_block_size",
    ),
    Option(
        name="bssplit",
        factor="block_split",
        read=read_block_split,
        note="a second value is that of writes: write_block_split",
    ),
    Option(name="bsrange", factor="block_range", read=read_block_range, aliases=("blocksize_range",)),
    Option(name="rate", factor="rate", read=read_limits("rate"), note="a second value is that of writes: write_rate"),
    Option(
        name="rate_iops",
        factor="rate_iops",
        read=read_limits("rate_iops"),
        note="a second value is that of writes: write_rate_iops",
    ),
    *(_simple(name, name, read_flag if name in _FLAGS else read_unchanged, *_ALIASES.get(name, ())) for name in _SAME),
    Option(
        name="loops",
        factor="amount",
        read=read_number(1, 1_000_000),
        note="multiplies the amount",
    ),
    Option(name="prioclass", factor="ionice", read=read_number(0, 3)),
    Option(name="prio", factor="ionice", read=read_number(0, 7)),
    _simple("numa_cpu_nodes", "numa_node", read_count),
    Option(name="ioengine", factor="ioengine", read=read_engine),
    *(_simple(n, n, read_switch) for n in ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored")),
    _simple("numjobs", "numjobs", read_count),
    _simple("iodepth", "iodepth", read_count),
    _simple("direct", "direct", read_switch),
    _simple("buffered", "direct", lambda text: not read_switch(text)),
    Option(name="sync", factor="sync", read=read_sync),
    _simple("fsync", "fsync_every", read_count),
    _simple("end_fsync", "end_fsync", read_switch),
    Option(
        name="size",
        factor="size",
        read=read_size_or_percent,
        meaning=Meaning.OVER_FILES,
        note="fio's size is the total of all files, Sweetspot's is the size of each file; size=70% sets size_percent",
    ),
    _simple("filesize", "size", read_size),
    _simple("nrfiles", "files", read_count, "nr_files"),
    _simple("runtime", "runtime", read_seconds, "timeout"),
    _simple("ramp_time", "ramp", read_seconds),
    _simple("nice", "nice", read_nice),
    _simple("cpus_allowed", "cpus", read_cpus),
    _simple("cpus_allowed_policy", "cpus_policy", read_cpus_policy),
    Option(
        name="io_size",
        factor="amount",
        read=read_as("amount", read_size),
        aliases=("io_limit",),
        meaning=Meaning.PER_JOB,
        note="fio's io_size is per job, Sweetspot's amount is the total of all jobs",
    ),
    Option(name="refill_buffers", factor="buffers", read=read_buffers_if(Buffers.REFILLED)),
    Option(name="zero_buffers", factor="buffers", read=read_buffers_if(Buffers.ZEROES)),
    Option(name="scramble_buffers", factor="buffers", read=read_buffers_if(Buffers.REPEATED, when=False)),
    _fixed("time_based", "", "1", why="a trial with a runtime always uses the whole runtime"),
    _fixed("norandommap", "", "1", why="random offsets are drawn independently"),
    _fixed("group_reporting", "", "1", why="the jobs of a stream are reported together"),
    _fixed("allow_file_create", "0", "1", why="only the files of a directory target are ever created"),
    *_ignored("filename", "directory", why="the target is chosen when a run is started"),
    *_ignored("description", why="excluded from the measurement"),
    *_ignored("name", why="the section's name"),
    *_ignored("randrepeat", "randseed", "allrandrepeat", why="the plan sets the seed"),
    *_ignored("thread", why="jobs are processes, fio's default"),
    _fixed("kb_base", "1024", why="sizes are binary"),
    _fixed("do_verify", "", "1", why="data is read back whenever `verify` is given"),
    _fixed("random_generator", "tausworthe", "tausworthe64", why="random offsets are drawn independently"),
    _fixed("fadvise_hint", "0", "1", why="buffered I/O gives the kernel no hints, so that read-ahead has its effect"),
    _fixed("create_only", "0", why="a trial must measure something"),
    _fixed("continue_on_error", "none", "0", why="an I/O error ends the trial"),
    _fixed("thinktime_blocks_type", "complete", why="pauses are counted in completed I/Os"),
    *_ignored(*_LOGS, why=_LOGS_WHY, meaning=Meaning.LOGGING),
    *_ignored(
        "disable_lat",
        "disable_clat",
        "disable_slat",
        "disable_bw_measurement",
        "stats",
        why="latencies and rates are always measured",
    ),
    *_ignored("gtod_cpu", "clocksource", why="fio's default clock is used"),
    *_ignored(
        "fallocate",
        "overwrite",
        "create_serialize",
        "create_fsync",
        "create_on_open",
        "unlink",
        "unlink_each_loop",
        why="Sweetspot creates, fills and removes the files of a directory target",
    ),
    *_ignored("softrandommap", why="random offsets are drawn independently"),
    *_ignored("exitall", "exit_what", "new_group", "startdelay", "delay", why="trials run one after another"),
    *_ignored("unit_base", why="all values are stored in bytes"),
    *_ignored("numa_mem_policy", why="memory comes from the node of `numa_cpu_nodes`"),
    *_ignored("verify_state_save", why="always off: fio would write a file"),
    *_ignored("verifysort", "verifysort_nr", "experimental_verify", why="fio's default is used"),
    Option(
        name="stonewall",
        read=read_anything,
        aliases=("wait_for_previous",),
        meaning=Meaning.IGNORED,
        note="trials run one after another",
    ),
    *_ignored("invalidate", "exitall_on_error", why="always on"),
    *_ignored("lat_percentiles", "clat_percentiles", why="latency is fio's total latency"),
    *_ignored("percentile_list", why="the complete histogram is stored"),
)

ALLOWED: Mapping[str, Option] = {name: option for option in _OPTIONS for name in (option.name, *option.aliases)}


# The fio options that Sweetspot refuses, with the reason. Options in neither table are refused without one.

_RUNS = "it runs a program"
_READS = "it reads a file of the host"
_WRITES = "it writes a file on the host"
_GUARD = "the worker's guard decides what may be used"
_LIMITS = "the worker sets the limits of fio's processes"
_JOBS = "a trial has one workload"
_FULL = "it writes until the device is full. Give a size"
_ENDS = "a slow drive is a result, and must not end the trial. Use `rate` or `rate_iops`"
_ERRORS = "an I/O error ends the trial"
_ZONES = "zoned drives are not supported. For strides, write `rw=read:64k`"
_REPLAY = "recorded I/O cannot be replayed"
_MEMORY = "fio's default memory is used"
_VERIFY = "only data that the same trial has written is verified"

_REASONS = {
    _RUNS: ("exec_prerun", "exec_postrun"),
    _READS: ("include", "read_iolog", "read_iolog_chunked", "verify_state_load", "opendir"),
    _WRITES: ("write_iolog", "verify_dump", "merge_blktrace_file"),
    _REPLAY: (
        "replay_no_stall", "replay_redirect", "replay_scale", "replay_align", "replay_time_scale", "replay_skip",
        "merge_blktrace_scalars", "merge_blktrace_iters",
    ),
    _GUARD: ("allow_mounted_write",),
    _LIMITS: ("cgroup", "cgroup_weight", "cgroup_nodelete", "uid", "gid", "lockmem"),
    _JOBS: ("wait_for", "flow", "flow_id", "flow_watermark", "flow_sleep"),
    _FULL: ("fill_device", "fill_fs"),
    "it writes past the end of the file": ("file_append",),
    "the jobs would wait for each other": ("lockfile",),
    "it replaces the job's options": ("profile",),
    "the target is chosen when a run is started": ("filename_format", "unique_filename"),
    _ENDS: ("rate_min", "rate_iops_min", "rate_cycle"),
    _ERRORS: ("ignore_error",),
    _ZONES: (
        "zonemode", "zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones",
        "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency",
    ),
    _MEMORY: ("mem", "iomem", "hugepage-size", "iomem_align", "mem_align"),
    _VERIFY: ("verify_only",),
    "the checksum is always at the start of its block": ("verify_offset",),
    "the threads that verify share the CPUs of `cpus_allowed`": ("verify_async_cpus",),
    "trims are patterns of their own: `rw=trim` or `rw=trimwrite`": (
        "trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch",
    ),
    "it changes the drive for all programs. Use the factor `scheduler`": ("ioscheduler",),
    "it leaves out the latency, which is always measured": ("gtod_reduce",),
    "a trial ends by `runtime`, by an amount or by a stop rule of the plan": (
        "steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp", "number_ios",
    ),
    "all blocks are multiples of 512 bytes": ("bs_unaligned", "blocksize_unaligned"),
    "the two sizes would be those of sequential and random I/Os. Give sizes of reads and writes": ("bs_is_seq_rand",),
    "give `offset` in bytes": ("offset_align",),
    "use `cpus_allowed`": ("cpumask",),
    "priorities of single I/Os are not reported. Use `prio` and `prioclass`": (
        "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit", "cmdprio_hint",
    ),
    "the number of duplicates would depend on the number of jobs": ("dedupe_global",),
    "not all kernels and versions of fio support it": (
        "write_hint", "atomic", "write_barrier", "barrier", "uncached", "nowait", "hipri_percentage",
    ),
}  # fmt: skip


def _by_name() -> Iterator[tuple[str, str]]:
    for reason, names in _REASONS.items():
        yield from ((name, reason) for name in names)


REFUSED: Mapping[str, str] = dict(_by_name())


# Generate the page about fio's options: `python -m worker.recipes.fio.options > docs/reference/fio-options.md`.

_HEAD = """# fio's options in job files

A fio job file can be opened as a plan. Each of fio's options becomes a factor of the plan, is ignored because it does
not change the measurement, or is refused with a reason. The same factors can be used in any plan. The editor lists
them under "Workload" and "Further options of fio".

A trial runs one workload, so jobs that fio would run at the same time are refused: put `stonewall` into all jobs but
the first.

Options with conditions:

- Every pattern except `read` and `randread` destroys data; this includes trims, which need a block device. The host's
  policy must allow it, and the run must be armed with the serial numbers of the drives.
- `loops` multiplies the amount, so estimates and write limits count every loop.
- `verify` writes an amount, then reads it back.
- An amount is rounded up to whole blocks of all jobs, and estimates count that.
- A mix with rate limits counts as if it only wrote: while reads have reached their limit, fio writes.
- `offset` and `offset_increment` must keep the used part inside the device or file. They are not for directories.
- `sg` sends SCSI commands, so the target must be a whole SCSI drive: commands to a partition or volume could reach
  the data beside it.

## Factors

| option | factor | note |
| --- | --- | --- |
"""


def options_page() -> str:
    options = list(dict.fromkeys(ALLOWED.values()))
    taken = [option for option in options if option.factor and not _same(option)]
    ignored = [option for option in options if not option.factor]
    return (
        _HEAD
        + "".join(f"| {_names(option)} | `{option.factor}` | {option.note} |\n" for option in taken)
        + f"\nOther options are factors of the same name: {', '.join(map(_names, filter(_same, options)))}.\n"
        + "\n## Ignored\n\n| options | reason |\n| --- | --- |\n"
        + "".join(f"| {', '.join(names)} | {note} |\n" for note, names in _by_note(ignored).items())
        + "\n## Refused\n\n| options | reason |\n| --- | --- |\n"
        + "".join(f"| {', '.join(names)} | {reason} |\n" for reason, names in _refused().items())
    )


def _same(option: Option) -> bool:
    return option.name == option.factor and not option.note


def _names(option: Option) -> str:
    return ", ".join(f"`{name}`" for name in (option.name, *option.aliases))


def _by_note(options: list[Option]) -> dict[str, list[str]]:
    by_note: dict[str, list[str]] = {}
    for option in options:
        note = f"{option.note}; the plan's note says so" if option.meaning is Meaning.LOGGING else option.note
        by_note.setdefault(note, []).append(_names(option))
    return by_note


def _refused() -> dict[str, list[str]]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    return by_reason


if __name__ == "__main__":
    print(options_page(), end="")
