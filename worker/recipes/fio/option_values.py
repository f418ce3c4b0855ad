"""Readers of the texts of fio's options: each returns values of factors. `""` is an option without a value.

They raise OptionRefused for a value that Sweetspot cannot run in the same way as fio.
"""

import re
from collections.abc import Callable, Mapping

from worker.contract.workload import Buffers, CpusPolicy, IoEngine, Pattern, Sync

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
    found = {factor: read_size(size) for factor, size in _directions(text, "block_size", "write_block_size").items()}
    return {"block_size": 4096} | found


def read_block_split(text: str) -> Values:
    found = _directions(text.lower(), "block_split", "write_block_split")
    for split in found.values():
        if not re.fullmatch(r"[0-9]+[km]?/[0-9]+(:[0-9]+[km]?/[0-9]+)*", split):
            raise OptionRefused(f"{split!r} is not a split like 4k/60:64k/40 with all shares")
    if "block_split" not in found:
        raise OptionRefused(f"{text!r} has no split for reads")
    return found


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
