"""The fio job-file options that Sweetspot supports, each with the factor that it sets.

This is an allowlist: any other option is refused by name, including options of newer fio
versions. `read` converts an option's text to factor values. It raises OptionRefused for a value
that Sweetspot cannot run in the same way as fio. The text `""` means an option without a value.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

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
    IGNORED = "ignored"  # does not affect the measurement, or is always set


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
    name = {"rw": "readwrite"}.get(text.strip(), text.strip())
    if name not in tuple(Pattern):
        raise OptionRefused(f"the pattern {text!r} is not one of {', '.join(Pattern)}")
    return {"pattern": name}


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


def _block_size(text: str) -> Values:
    sizes = {_size(part) for part in text.split(",") if part.strip()}
    if len(sizes) != 1:
        raise OptionRefused(f"{text!r} gives separate block sizes for reads and writes, or a range: give a single size")
    return {"block_size": sizes.pop()}


def _block_split(text: str) -> Values:
    if not re.fullmatch(r"[0-9]+[kKmM]?/[0-9]+(:[0-9]+[kKmM]?/[0-9]+)*", text.strip()):
        raise OptionRefused(
            f"{text!r} is not a split like 4k/60:64k/40: use one split for all directions, with all shares"
        )
    return {"block_split": text.strip().lower()}


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


def _fixed(name: str, *allowed: str, why: str, aliases: tuple[str, ...] = ()) -> Option:
    return Option(name=name, read=_always(*allowed, why=why), aliases=aliases, meaning=Meaning.IGNORED, note=why)


def _simple(name: str, factor: str, read: Callable[[str], Stored], *aliases: str) -> Option:
    return Option(name=name, factor=factor, read=_of(factor, read), aliases=aliases)


_OPTIONS = (
    Option(name="rw", factor="pattern", read=_pattern, aliases=("readwrite",)),
    _simple("rwmixread", "read_percent", _percent),
    _simple("rwmixwrite", "read_percent", lambda text: 100 - _percent(text)),
    Option(name="bs", factor="block_size", read=_block_size, aliases=("blocksize",)),
    Option(name="bssplit", factor="block_split", read=_block_split),
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
        read=_of("size", _size),
        meaning=Meaning.OVER_FILES,
        note="fio's size is the total of all files, Sweetspot's is the size of each file",
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
    _ignored("stonewall", "trials run one after another", "wait_for_previous"),
    _ignored("invalidate", "always on"),
    _ignored("lat_percentiles", "latency is fio's total latency"),
    _ignored("clat_percentiles", "latency is fio's total latency"),
    _ignored("percentile_list", "the complete histogram is stored"),
    _ignored("exitall_on_error", "always on"),
)

ALLOWED: Mapping[str, Option] = {name: option for option in _OPTIONS for name in (option.name, *option.aliases)}
