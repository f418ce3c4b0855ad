"""Kinds of factor values: parsing, storage and display.

Sizes are binary (k, K, KiB are 1,024 bytes), as in fio's default of kb_base=1024. Stored values are plain JSON: bytes,
seconds and counts as integers, switches as booleans, names as text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from worker.contract.layouts import Layout
from worker.contract.workload import Confidence, Settled, SteadyRounds, StopRule
from worker.recipes.base import parse_stop_rule, write_stop_rule
from worker.recipes.layouts.text import parse, sweep, sweep_size, write

Value = str | int | bool | None
T = TypeVar("T")

_SIZE_UNITS = {"": 1, "b": 1} | {
    text: 1024**power for power, letter in enumerate("kmgtp", start=1) for text in (letter, f"{letter}b", f"{letter}ib")
}
_TIME_UNITS = {
    "": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600,
    "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
_MICROSECOND_UNITS = {"": 1, "us": 1, "usec": 1, "ms": 1000, "msec": 1000, "s": 10**6, "sec": 10**6, "m": 60 * 10**6}
_NUMBER_UNIT = re.compile(r"([0-9]{1,19})(\.[0-9]{1,6})?\s*([a-z]*)", re.IGNORECASE | re.ASCII)


class ValueRefused(ValueError):
    """Invalid text for this kind of value; the message says what is valid."""


class Values(Protocol):
    """A kind of values."""

    @property
    def numeric(self) -> bool: ...  # ordered numbers, which can be the x axis of a chart

    def parse(self, text: str) -> Value: ...  # raises ValueRefused

    def format(self, value: Value) -> str: ...  # as people read it

    def write(self, value: Value) -> str: ...  # as `parse` reads it


def _scaled(text: str, units: Mapping[str, int], example: str) -> int:
    """`1.5M` as a whole number of the base unit."""
    match = _NUMBER_UNIT.fullmatch(text.strip())
    unit = units.get(match[3].lower()) if match else None
    if match is None or unit is None:
        raise ValueRefused(f"`{text.strip()}` is not understood; write it like {example}")
    fraction = match[2] or ""
    places: int = 10 ** max(0, len(fraction) - 1)
    scaled = int(match[1] + fraction[1:]) * unit
    if scaled % places:
        raise ValueRefused(f"`{text.strip()}` is not a whole number")
    return scaled // places


def _in_range(value: int, low: int, high: int, shown: "Values") -> int:
    if not low <= value <= high:
        raise ValueRefused(f"{shown.format(value)} is outside {shown.format(low)} to {shown.format(high)}")
    return value


@dataclass(frozen=True)
class Size:
    """Bytes. With `whole`, None means the whole device."""

    low: int = 512
    high: int = 2**60
    multiple: int = 512
    whole: str = ""  # text for None; "" if None is not allowed
    suffix: str = ""  # shown after the unit
    numeric: bool = True

    def parse(self, text: str) -> Value:
        if self.whole and text.strip().lower() in ("whole", self.whole):
            return None
        value = _in_range(_scaled(text, _SIZE_UNITS, "`512`, `4k` or `1M`"), self.low, self.high, self)
        if value % self.multiple:
            raise ValueRefused(f"{self.format(value)} is not a multiple of {self.format(self.multiple)}")
        return value

    def format(self, value: Value) -> str:
        if not isinstance(value, int):
            return self.whole
        unit, name = _largest_divisor(value)
        return f"{value // unit} {name}{self.suffix}"

    def write(self, value: Value) -> str:
        if not isinstance(value, int):
            return "whole"
        unit, name = _largest_divisor(value)
        return f"{value // unit}{name[0].replace('K', 'k') if unit > 1 else ''}"


def _largest_divisor(value: int) -> tuple[int, str]:
    """The largest binary unit that leaves a whole number: 1536 KiB, not 1.5 MiB."""
    names = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    fits = [power for power in range(len(names)) if value and value % 1024**power == 0]
    power = fits[-1] if fits else 0
    return 1024**power, names[power]


BLOCK = Size(low=1, high=16 * 1024 * 1024, multiple=1)  # buffered I/O may have any block size


@dataclass(frozen=True)
class Duration:
    """Seconds: `3s`, `10m`, `1h`, or a plain number of seconds."""

    low: int = 0
    high: int = 30 * 86400
    numeric: bool = True

    def parse(self, text: str) -> int:
        return _in_range(_scaled(text, _TIME_UNITS, "`3s`, `10m` or `1h`"), self.low, self.high, self)

    def format(self, value: Value) -> str:
        seconds = int(value or 0)
        for unit, name in ((3600, "h"), (60, "min")):
            if seconds and seconds % unit == 0:
                return f"{seconds // unit} {name}"
        return f"{seconds} s"

    def write(self, value: Value) -> str:
        return f"{int(value or 0)}s"


@dataclass(frozen=True)
class Microseconds:
    """Microseconds: `100us`, `10ms`, `1s`, or a plain number of microseconds, as in fio."""

    low: int = 0
    high: int = 86_400_000_000
    numeric: bool = True

    def parse(self, text: str) -> Value:
        return _in_range(_scaled(text, _MICROSECOND_UNITS, "`100us`, `10ms` or `1s`"), self.low, self.high, self)

    def format(self, value: Value) -> str:
        number = int(value or 0)
        for unit, name in ((10**6, "s"), (1000, "ms")):
            if number and number % unit == 0:
                return f"{number // unit} {name}"
        return f"{number} µs"

    def write(self, value: Value) -> str:
        return self.format(value).replace(" ", "").replace("µ", "u")


@dataclass(frozen=True)
class Count:
    """A whole number; `suffix` is shown after it, without its plural of 1."""

    low: int = 0
    high: int = 2**31
    suffix: str = ""
    numeric: bool = True

    def parse(self, text: str) -> Value:
        plain = text.strip()
        for suffix in (self.suffix.strip(), self.suffix.strip().removesuffix("s")):
            plain = plain.removesuffix(suffix).strip()
        if not re.fullmatch(r"[0-9]{1,19}", plain, re.ASCII):
            raise ValueRefused(f"`{text.strip()}` is not a whole number")
        return _in_range(int(plain), self.low, self.high, self)

    def format(self, value: Value) -> str:
        return f"{value}{self.suffix.removesuffix('s') if value == 1 else self.suffix}"

    def write(self, value: Value) -> str:
        return str(value)


@dataclass(frozen=True)
class Whole:
    """A whole number that may be below 0."""

    low: int
    high: int
    numeric: bool = True

    def parse(self, text: str) -> Value:
        if not re.fullmatch(r"-?[0-9]{1,19}", text.strip(), re.ASCII):
            raise ValueRefused(f"`{text.strip()}` is not a whole number")
        return _in_range(int(text), self.low, self.high, self)

    def format(self, value: Value) -> str:
        return str(value)

    def write(self, value: Value) -> str:
        return str(value)


@dataclass(frozen=True)
class Choice:
    """One of a fixed set of names."""

    names: tuple[str, ...]
    shown: Mapping[str, str] = field(default_factory=dict)  # labels of unclear names
    numeric: bool = False

    def parse(self, text: str) -> Value:
        if text.strip() not in self.names:
            raise ValueRefused(f"`{text.strip()}` is not one of {', '.join(self.names)}")
        return text.strip()

    def format(self, value: Value) -> str:
        return self.shown.get(str(value), str(value))

    def write(self, value: Value) -> str:
        return str(value)


@dataclass(frozen=True)
class Switch:
    """On or off."""

    numeric: bool = False

    def parse(self, text: str) -> Value:
        word = text.strip().lower()
        if word in ("on", "yes", "true", "1"):
            return True
        if word in ("off", "no", "false", "0"):
            return False
        raise ValueRefused(f"`{text.strip()}` is neither on nor off")

    def format(self, value: Value) -> str:
        return "on" if value else "off"

    def write(self, value: Value) -> str:
        return self.format(value)


@dataclass(frozen=True)
class Token:
    """A kernel value, stored as typed: `none`, `mq-deadline`, `128`."""

    pattern: str = r"[A-Za-z0-9_.:+-]{1,60}"
    example: str = "`none` or `mq-deadline`"
    unit: str = ""
    numeric: bool = False

    def parse(self, text: str) -> Value:
        if not re.fullmatch(self.pattern, text.strip(), re.ASCII):
            raise ValueRefused(f"`{text.strip()}` is not understood; write it like {self.example}")
        return text.strip()

    def format(self, value: Value) -> str:
        return f"{value}{self.unit}"

    def write(self, value: Value) -> str:
        return str(value)


@dataclass(frozen=True)
class LayoutLine:
    """A layout, stored as `recipes.layouts.write` formats it. One text may describe several layouts."""

    numeric: bool = False

    def parse(self, text: str) -> Value:
        return write(_understood(parse, text))

    def sweep(self, text: str) -> tuple[Value, ...]:
        """All layouts in a text. Raises ValueRefused."""
        return tuple(map(write, _understood(sweep, text)))

    def sweep_size(self, text: str) -> int:
        """The number of layouts in a text, equal ones included. Raises ValueRefused."""
        return _understood(sweep_size, text)

    def layout(self, value: Value) -> Layout | None:
        """A stored value as the contract's layout; None if there is none."""
        return parse(str(value)) if value else None

    def format(self, value: Value) -> str:
        return str(value)

    def write(self, value: Value) -> str:
        return str(value)


