"""The options of fio job files: the factor that each sets, its notation, and why others are refused.

This is an allowlist: any other option is refused by name, including options of newer fio versions.
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


_TIME = re.compile(r"([0-9]+)\s*(d|h|m|s|ms|msec|us|usec|)", re.IGNORECASE | re.ASCII)
_PLAIN_TIME = re.compile(r"([0-9]+)\s*(d|h|m|s)[a-z]*", re.IGNORECASE | re.ASCII)  # `90sec`, each part of `1m30s`
_NANOSECONDS = {"us": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-f]+|[0-9]+)([kmgtp](?:ib?|b)?)?(?![\w.])", re.IGNORECASE | re.ASCII)
_POWERS = " kmgtp"


def in_bytes(text: str, kb_base: int = 1024) -> str:
    """The text with its numbers and units of size as plain numbers: `4k,0x10` is `4096,16`.

    As in fio, `KiB` is the other of 1000 and 1024 than `k`, `KB` and `Ki`: 1000 unless kb_base is 1000
    (`__get_mult_bytes` in fio's parse.c).
    """
    return _NUMBER.sub(
        lambda match: str(int(match[1], 0 if "x" in match[1].lower() else 10) * _unit(match[2], kb_base)), text
    )


def _unit(unit: str | None, kb_base: int) -> int:
    if not unit:
        return 1
    base = {1000: 1024, 1024: 1000}[kb_base] if unit[1:].lower() == "ib" else kb_base
    return int(base ** _POWERS.index(unit[0].lower()))


def opposite_units(text: str) -> tuple[str, ...]:
    """The sizes in the text whose unit means another size to fio, without kb_base=1000, than in the standard."""
    return tuple(match[0] for match in _NUMBER.finditer(text) if (match[2] or "")[1:].lower() == "ib")


def read_size(text: str) -> int:
    plain = in_bytes(text.strip()).rstrip("bB")
    if not re.fullmatch(r"[0-9]+", plain, re.ASCII):
        raise OptionRefused(f"{text!r} is not a size in bytes like 4k, 1m or 16g")
    return int(plain)


def read_seconds(text: str) -> int:
    match = _TIME.fullmatch(text.strip())
    nanoseconds = int(match[1]) * _NANOSECONDS[(match[2].lower() or "s").removesuffix("ec")] if match else 0
    nanoseconds = nanoseconds if match else _plain_time(text.strip())
    if nanoseconds % 10**9:
        raise OptionRefused(f"{text!r} is not a whole number of seconds")
    return nanoseconds // 10**9


def _plain_time(text: str) -> int:
    """Times as people write them. fio reads them as microseconds: see `misread_time`."""
    parts = list(_PLAIN_TIME.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise OptionRefused(f"{text!r} is not a time in whole seconds like 30, 30s or 5m")
    return sum(int(part[1]) * _NANOSECONDS[part[2].lower()] for part in parts)


def read_unless_zero_seconds(factor: str) -> Callable[[str], Values]:
    """0 is no time, fio's default."""

    def read(text: str) -> Values:
        seconds = read_seconds(text)
        return {factor: seconds} if seconds else {}

    return read


def read_delay(text: str) -> Values:
    """A pause before the trial."""
    if "-" in text:
        raise OptionRefused(f"{text!r} is a random delay: give one time")
    seconds = read_seconds(text)
    return {"before": f"pause {seconds}s"} if seconds else {}


def read_kb_base(text: str) -> Values:
    if text.strip() not in ("1000", "1024"):
        raise OptionRefused(f"{text!r} is neither 1000 nor 1024")
    return {}


def misread_time(text: str) -> int | None:
    """The microseconds as which fio reads a time of which it does not know the unit, such as `90sec` or `1m30s`."""
    if _TIME.fullmatch(text.strip()) or not (number := re.match(r"[0-9]+", text.strip())):
        return None
    return int(number[0])


def read_count(text: str) -> int:
    plain = in_bytes(text.strip())
    if not re.fullmatch(r"[0-9]{1,10}", plain, re.ASCII):
        raise OptionRefused(f"{text!r} is not a whole number")
    return int(plain)


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


_ENGINES = {engine.value: engine for engine in IoEngine} | {"aio": IoEngine.LIBAIO, "linuxaio": IoEngine.LIBAIO}


def is_engine(text: str) -> bool:
    """Whether Sweetspot runs this I/O engine of fio, under any of its names."""
    return text.strip() in _ENGINES


def read_engine(text: str) -> Values:
    if not is_engine(text):
        raise OptionRefused(f"the engine {text!r} is not one of {', '.join(IoEngine)}")
    return {"ioengine": _ENGINES[text.strip()].value}


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
    found = {factor: read_size(size) for factor, size in _directions(text, "block_size", "write_block_size").items()}
    return {"block_size": 4096} | found


def read_block_split(text: str) -> Values:
    """Shares that are left out divide what the others leave, as in fio: `4k/50:8k/:16k/` is `4k/50:8k/25:16k/25`."""
    found = _directions(in_bytes(text.lower()), "block_split", "write_block_split")
    if "block_split" not in found:
        raise OptionRefused(f"{text!r} has no split for reads")
    return {name: _with_shares(split) for name, split in found.items()}


def _with_shares(split: str) -> str:
    parts = [re.fullmatch(r"([0-9]+)(?:/([0-9]*))?", part.strip(), re.ASCII) for part in split.split(":")]
    known = [part for part in parts if part]
    if len(known) < len(parts):
        raise OptionRefused(f"{split!r} is not a split like 4k/60:64k/40")
    open_parts = sum(not part[2] for part in known)
    share = (100 - sum(int(part[2] or 0) for part in known)) / open_parts if open_parts else 0
    if share < 0 or share != int(share):
        raise OptionRefused(f"{split!r} does not leave the same whole share for each size without one")
    return ":".join(f"{part[1]}/{part[2] or int(share)}" for part in known)


def read_block_range(text: str) -> Values:
    """One range, or the same for reads, writes and trims: `4k-64k,4k-64k`."""
    ranges = {part.strip().replace(":", "-") for part in in_bytes(text).split(",")}
    if len(ranges) > 1 or not all(re.fullmatch(r"[0-9]+-[0-9]+", part, re.ASCII) for part in ranges):
        raise OptionRefused(f"{text!r} is not a range like 4k-64k for reads and writes together")
    low, high = ranges.pop().split("-")
    return {"block_size": int(low)} if low == high else {"block_range": f"{low}-{high}"}


def read_directions(factor: str) -> Callable[[str], Values]:
    """A value of reads, and perhaps another of writes; 0 is no limit."""

    def read(text: str) -> Values:
        found = _directions(text, factor, f"write_{factor}")
        return {name: value for name, value in found.items() if value != "0" or factor not in RATE_LIMITS}

    return read


def read_size_or_percent(factor: str) -> Callable[[str], Values]:
    """`25%` sets the factor with the ending _percent; 0 is fio's default, the whole device or no offset."""

    def read(text: str) -> Values:
        if text.strip().endswith("%"):
            percent = read_percent(text.strip().removesuffix("%"))
            return {f"{factor}_percent": percent} if percent else {}
        size = read_size(text)
        return {factor: size} if size else {}

    return read


def read_file_size(text: str) -> Values:
    """A size, or the mean of a range."""
    ends = [read_size(end) for end in text.split("-")]
    if len(ends) > 2 or ends[0] > ends[-1]:
        raise OptionRefused(f"{text!r} is not a size or a range like 4k-64k")
    return {"file_size": sum(ends) // len(ends)} if ends[-1] else {}


def read_unchanged(text: str) -> str:
    """The factor's notation is fio's, but for the comma, which separates levels."""
    return text.strip().replace(",", "+")


def unless_zero(factor: str, read: Callable[[str], Stored]) -> Callable[[str], Values]:
    """For options that are off at 0, fio's default."""
    return lambda text: {} if text.strip() == "0" else {factor: read(text)}


def read_flag(text: str) -> str:
    return "on" if read_switch(text) else "off"


def read_off(factor: str) -> Callable[[str], Values]:
    """Only 0 sets the factor: 1 is the default."""
    return lambda text: {} if read_switch(text) else {factor: False}


def read_verify(text: str) -> Values:
    name = {"crc32c-intel": "crc32c"}.get(text.strip(), text.strip())
    return {} if name in ("0", "none") else {"verify": name}


def read_cpu_mask(text: str) -> str:
    mask = bin(read_count(text))[:1:-1]
    if "1" not in mask:
        raise OptionRefused(f"{text!r} has no processor")
    return "+".join(str(number) for number, bit in enumerate(mask) if bit == "1")


_SHAPES = {"zipf": "zipf:1.1", "pareto": "pareto:0.2", "normal": "normal:0"}  # with the defaults of fio 3.33


def read_distribution(text: str) -> str:
    """Without a value, the distribution has fio's default. Of zones, the last size may be left out: it is the rest."""
    if text.strip() in _SHAPES:
        return _SHAPES[text.strip()]
    name, _, zones = text.strip().partition(":")
    if name != "zoned" or "/" not in zones or "," in zones:
        return read_unchanged(text)
    pairs = [zone.split("/") for zone in zones.split(":")]
    known = sum(int(pair[1]) for pair in pairs[:-1] if pair[-1].isascii() and pair[-1].isdigit())
    if pairs[-1][-1] == "":
        pairs[-1][-1] = str(100 - known)
    return f"zoned:{':'.join('/'.join(pair) for pair in pairs)}"


def read_node(text: str) -> int:
    if re.search("[-,]", text):
        raise OptionRefused(f"{text!r} is several nodes: give one, or use `cpus_allowed`")
    return read_count(text)


def read_generator(text: str) -> Values:
    """An LFSR visits every block once."""
    if text.strip() not in ("tausworthe", "tausworthe64", "lfsr"):
        raise OptionRefused(f"{text!r} is not one of tausworthe, tausworthe64, lfsr")
    return {"norandommap": False} if text.strip() == "lfsr" else {}


def read_number(low: int, high: int) -> Callable[[str], Values]:
    """Checks a number that the reader of the job combines with other options."""

    def read(text: str) -> Values:
        if not low <= read_count(text or "1") <= high:
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
    ALWAYS = "always"  # each trial does this: other values are refused
    LEFT_OUT = "left out"  # the plan's note says so, under the differences from fio
    SEVERAL = "several"  # the reader combines it with other options of the job, or with other jobs


class Option(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    factor: str = ""  # the factor it sets; "" if none
    read: Callable[[str], Values]
    aliases: tuple[str, ...] = ()
    meaning: Meaning = Meaning.VALUE
    note: str = ""  # note for the person who imports the job
    default: str | None = None  # of an option that is left out: with this value, its note would be untrue


def _left_out(*names: str, why: str, default: str | None = None) -> tuple[Option, ...]:
    return tuple(
        Option(name=name, read=read_anything, meaning=Meaning.LEFT_OUT, note=why, default=default) for name in names
    )


def _fixed(name: str, *allowed: str, why: str) -> Option:
    return Option(name=name, read=read_always(*allowed, why=why), meaning=Meaning.ALWAYS, note=why)


def _several(name: str, read: Callable[[str], Values], note: str, *aliases: str) -> Option:
    return Option(name=name, read=read, aliases=aliases, meaning=Meaning.SEVERAL, note=note)


def _simple(name: str, factor: str, read: Callable[[str], Stored], *aliases: str) -> Option:
    return Option(name=name, factor=factor, read=read_as(factor, read), aliases=aliases)


# Options whose factor has fio's name and notation. Rate limits of reads and writes are in one option.
_OTHERWISE = {
    *RATE_LIMITS, "percentage_random", "write_percentage_random", "norandommap", "invalidate", "verify", "offset",
    "offset_increment", "random_distribution", "own_files",
}  # fmt: skip
_SAME = tuple(name for name in FioOptions.__struct_fields__ if name not in _OTHERWISE)
_OFF_AT_ZERO = (
    "blockalign", "openfiles", "thinktime", "thinktime_spin", "thinktime_iotime", "latency_target", "max_latency",
    "force_async", "fdatasync", "verify_interval", "verify_backlog", "verify_backlog_batch", "verify_async",
    "iodepth_low", "verify_pattern",
)  # fmt: skip
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
    "log_alternate_epoch_clock_id", "log_window_value", "log_issue_time", "per_job_logs", "bwavgtime", "iopsavgtime",
    "disk_util", "slat_percentiles", "lat_percentiles", "clat_percentiles", "percentile_list",
    "block_error_percentiles", "significant_figures", "unified_rw_reporting", "output", "output-format",
    "status-interval", "eta", "eta-newline", "minimal", "append-terse", "bandwidth-log", "latency-log", "error_dump",
    "write_lat_log_cycles",
)  # fmt: skip
_LOGS_WHY = "a sample of every second and the whole latency histogram are always stored"
_MEASURED = (
    "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement", "disable_bw", "gtod_reduce",
)  # fmt: skip
_MEASURED_WHY = "fio would report no such values; here latencies and rates are always measured"
_ANY = 2**31  # fio takes each number but 0 as on: `time_based=30`
_FILES = ("fallocate", "create_serialize", "create_fsync", "create_on_open", "unlink", "unlink_each_loop")

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
    *(
        Option(
            name=name,
            factor=name,
            read=read_directions(name),
            note=f"a second value is that of writes: write_{name}",
        )
        for name in ("rate", "rate_iops", "percentage_random")
    ),
    *(
        Option(
            name=name,
            factor=name,
            read=read_size_or_percent(name),
            aliases=aliases,
            note=f"{name}=50% sets {name}_percent",
        )
        for name, aliases in (("offset", ("fileoffset",)), ("offset_increment", ()))
    ),
    *(
        Option(name=name, factor=name, read=unless_zero(name, read_unchanged), aliases=_ALIASES.get(name, ()))
        if name in _OFF_AT_ZERO
        else _simple(name, name, read_flag if name in _FLAGS else read_unchanged, *_ALIASES.get(name, ()))
        for name in _SAME
    ),
    _simple("random_distribution", "random_distribution", read_distribution),
    Option(
        name="norandommap",
        factor="norandommap",
        read=read_off("norandommap"),
        note="of a job without it that ends by an amount, norandommap is off",
    ),
    Option(name="random_generator", factor="norandommap", read=read_generator, note="lfsr sets norandommap: off"),
    Option(name="invalidate", factor="invalidate", read=read_off("invalidate"), note="fio's default is 1"),
    Option(name="verify", factor="verify", read=read_verify, note="crc32c-intel is crc32c"),
    Option(
        name="loops",
        factor="amount",
        read=read_number(1, 1_000_000),
        note="multiplies the amount or the passes",
    ),
    Option(name="prioclass", factor="ionice", read=read_number(0, 3)),
    Option(name="prio", factor="ionice", read=read_number(0, 7)),
    _simple("numa_cpu_nodes", "numa_node", read_node),
    _several("numa_mem_policy", read_anything, "the memory of the node of `numa_cpu_nodes` is used"),
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
        read=read_size_or_percent("size"),
        meaning=Meaning.OVER_FILES,
        note="fio's size is that of all files of a job, Sweetspot's of each file; size=70% sets size_percent",
    ),
    Option(
        name="filesize",
        factor="size",
        read=read_file_size,
        meaning=Meaning.SEVERAL,
        note="of each file; of a range, all files have the mean size; `size` is then the amount",
    ),
    _simple("nrfiles", "files", read_count, "nr_files"),
    Option(name="runtime", factor="runtime", read=read_unless_zero_seconds("runtime"), aliases=("timeout",)),
    Option(name="ramp_time", factor="ramp", read=read_unless_zero_seconds("ramp")),
    Option(
        name="startdelay",
        factor="before",
        read=read_delay,
        aliases=("delay",),
        meaning=Meaning.SEVERAL,
        note="a pause before the trial; the streams of a trial start together",
    ),
    _simple("nice", "nice", read_nice),
    _simple("cpus_allowed", "cpus", read_cpus),
    _simple("cpumask", "cpus", read_cpu_mask),
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
    Option(
        name="overwrite",
        factor="prefill",
        read=lambda text: {"prefill": read_switch(text)},
        note="writing jobs without it use new files: prefill is off",
    ),
    _several("time_based", read_number(0, _ANY), "a trial with a runtime always uses the whole runtime"),
    _several("group_reporting", read_number(0, _ANY), "the jobs of a stream are reported together"),
    _several("filename", read_anything, "the target is chosen when a run is started"),
    _several("directory", read_anything, "the target is chosen when a run is started"),
    _several("filename_format", read_anything, "the target is chosen when a run is started"),
    _several("stonewall", read_anything, "the job starts a new part of the plan", "wait_for_previous"),
    _several("wait_for", read_anything, "the job starts a new part, if it waits for all jobs before it"),
    _several("exitall", read_anything, "the streams of a trial end by themselves"),
    _several("do_verify", read_number(0, 1), "data is read back whenever `verify` is given"),
    _several("name", read_anything, "the name of the job"),
    _several("description", read_anything, "the text is in the plan's note"),
    _several("kb_base", read_kb_base, "1000 or 1024: the meaning of k, m and g"),
    _several("thread", read_number(0, _ANY), "jobs are processes, fio's default"),
    _fixed("create_only", "0", why="a trial must measure something"),
    _fixed("continue_on_error", "none", "0", why="an I/O error ends the trial"),
    _fixed("thinktime_blocks_type", "complete", why="pauses are counted in completed I/Os"),
    *_left_out(*_LOGS, why=_LOGS_WHY),
    *_left_out(*_MEASURED, why=_MEASURED_WHY, default="0"),
    *_left_out("stats", why=_MEASURED_WHY, default="1"),
    *_left_out("gtod_cpu", "clocksource", why="fio's default clock is used"),
    *_left_out(*_FILES, why="Sweetspot creates, fills and removes the files of a directory target"),
    *_left_out("allow_file_create", "unique_filename", why="only the files of a directory target are ever created"),
    *_left_out("randrepeat", "randseed", "allrandrepeat", why="the plan sets the seed"),
    *_left_out("softrandommap", why="fio's default is used"),
    *_left_out("verifysort", "verifysort_nr", "experimental_verify", why="fio's default is used"),
    *_left_out("exit_what", why="the streams of a trial end by themselves"),
    *_left_out("new_group", why="each stream is reported by itself"),
    *_left_out("unit_base", why="all values are stored in bytes"),
    *_left_out("verify_dump", "verify_state_save", "write_iolog", why="no file is written on the host"),
    *_left_out("threads", why="fio ignores it too: it is an option of the profile tiobench"),
    *_left_out("exitall_on_error", why="when a job fails, the trial fails"),
    *_left_out("mem_align", "iomem_align", why="fio's default alignment is used"),
)

