"""Formats numbers for people. `frontend/src/lib/format.ts` does the same; one file of examples tests both."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from statistics import median_low
from typing import Literal

from worker.contract.packing import BEYOND, LAST_BUCKET_NS

# The natural order of texts with numbers: disk2 before disk16.

_NUMBER = re.compile(r"([0-9]{1,18})")


def natural_key(text: str) -> tuple[str | int, ...]:
    """A key to sort by. Texts and numbers alternate, so that numbers are compared only with numbers."""
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(_NUMBER.split(text)))


NOTHING = "–"
# The formatters of metrics, by name. `entered`: with the unit of the metric.
ShownAs = Literal[
    "iops", "bytes_per_s", "latency", "seconds", "number", "percent", "celsius", "watts", "entered"
]  # fmt: skip
_COUNTS = ((1, ""), (10**3, "k"), (10**6, "M"), (10**9, "G"))
_BYTES = ((1, "B"), (10**3, "kB"), (10**6, "MB"), (10**9, "GB"), (10**12, "TB"), (10**15, "PB"))
_BINARY_BYTES = ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB"))
_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)
_NANOSECONDS = ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s"))


def _rounded(magnitude: float) -> Decimal:
    """Round the double's exact value to three significant digits, halves up, as JavaScript's toPrecision does."""
    return _THREE_DIGITS.create_decimal_from_float(magnitude)


def significant(value: float) -> str:
    """Three significant digits, never an exponent, thousands grouped: 0.0123, 45.6, 1,230, 12,300."""
    if value == 0:
        return "0"
    rounded = _rounded(abs(value))
    decimals = max(0, 2 - rounded.adjusted())
    return f"{'−' if value < 0 else ''}{rounded:,.{decimals}f}"


def _with_unit(value: float | None, steps: Sequence[tuple[int, str]]) -> str:
    """The number in the largest unit in which it is at least 1 after rounding."""
    if value is None:
        return NOTHING
    magnitude = abs(value)
    factor, unit = next((step for step in reversed(steps) if _reaches(magnitude, step[0])), steps[0])
    return f"{significant(value / factor)} {unit}".rstrip()


def _reaches(magnitude: float, factor: int) -> bool:
    """Whether the value is at least 1 after rounding. 0.9995 is the smallest number that rounds to 1."""
    return magnitude >= factor or (magnitude >= 0.99 * factor and _rounded(magnitude / factor) >= 1)


@dataclass(frozen=True)
class Scale:
    """One unit for a whole column of a table."""

    factor: int
    unit: str

    def text(self, value: float) -> str:
        return significant(value / self.factor)


_STEPS = {"iops": _COUNTS, "bytes_per_s": _BYTES, "latency": _NANOSECONDS}
_OWN_UNITS = {"seconds": "s", "percent": "%", "celsius": "°C", "watts": "W"}


def common_scale(values: Iterable[float], shown_as: str) -> Scale:
    """The unit that fits the median of the values; their own unit for seconds and numbers."""
    known = sorted(abs(value) for value in values if value)
    steps = _STEPS.get(shown_as) or ((1, _OWN_UNITS.get(shown_as, "")),)
    middle = median_low(known) if known else 0.0
    return Scale(*next((step for step in reversed(steps) if _reaches(middle, step[0])), steps[0]))


def iops(value: float | None) -> str:
    """IOPS as fio writes them: 812, 45.6k, 1.23M."""
    return _with_unit(value, _COUNTS).replace(" ", "")


def count(value: int | None) -> str:
    """Counts of I/Os: 16, 812, 45.6k."""
    return str(value) if value is not None and abs(value) < 1000 else iops(value)


def seconds_of_ms(value_ms: float | None) -> str:
    """0.0490 s, 3.00 s."""
    return seconds(None if value_ms is None else value_ms / 1000)


def bytes_decimal(value: float | None) -> str:
    """Amounts and drive capacities: 45.6 kB, 1.92 TB."""
    return _with_unit(value, _BYTES)


def bytes_growth(value: float) -> str:
    """+45.6 kB, −1.2 MB."""
    return f"{'−' if value < 0 else '+'}{bytes_decimal(abs(value))}"


def bytes_per_s(value: float | None) -> str:
    return NOTHING if value is None else f"{bytes_decimal(value)}/s"


def bytes_binary(value: float | None) -> str:
    """Block and memory sizes: 512 B, 4 KiB, 1.5 MiB."""
    number, _, unit = _with_unit(value, _BINARY_BYTES).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}".rstrip()


def latency(value_ns: float | None) -> str:
    """fio's last bucket holds everything above 17 s."""
    if value_ns is not None and round(value_ns) == LAST_BUCKET_NS:
        return BEYOND
    return _with_unit(value_ns, _NANOSECONDS)


def seconds(value: float | None) -> str:
    """12.3 s."""
    return NOTHING if value is None else f"{significant(value)} s"


def number(value: float | None) -> str:
    return NOTHING if value is None else significant(value)


def entered(value: float | None) -> str:
    """Whole numbers as entered, others with three significant digits."""
    if value is not None and float(value).is_integer() and abs(value) < 1_000_000:
        return f"{value:,.0f}"
    return number(value)


def clock(value_s: float) -> str:
    """2:05, 1:02:05: minutes and seconds, after an hour with hours."""
    minutes, seconds = divmod(round(abs(value_s)), 60)
    sign = "−" if value_s < 0 and (minutes or seconds) else ""
    return f"{sign}{minutes}:{seconds:02}" if minutes < 60 else f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def duration(value_s: float | None) -> str:
    """3 s, 2 min 05 s, 1 h 03 min, 2 d 4 h; whole seconds."""
    if value_s is None:
        return NOTHING
    seconds = max(0, int(value_s))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    if seconds < 86400:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 86400} d {seconds % 86400 // 3600} h"


def estimated_duration(value_s: float) -> str:
    """≈ 40 s, ≈ 2 min, ≈ 1 h 03 min: rounded to minutes from one minute on."""
    rounded_s = value_s if value_s < 60 else round(value_s / 60) * 60
    return f"≈ {duration(rounded_s).removesuffix(' 00 s')}"


def ratio(value: float | None) -> str:
    """The ratio to a baseline: ×2.60, ×12.3. Two decimals below 10, but three digits below 0.005: ×0.00312."""
    if value is None:
        return NOTHING
    if value == 0 or 0.005 <= value < 9.995:
        return f"×{Decimal(value).quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)}"
    return f"×{significant(value)}"


def celsius(value: float | None) -> str:
    return NOTHING if value is None else f"{significant(value)} °C"


def watts(value: float | None) -> str:
    return NOTHING if value is None else f"{significant(value)} W"


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{significant(value)} %"