def _understood(read: Callable[[str], T], text: str) -> T:
    try:
        return read(text.strip())
    except ValueError as error:
        raise ValueRefused(str(error)) from error


@dataclass(frozen=True)
class Multiple:
    """A multiple, stored as hundredths: `2x` is 200, `0.5x` is 50."""

    low: int = 1
    high: int = 100_000
    numeric: bool = True

    def parse(self, text: str) -> Value:
        plain = text.strip().removesuffix("x").removesuffix("×").strip()
        if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,2})?", plain, re.ASCII):
            raise ValueRefused(f"`{text.strip()}` is not understood; write it like `2x` or `0.5x`")
        return _in_range(round(float(plain) * 100), self.low, self.high, self)

    def format(self, value: Value) -> str:
        return f"{int(value or 0) / 100:g} ×"

    def write(self, value: Value) -> str:
        return f"{int(value or 0) / 100:g}x"


@dataclass(frozen=True)
class BlockRange:
    """fio's bsrange: `4k-64k`. Stored in that form with the shortest sizes."""

    block: Size = BLOCK
    numeric: bool = False

    def parse(self, text: str) -> Value:
        low, dash, high = text.partition("-")
        if not dash:
            raise ValueRefused(f"`{text.strip()}` is not understood; write a range like `4k-64k`")
        return f"{self.block.write(self.block.parse(low))}-{self.block.write(self.block.parse(high))}"

    def ends(self, value: Value) -> tuple[int, int]:
        """The smallest and the largest block of a stored range, in bytes."""
        low, high = (int(self.block.parse(end) or 0) for end in str(value).split("-"))
        return low, high

    def format(self, value: Value) -> str:
        return " to ".join(map(self.block.format, self.ends(value)))

    def write(self, value: Value) -> str:
        return str(value)