ALLOWED: Mapping[str, Option] = {name: option for option in _OPTIONS for name in (option.name, *option.aliases)}


# The fio options that Sweetspot refuses, with the reason. Options in neither table are refused without one.

_RUNS = "it runs a program"
_READS = "it reads a file of the host"
_GUARD = "the worker's guard decides what may be used"
_LIMITS = "the worker sets the limits of fio's processes"
_FLOW = (
    "it keeps the I/Os of several jobs in a ratio, but the streams of a trial run freely. Use `rate_iops` in each job"
)
_FULL = "it writes until the device is full. Give a size"
_ENDS = "a slow drive is a result, and must not end the trial. Use `rate` or `rate_iops`"
_ERRORS = "an I/O error ends the trial"
_ZONES = "zoned drives are not supported. For strides, write `rw=read:64k`"
_REPLAY = "recorded I/O cannot be replayed"
_MEMORY = "fio's default memory is used"
_VERIFY = "only data that the same trial has written is verified"

# Of fio 3.33: `fio --enghelp=ENGINE` and the options in its manual.
OF_OTHER_ENGINES = (
    "cmd_type", "cpuload", "cpuchunks", "cpumode", "exit_on_io_done", "hostname", "bindname", "port", "protocol",
    "proto", "interface", "ttl", "nodelay", "listen", "pingpong", "window_size", "mss", "verb", "stat_type", "program",
    "arguments", "grace_time", "std_redirect", "donorname", "inplace", "volume", "brick", "single-instance", "skip_bad",
    "uri", "clustername", "rbdname", "pool", "clientname", "conf", "busy_poll", "touch_objects", "namenode",
    "hdfsdirectory", "chunk_size", "object_class", "cont", "nfs_url", "gpu_dev_ids", "cuda_io", "http_host",
    "http_user", "http_pass", "https", "http_mode", "http_s3_region", "http_s3_key", "http_s3_keyid",
    "http_s3_sse_customer_key", "http_s3_sse_customer_algorithm", "http_s3_storage_class", "http_swift_auth_token",
    "http_verbose", "xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid", "xnvme_iovec",
)  # fmt: skip

