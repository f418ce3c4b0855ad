"""Read the values of fio's options: each reader turns a text into values of factors. `""` is an option without a value.

Readers raise OptionRefused for a value that Sweetspot cannot run in the same way as fio.
"""

import re
from collections.abc import Callable, Mapping

from worker.contract.fio_options import RATE_LIMITS
from worker.contract.workload import Buffers, CpusPolicy, IoEngine, Pattern, Sync

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
    sizes = {factor: read_size(size) for factor, size in _directions(text, "block_size", "write_block_size").items()}
    return {"block_size": 4096} | sizes


def read_block_split(text: str) -> Values:
    """Shares that are left out divide what the others leave, as in fio: `4k/50:8k/:16k/` is `4k/50:8k/25:16k/25`."""
    splits = _directions(in_bytes(text.lower()), "block_split", "write_block_split")
    if "block_split" not in splits:
        raise OptionRefused(f"{text!r} has no split for reads")
    return {name: _with_shares(split) for name, split in splits.items()}


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
        values = _directions(text, factor, f"write_{factor}")
        return {name: value for name, value in values.items() if value != "0" or factor not in RATE_LIMITS}

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
