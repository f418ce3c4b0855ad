"""Scales and ticks of all pictures. Pure."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_ZEROS = re.compile(r"\.0+(?![0-9])|(?<=[0-9])(\.[0-9]*?[1-9])0+(?![0-9])")
WIDE = 4.0  # levels that span this factor have a logarithmic axis


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """0 at the lower end, 1 at the upper end; values beyond are put at the end. 0.5 without a range."""
        if not self.high > self.low:
            return 0.5
        if self.logarithmic:
            return _clamped(math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else 0.0)
        return _clamped((value - self.low) / (self.high - self.low))

    def at(self, value: float, start: float, end: float) -> float:
        """The place between those of the lower and the upper end."""
        return start + self.share(value) * (end - start)


def _clamped(share: float) -> float:
    return min(1.0, max(0.0, share))


@dataclass(frozen=True, kw_only=True)
class Axis(Scale):
    label: str
    ticks: tuple[tuple[float, str], ...]


def tick_text(text: str) -> str:
    """Without digits that say nothing on an axis: 10k for 10.0k, ×2 for ×2.00."""
    return _ZEROS.sub(lambda match: match[1] or "", text)


def round_step(least: float, factors: Sequence[float] = (1, 2, 5, 10)) -> float:
    """The smallest of these factors times a power of ten that is not below `least`, apart from rounding."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in factors if power * factor >= least * 0.99)


def round_values(low: float, high: float, most: int) -> list[float]:
    """At most `most` values from `low` to `high` for a logarithmic axis: 1, 2 and 5 times powers of ten; of a wide
    range 1 and 3 times, or powers alone."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        inside = [value for power in powers for factor in factors if low <= (value := factor * 10.0**power) <= high]
        if len(inside) <= most:
            break
    return inside[:: math.ceil(len(inside) / most) or 1]


def levels_axis(label: str, levels: Sequence[tuple[str, float | None]], *, evenly: bool) -> tuple[Axis, list[float]]:
    """`levels`: texts and numbers. Numbers on a linear axis, or a logarithmic one if they span a factor of four; names
    one after the other. Also returns the place of each level."""
    numbers = [number for _, number in levels if number is not None]
    if evenly or len(numbers) < max(len(levels), 2) or 0 in numbers:
        places = [float(place) for place in range(len(levels))]
        ticks = tuple((place, text) for place, (text, _) in zip(places, levels, strict=True))
        return Axis(low=-0.5, high=len(levels) - 0.5, label=label, ticks=ticks), places
    ticks = tuple((number, text) for number, (text, _) in zip(numbers, levels, strict=True))
    wide = min(numbers) > 0 and max(numbers) / min(numbers) >= WIDE
    room = 2**0.25 if wide else 1.0
    return Axis(
        low=min(numbers) / room, high=max(numbers) * room, logarithmic=wide, label=label, ticks=ticks
    ), numbers  # fmt: skip


def value_axis(label: str, values: Sequence[float], text: Callable[[float], str], *, logarithmic: bool = False) -> Axis:
    """From zero, or over whole powers of ten."""
    above = [value for value in values if value > 0]
    if logarithmic and above:
        low, high = (10.0**edge for edge in (math.floor(math.log10(min(above))), math.ceil(math.log10(max(above)))))
        high = high if high > low else low * 10
        count = round(math.log10(high / low))
        powers = (low * 10.0**n for n in range(0, count + 1, max(1, count // 6)))
        ticks = tuple((power, tick_text(text(power))) for power in powers)
        return Axis(low=low, high=high, logarithmic=True, label=label, ticks=ticks)
    high = max(values, default=0.0) or 1.0
    step = round_step(high / 5)
    ticks = tuple((n * step, tick_text(text(n * step))) for n in range(math.ceil(high / step - 1e-9) + 1))
    return Axis(low=0.0, high=ticks[-1][0], label=label, ticks=ticks)


def range_axis(label: str, values: Sequence[float], text: Callable[[float], str]) -> Axis:
    """Around the values, with round ticks; it need not begin at zero, so that small changes are visible."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.1 or high * 0.05, high * 0.01)
    low, high = max(0.0, low - room), high + room
    step = round_step((high - low) / 6) if high > low else 1.0
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    return Axis(low=low, high=high, label=label, ticks=tuple((n * step, tick_text(text(n * step))) for n in numbers))


def time_axis(label: str, first: float, last: float, text: Callable[[float], str], steps: Sequence[float]) -> Axis:
    """`steps`: usual distances of ticks, in the unit of the times; the first one that leaves at most eight is used."""
    last = last if last > first else first + steps[0]
    step = next((step for step in steps if (last - first) / step <= 8), math.ceil((last - first) / 8))
    numbers = range(math.ceil(first / step), math.floor(last / step) + 1)
    return Axis(low=first, high=last, label=label, ticks=tuple((n * step, text(n * step)) for n in numbers))