_REASONS = {
    _RUNS: ("exec_prerun", "exec_postrun"),
    _READS: ("read_iolog", "read_iolog_chunked", "verify_state_load", "opendir"),
    _REPLAY: (
        "replay_no_stall", "replay_redirect", "replay_scale", "replay_align", "replay_time_scale", "replay_skip",
        "merge_blktrace_file", "merge_blktrace_scalars", "merge_blktrace_iters",
    ),
    _GUARD: ("allow_mounted_write",),
    _LIMITS: ("cgroup", "cgroup_weight", "cgroup_nodelete", "uid", "gid", "lockmem"),
    _FLOW: ("flow", "flow_id", "flow_watermark", "flow_sleep"),
    _FULL: ("fill_device", "fill_fs"),
    "it writes past the end of the file": ("file_append",),
    "the jobs would wait for each other": ("lockfile",),
    "it replaces the job's options": ("profile",),
    _ENDS: ("rate_min", "ratemin", "rate_iops_min", "rate_cycle", "ratecycle"),
    _ERRORS: ("ignore_error",),
    _ZONES: (
        "zonemode", "zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones",
        "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency",
    ),
    _MEMORY: ("mem", "iomem", "hugepage-size"),
    _VERIFY: ("verify_only",),
    "the checksum is always at the start of its block": ("verify_offset",),
    "the threads that verify share the CPUs of `cpus_allowed`": ("verify_async_cpus",),
    "trims are patterns of their own: `rw=trim` or `rw=trimwrite`": (
        "trim_percentage", "trim_backlog", "trim_backlog_batch",
    ),
    "trimmed blocks are not read back": ("trim_verify_zero",),
    "it changes the drive for all programs. Use the factor `scheduler`": ("ioscheduler",),
    "a trial ends by `runtime`, by an amount or by a stop rule of the plan": (
        "steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp", "number_ios",
    ),
    "random offsets are multiples of the smallest block": ("bs_unaligned", "blocksize_unaligned"),
    "the two sizes would be those of sequential and random I/Os. Give sizes of reads and writes": ("bs_is_seq_rand",),
    "give `offset` in bytes": ("offset_align",),
    "priorities of single I/Os are not reported. Use `prio` and `prioclass`": (
        "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit", "cmdprio_hint",
    ),
    "the number of duplicates would depend on the number of jobs": ("dedupe_global",),
    "not all kernels and versions of fio support it": (
        "write_hint", "atomic", "write_barrier", "barrier", "uncached", "nowait", "hipri_percentage",
    ),
    "sg reads and writes with the plain commands READ and WRITE": (
        "sg_write_mode", "readfua", "writefua", "stream_id",
    ),
    "huge pages for mmap are not supported": ("thp",),
    "it belongs to an I/O engine that Sweetspot does not run": OF_OTHER_ENGINES,
}  # fmt: skip


