"""Bars of a ranking: lengths in percent of an axis that begins at 0."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from webapp.pictures.axes import Scale, round_step, tick_text

TICKS = 4  # about
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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
        return f"{Scale(0.0, self.top).at(value, 0, 100):.2f}%" if self.top else "0%"

    def bar(self, value: float, low: float | None, high: float | None) -> Bar:
        if low is None or high is None:
            return Bar(self.at(value), "", "", self.at(value))
        return Bar(self.at(value), self.at(low), self.at(high), self.at(max(value, high)))

    def ticks(self, text_of: Callable[[float], str]) -> tuple[Tick, ...]:
        return tuple(Tick(self.at(value), tick_text(text_of(value))) for value in self._values())

    def _values(self) -> Iterator[float]:
        if not self.longest:
            return
        step = round_step(self.longest / TICKS, STEPS)
        count = math.floor(self.longest / step + 1e-9)
        yield from (step * place for place in range(count + 1))


def axis_of(values: Sequence[float], highs: Sequence[float | None], room: float) -> Axis:
    return Axis(max([*values, *(high for high in highs if high is not None)], default=0.0), room)
