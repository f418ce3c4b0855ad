"""Bars of a ranking: lengths in percent of an axis that begins at 0."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

TICKS = 4  # about
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_ZEROS = re.compile(r"\.0+(?![0-9])|(?<=\.[1-9])0+(?![0-9])")  # at the end of a number: 2.00k, 2.50 ms


@dataclass(frozen=True)
class Tick:
    at: str  # percent, as SVG wants it
    text: str


@dataclass(frozen=True)
class Bar:
    """`low` and `high` are "" without an interval; `end` is where the value stands."""

    length: str
    low: str
    high: str
    end: str


@dataclass(frozen=True)
class Axis:
    longest: float  # bar or whisker
    room: float  # the axis is so many times as long, for the value at the end of a bar

    @property
    def top(self) -> float:
        """The value at 100 %."""
        return self.longest * self.room

    def at(self, value: float) -> str:
        return f"{100 * value / self.top:.2f}%" if self.top else "0%"

    def bar(self, value: float, low: float | None, high: float | None) -> Bar:
        if low is None or high is None:
            return Bar(self.at(value), "", "", self.at(value))
        return Bar(self.at(value), self.at(low), self.at(high), self.at(max(value, high)))

    def ticks(self, text_of: Callable[[float], str]) -> tuple[Tick, ...]:
        return tuple(Tick(self.at(value), _ZEROS.sub("", text_of(value))) for value in self._values())

    def _values(self) -> Iterator[float]:
        if not self.longest:
            return
        power = 10 ** math.floor(math.log10(self.longest / TICKS))
        step = next(size * power for size in _STEPS if size * power * TICKS >= self.longest * 0.99)
        count = math.floor(self.longest / step + 1e-9)
        yield from (step * place for place in range(count + 1))


def axis_of(values: Sequence[float], highs: Sequence[float | None], room: float) -> Axis:
    return Axis(max([*values, *(high for high in highs if high is not None)], default=0.0), room)