def _by_name() -> Iterator[tuple[str, str]]:
    for reason, names in _REASONS.items():
        yield from ((name, reason) for name in names)


REFUSED: Mapping[str, str] = dict(_by_name())

# Values of refused options that are fio's default, which job files often write out.
DEFAULTS: Mapping[str, str] = dict.fromkeys(
    (
        "fill_device", "fill_fs", "file_append", "rate_min", "rate_iops_min", "zonesize", "zonerange", "zoneskip",
        "verify_only", "verify_offset", "trim_percentage", "trim_verify_zero", "trim_backlog", "number_ios",
        "bs_unaligned", "blocksize_unaligned", "bs_is_seq_rand", "offset_align", "cmdprio_percentage", "dedupe_global",
        "atomic", "uncached", "nowait", "replay_no_stall", "verify_state_load", "allow_mounted_write",
        "read_iolog_chunked", "flow", "lockmem", "ratemin", "readfua", "writefua", "stream_id", "thp",
    ),
    "0",
) | {
    "zonemode": "none", "lockfile": "none", "mem": "malloc", "rate_cycle": "1000", "ratecycle": "1000",
    "sg_write_mode": "write",
}  # fmt: skip


# Generate the page about fio's options: `python -m worker.recipes.fio.options > docs/reference/fio-options.md`.

