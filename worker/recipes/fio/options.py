"""The fio job-file options that Sweetspot supports, each with the factor that it sets.

This is an allowlist: any other option is refused by name, including options of newer fio
versions. `refused_options` has the reasons. `read` converts an option's text to factor values. It
raises OptionRefused for a value that Sweetspot cannot run in the same way as fio. The text `""`
means an option without a value.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from worker.contract.fio_options import FioOptions
from worker.contract.workload import Buffers, CpusPolicy, IoEngine, Pattern, Sync

Stored = str | int | bool
Values = Mapping[str, Stored]


class OptionRefused(ValueError):
    """The option is supported, but not this value. The message gives the reason."""


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


_SIZE = re.compile(r"([0-9]+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"([0-9]+)\s*(d|h|m|s|)", re.IGNORECASE | re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise OptionRefused(f"{text!r} is not a size in bytes like 4k, 1m or 16g")
    unit: int = 1024 ** " kmgtp".index(match[2].lower() or " ")
    return int(match[1]) * unit


def _seconds(text: str) -> int:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise OptionRefused(f"{text!r} is not a time in whole seconds like 30, 30s or 5m")
    return int(match[1]) * _SECONDS[match[2].lower()]


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text.strip()):
        raise OptionRefused(f"{text!r} is not a whole number")
    return int(text)


def _switch(text: str) -> bool:
    if text.strip() not in ("", "0", "1"):
        raise OptionRefused(f"{text!r} is neither 0 nor 1")
    return text.strip() != "0"


def _of(factor: str, read: Callable[[str], Stored]) -> Callable[[str], Values]:
    return lambda text: {factor: read(text)}


def _pattern(text: str) -> Values:
    """`randread`, `randread:8` (I/Os from each random offset), `read:64k` and `read:-8k` (bytes between two I/Os)."""
    name, colon, sequence = text.strip().partition(":")
    name = {"rw": "readwrite"}.get(name, name)
    if name not in tuple(Pattern):
        raise OptionRefused(f"the pattern {text!r} is not one of {', '.join(Pattern)}")
    if not colon:
        return {"pattern": name}
    if Pattern(name).random:
        return {"pattern": name, "run_length": _count(sequence)}
    sign = -1 if sequence.startswith("-") else 1
    return {"pattern": name, "skip": sign * _size(sequence.removeprefix("-"))}


def sequence(gap_bytes: int, block_bytes: int) -> Values:
    """The factors of the bytes between two sequential I/Os: below 0, the I/Os run backwards. Raises OptionRefused."""
    if gap_bytes >= 0:
        return {"skip": gap_bytes} if gap_bytes else {}
    skip = -gap_bytes - 2 * block_bytes
    if skip < 0:
        raise OptionRefused(f"of {gap_bytes} bytes would read blocks twice: give at least twice the block size.")
    return {"reverse": True} | ({"skip": skip} if skip else {})


def _engine(text: str) -> Values:
    if text.strip() not in tuple(IoEngine):
        raise OptionRefused(f"the engine {text!r} is not one of {', '.join(IoEngine)}")
    return {"ioengine": text.strip()}


def _nice(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,2}", text.strip()) or not -20 <= int(text) <= 19:
        raise OptionRefused(f"{text!r} is not a nice value from -20 to 19")
    return int(text)


def _cpus(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*", text.strip()):
        raise OptionRefused(f"{text!r} is not a list of processors like 0-3,8")
    return text.strip().replace(",", "+")


def _cpus_policy(text: str) -> str:
    if text.strip() not in tuple(CpusPolicy):
        raise OptionRefused(f"{text!r} is not one of {', '.join(CpusPolicy)}")
    return text.strip()


def _percent(text: str) -> int:
    value = _count(text)
    if value > 100:
        raise OptionRefused(f"{value} is more than 100 %")
    return value


def _sync(text: str) -> Values:
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


def _block_size(text: str) -> Values:
    found = {factor: _size(size) for factor, size in _directions(text, "block_size", "write_block_size").items()}
    return {"block_size": 4096} | found


def _block_split(text: str) -> Values:
    found = _directions(text.lower(), "block_split", "write_block_split")
    for split in found.values():
        if not re.fullmatch(r"[0-9]+[km]?/[0-9]+(:[0-9]+[km]?/[0-9]+)*", split):
            raise OptionRefused(f"{split!r} is not a split like 4k/60:64k/40 with all shares")
    if "block_split" not in found:
        raise OptionRefused(f"{text!r} has no split for reads")
    return found


def _block_range(text: str) -> Values:
    if not re.fullmatch(r"[0-9]+[km]?-[0-9]+[km]?", text.strip().lower()):
        raise OptionRefused(f"{text!r} is not a range like 4k-64k for reads and writes together")
    return {"block_range": text.strip().lower()}


def _limits(factor: str) -> Callable[[str], Values]:
    return lambda text: dict(_directions(text, factor, f"write_{factor}"))


def _size_or_percent(text: str) -> Values:
    if text.strip().endswith("%"):
        return {"size_percent": _percent(text.strip().removesuffix("%"))}
    return {"size": _size(text)}


def _unchanged(text: str) -> str:
    """The factor's notation is fio's, but for the comma, which separates levels."""
    return text.strip().replace(",", "+")


def _flag(text: str) -> str:
    return "on" if _switch(text) else "off"


def _number(low: int, high: int) -> Callable[[str], Values]:
    """Checks a number that the reader of the job combines with other options."""

    def read(text: str) -> Values:
        if not low <= _count(text) <= high:
            raise OptionRefused(f"{text!r} is outside {low} to {high}")
        return {}

    return read


def _buffers_if(on: Buffers, *, when: bool = True) -> Callable[[str], Values]:
    return lambda text: {"buffers": on.value} if _switch(text) is when else {}


def _always(*allowed: str, why: str) -> Callable[[str], Values]:
    def read(text: str) -> Values:
        if text.strip() not in allowed:
            raise OptionRefused(f"{text!r} is not supported: {why}")
        return {}

    return read


def _anything(_text: str) -> Values:
    return {}


def _ignored(name: str, note: str, *aliases: str) -> Option:
    return Option(name=name, read=_anything, aliases=aliases, meaning=Meaning.IGNORED, note=note)


def _logging(*names: str) -> tuple[Option, ...]:
    why = "a sample of every second and the whole latency histogram are always stored"
    return tuple(Option(name=name, read=_anything, meaning=Meaning.LOGGING, note=why) for name in names)


def _kept(*names: str, why: str) -> tuple[Option, ...]:
    return tuple(_ignored(name, why) for name in names)


def _fixed(name: str, *allowed: str, why: str, aliases: tuple[str, ...] = ()) -> Option:
    return Option(name=name, read=_always(*allowed, why=why), aliases=aliases, meaning=Meaning.IGNORED, note=why)


def _simple(name: str, factor: str, read: Callable[[str], Stored], *aliases: str) -> Option:
    return Option(name=name, factor=factor, read=_of(factor, read), aliases=aliases)


_PAIRED = ("rate", "write_rate", "rate_iops", "write_rate_iops")  # reads and writes in one option
# Options whose factor has fio's name and notation.
_SAME = tuple(name for name in FioOptions.__struct_fields__ if name not in _PAIRED)
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

_OPTIONS = (
    Option(
        name="rw",
        factor="pattern",
        read=_pattern,
        aliases=("readwrite",),
        meaning=Meaning.SEQUENCE,
        note="rw=read:64k sets skip, rw=read:-8k sets reverse, rw=randread:8 sets run_length",
    ),
    _simple("rwmixread", "read_percent", _percent),
    _simple("rwmixwrite", "read_percent", lambda text: 100 - _percent(text)),
    Option(
        name="bs",
        factor="block_size",
        read=_block_size,
        aliases=("blocksize",),
        note="a second value is that of writes: write_block_size",
    ),
    Option(
        name="bssplit",
        factor="block_split",
        read=_block_split,
        note="a second value is that of writes: write_block_split",
    ),
    Option(name="bsrange", factor="block_range", read=_block_range, aliases=("blocksize_range",)),
    Option(name="rate", factor="rate", read=_limits("rate"), note="a second value is that of writes: write_rate"),
    Option(
        name="rate_iops",
        factor="rate_iops",
        read=_limits("rate_iops"),
        note="a second value is that of writes: write_rate_iops",
    ),
    *(_simple(name, name, _flag if name in _FLAGS else _unchanged, *_ALIASES.get(name, ())) for name in _SAME),
    Option(
        name="loops",
        factor="amount",
        read=_number(1, 1_000_000),
        meaning=Meaning.VALUE,
        note="multiplies the amount",
    ),
    Option(name="prioclass", factor="ionice", read=_number(0, 3)),
    Option(name="prio", factor="ionice", read=_number(0, 7)),
    _simple("numa_cpu_nodes", "numa_node", _count),
    Option(name="ioengine", factor="ioengine", read=_engine),
    *(_simple(n, n, _switch) for n in ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored")),
    _simple("numjobs", "numjobs", _count),
    _simple("iodepth", "iodepth", _count),
    _simple("direct", "direct", _switch),
    _simple("buffered", "direct", lambda text: not _switch(text)),
    Option(name="sync", factor="sync", read=_sync),
    _simple("fsync", "fsync_every", _count),
    _simple("end_fsync", "end_fsync", _switch),
    Option(
        name="size",
        factor="size",
        read=_size_or_percent,
        meaning=Meaning.OVER_FILES,
        note="fio's size is the total of all files, Sweetspot's is the size of each file; size=70% sets size_percent",
    ),
    _simple("filesize", "size", _size),
    _simple("nrfiles", "files", _count, "nr_files"),
    _simple("runtime", "runtime", _seconds, "timeout"),
    _simple("ramp_time", "ramp", _seconds),
    _simple("nice", "nice", _nice),
    _simple("cpus_allowed", "cpus", _cpus),
    _simple("cpus_allowed_policy", "cpus_policy", _cpus_policy),
    Option(
        name="io_size",
        factor="amount",
        read=_of("amount", _size),
        aliases=("io_limit",),
        meaning=Meaning.PER_JOB,
        note="fio's io_size is per job, Sweetspot's amount is the total of all jobs",
    ),
    Option(name="refill_buffers", factor="buffers", read=_buffers_if(Buffers.REFILLED)),
    Option(name="zero_buffers", factor="buffers", read=_buffers_if(Buffers.ZEROES)),
    Option(name="scramble_buffers", factor="buffers", read=_buffers_if(Buffers.REPEATED, when=False)),
    _fixed("time_based", "", "1", why="a trial with a runtime always uses the whole runtime"),
    _fixed("norandommap", "", "1", why="random offsets are drawn independently"),
    _fixed("group_reporting", "", "1", why="the jobs of a stream are reported together"),
    _fixed("allow_file_create", "0", "1", why="only the files of a directory target are ever created"),
    _ignored("filename", "the target is chosen when a run is started"),
    _ignored("directory", "the target is chosen when a run is started"),
    _ignored("description", "excluded from the measurement"),
    _ignored("name", "the section's name"),
    _ignored("randrepeat", "the plan sets the seed"),
    _ignored("randseed", "the plan sets the seed"),
    _ignored("thread", "jobs are processes, fio's default"),
    _fixed("kb_base", "1024", why="sizes are binary"),
    _fixed("do_verify", "", "1", why="data is read back whenever `verify` is given"),
    _fixed("random_generator", "tausworthe", "tausworthe64", why="random offsets are drawn independently"),
    _fixed("fadvise_hint", "0", "1", why="buffered I/O gives the kernel no hints, so that read-ahead has its effect"),
    _fixed("create_only", "0", why="a trial must measure something"),
    _fixed("continue_on_error", "none", "0", why="an I/O error ends the trial"),
    _fixed("thinktime_blocks_type", "complete", why="pauses are counted in completed I/Os"),
    *_logging(
        "write_bw_log",
        "write_lat_log",
        "write_iops_log",
        "write_hist_log",
        "log_avg_msec",
        "log_hist_msec",
        "log_hist_coarseness",
        "log_max_value",
        "log_offset",
        "log_prio",
        "log_entries",
        "log_compression",
        "log_compression_cpus",
        "log_store_compressed",
        "log_unix_epoch",
        "log_alternate_epoch",
        "log_alternate_epoch_clock_id",
        "per_job_logs",
        "bwavgtime",
        "iopsavgtime",
        "disk_util",
        "slat_percentiles",
        "block_error_percentiles",
        "significant_figures",
        "unified_rw_reporting",
        "output",
        "output-format",
        "status-interval",
        "eta",
        "eta-newline",
        "minimal",
        "append-terse",
        "bandwidth-log",
        "error_dump",
    ),
    *_kept(
        "disable_lat",
        "disable_clat",
        "disable_slat",
        "disable_bw_measurement",
        "stats",
        why="latencies and rates are always measured",
    ),
    *_kept("gtod_cpu", "clocksource", why="fio's default clock is used"),
    *_kept(
        "fallocate",
        "overwrite",
        "create_serialize",
        "create_fsync",
        "create_on_open",
        "unlink",
        "unlink_each_loop",
        why="Sweetspot creates, fills and removes the files of a directory target",
    ),
    *_kept("allrandrepeat", why="the plan sets the seed"),
    *_kept("softrandommap", why="random offsets are drawn independently"),
    *_kept("exitall", "exit_what", "new_group", "startdelay", "delay", why="trials run one after another"),
    *_kept("unit_base", why="all values are stored in bytes"),
    *_kept("numa_mem_policy", why="memory comes from the node of `numa_cpu_nodes`"),
    *_kept("verify_state_save", why="always off: fio would write a file"),
    *_kept("verifysort", "verifysort_nr", "experimental_verify", why="fio's default is used"),
    _ignored("stonewall", "trials run one after another", "wait_for_previous"),
    _ignored("invalidate", "always on"),
    _ignored("lat_percentiles", "latency is fio's total latency"),
    _ignored("clat_percentiles", "latency is fio's total latency"),
    _ignored("percentile_list", "the complete histogram is stored"),
    _ignored("exitall_on_error", "always on"),
)

ALLOWED: Mapping[str, Option] = {name: option for option in _OPTIONS for name in (option.name, *option.aliases)}