def number_token(unit: str = "", *, negative: bool = False) -> Token:
    """A setting with whole numbers, stored as text as in the kernel's files."""
    return Token(
        pattern=r"-?(0|[1-9][0-9]{0,9})" if negative else r"0|[1-9][0-9]{0,9}",
        example="`128`",
        unit=unit,
        numeric=True,
    )


@dataclass(frozen=True)
class BlockSplit:
    """fio's bssplit: `4k/60:8k/40`; the shares add up to 100 %. Stored in that form with the shortest sizes."""

    block: Size = BLOCK
    numeric: bool = False

    def parse(self, text: str) -> Value:
        parts = [self._part(part) for part in text.strip().split(":")]
        if len(parts) > 64:
            raise ValueRefused("a split has at most 64 parts")
        total = sum(percent for _, percent in parts)
        if total != 100:
            raise ValueRefused(f"the shares of `{text.strip()}` add up to {total} %, not 100 %")
        return ":".join(f"{self.block.write(size)}/{percent}" for size, percent in parts)

    def _part(self, text: str) -> tuple[Value, int]:
        size, slash, percent = text.partition("/")
        if not slash or not re.fullmatch(r"[1-9][0-9]{0,2}", percent.strip(), re.ASCII):
            raise ValueRefused(f"`{text.strip()}` is not understood; write a split like `4k/60:8k/40`")
        return self.block.parse(size), int(percent)

    def shares(self, value: Value) -> tuple[tuple[int, int], ...]:
        """(bytes, percent) of each part of a stored split."""
        parts = [self._part(part) for part in str(value).split(":")] if value else []
        return tuple((int(size or 0), percent) for size, percent in parts)

    def format(self, value: Value) -> str:
        return ", ".join(f"{percent} % {self.block.format(size)}" for size, percent in self.shares(value))

    def write(self, value: Value) -> str:
        return str(value)


# The values of the factor `stop`.

LEAST_RUNTIME_S, LEAST_SHARE = 5, 20  # s; a 20th of the maximum time


def least_runtime_s(runtime_s: int) -> int:
    """The time before which a stop rule ends no trial, if the plan names none: somebody who allows hours wants to see
    changes within hours."""
    return max(LEAST_RUNTIME_S, runtime_s // LEAST_SHARE)


@dataclass(frozen=True)
class StopRuleText:
    """A stop rule, stored as `recipes.stop_rules.write` formats it."""

    numeric: bool = False

    def parse(self, text: str) -> Value:
        try:
            return write_stop_rule(parse_stop_rule(text))
        except ValueError as error:
            raise ValueRefused(str(error)) from error

    def rule(self, value: Value) -> StopRule | None:
        """A stored value as the contract's rule; None if there is none."""
        return parse_stop_rule(str(value)) if value else None

    def format(self, value: Value) -> str:
        match self.rule(value):
            case Confidence(percent=percent):
                return f"mean known within ±{percent:g} %"
            case SteadyRounds(round_s=seconds):
                return f"steady after SNIA, rounds of {seconds} s"
            case Settled(hold_s=seconds):
                return f"settled for {seconds} s"
        return ""

    def write(self, value: Value) -> str:
        return str(value)