_HEAD = """# fio's options in job files

A fio job file, or a command `fio --name=…`, can be opened as a plan: on the page "Import a plan", with the
[command line](command-line.md) and with the API. Each option sets a factor of the plan, is what every trial does, is
ignored and listed in the plan's note under "Differences from fio", or is refused with a reason. The same factors can be
used in any plan. The editor lists them under "Workload" and "Further options of fio".

Values of variables (`${SIZE}`, `$ncpus`) and files that the job file includes are given with it. A plan can be exported
as a job file; imported again, it has the same points.

Jobs that fio runs at the same time become the [streams](plans.md#streams-with-different-workloads) of one part, at most
eight. `stonewall`, or `wait_for` of all jobs before, begins a new part. The plan's note lists the differences from fio.

Sizes and times mean what they mean to fio:

- `k`, `kb` and `ki` are 1,024 bytes, but `KiB` is 1,000; with `kb_base=1000`, `k` is 1,000 and `KiB` is 1,024.
- fio reads a time with another unit than us, ms, s, m, h or d in microseconds: `90sec`, `1m30s`. Here they are seconds,
  and the note says so.

Options with conditions:

- Every pattern except `read` and `randread` destroys data; this includes trims, which need a block device. The host's
  policy must allow it, and the run must be armed with the serial numbers of the drives.
- `loops` multiplies the amount, so estimates and write limits count every loop.
- `verify` writes an amount, then reads it back.
- An amount is rounded up to whole blocks of all jobs, and estimates count that.
- A mix with rate limits counts as if it only wrote: while reads have reached their limit, fio writes.
- `offset` and `offset_increment` must keep the used part inside the device or file. They are not for directories.
- Jobs of `numjobs` have files of their own unless `filename` is given. Here they share files of the same total size.
  With `filename`, sequential jobs all start at the same offset: `offset_increment: 0`.
- A job without `runtime` and `io_size` ends when it has gone through its size. Of a size in percent or of a whole
  device, that is `passes`.
- `sg` sends SCSI commands, so the target must be a whole SCSI drive: commands to a partition or volume could reach
  the data beside it.
- `io_uring_cmd` sends NVMe commands, so the target must be a whole NVMe drive (/dev/nvme0n1). The worker checks and
  holds this block device, and fio opens the generic device of the same namespace (/dev/ng0n1). It needs Linux 5.19 and
  fio 3.31. Blocks are at most as large as one command of the drive. There are no trims and no fsync.
- The kernel does not count commands of `sg` and `io_uring_cmd`: their results have no device counters, and a target
  with `max_write_bytes` refuses their writes.

## Factors

| option | factor | note |
| --- | --- | --- |
"""

_TITLES = {
    Meaning.SEVERAL: "Without a factor",
    Meaning.ALWAYS: "The same in every trial; other values are refused",
    Meaning.LEFT_OUT: "Ignored, and listed in the plan's note",
}


def options_page() -> str:
    options = list(dict.fromkeys(ALLOWED.values()))
    taken = [option for option in options if option.factor and not _same(option)]
    others = [option for option in options if not option.factor]
    return (
        _HEAD
        + "".join(f"| {_names(option)} | `{option.factor}` | {option.note} |\n" for option in taken)
        + f"\nOther options are factors of the same name: {', '.join(map(_names, filter(_same, options)))}.\n"
        + "".join(
            f"\n## {title}\n\n| options | meaning |\n| --- | --- |\n"
            + "".join(f"| {', '.join(names)} | {note} |\n" for note, names in _by_note(others, meaning).items())
            for meaning, title in _TITLES.items()
        )
        + "\n## Refused\n\n| options | reason |\n| --- | --- |\n"
        + "".join(f"| {', '.join(names)} | {reason} |\n" for reason, names in _refused().items())
    )


def _same(option: Option) -> bool:
    return option.name == option.factor and not option.note


def _names(option: Option) -> str:
    return ", ".join(f"`{name}`" for name in (option.name, *option.aliases))


def _by_note(options: list[Option], meaning: Meaning) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for option in options:
        if option.meaning is meaning:
            found.setdefault(option.note, []).append(_names(option))
    return found


def _refused() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        found.setdefault(reason, []).append(f"`{name}`")
    return found


if __name__ == "__main__":
    print(options_page(), end="")
