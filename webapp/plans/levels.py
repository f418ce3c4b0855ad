"""Parses levels of a factor as people type them.

    4k                      one level
    1,10,40                 several
    512..4M *2              512, 1k, 2k … 4M: each level doubles the previous one, up to the end
    10..100 +10             10, 20 … 100
    512..4k *2, 1M          mixed

Layouts have a different syntax for several in one line: see `worker.recipes.layouts.text`.

A repeated level counts once.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webapp.plans.factors import Factor
from webapp.plans.values import LayoutLine, Value, ValueRefused

MAX_LEVELS = 1000
MAX_RANGE = 100  # characters; the expression below takes quadratic time
_RANGE = re.compile(
    r"(?P<first>[^.]+(?:\.[0-9][^.]*)?)\.\.(?P<last>(?:[^*+.]|\.(?!\.))+?)\s*(?:(?P<how>[*+])\s*(?P<by>[^*+]+))?"
)


class LevelError(ValueError):
    """Invalid text: the message names the invalid part and the correct form."""

    code = "levels_not_understood"


def count(factor: Factor, text: str) -> int:
    """The number of levels that `parse` would make, repeated ones included. Invalid pieces count as one level."""
    return sum(_count(factor, piece.strip()) for piece in text.split(","))


def _count(factor: Factor, text: str) -> int:
    try:
        if isinstance(factor.values, LayoutLine):
            return factor.values.sweep_size(text)
        return _range_of(factor, text).count if ".." in text else 1
    except ValueRefused:
        return 1


def ends(factor: Factor, text: str) -> tuple[Value, Value]:
    """The first and the last level, without those between them. Raises LevelError."""
    pieces = [piece.strip() for piece in text.split(",")]
    first, last = (_ends(factor, piece) for piece in (pieces[0], pieces[-1]))
    return first[0], last[-1]


def _ends(factor: Factor, text: str) -> tuple[Value, ...]:
    try:
        if ".." in text and not isinstance(factor.values, LayoutLine):
            return _checked(factor, _range_of(factor, text).ends)
    except ValueRefused as refusal:
        raise LevelError(f"{factor.label}: {refusal}.") from refusal
    return _piece(factor, text)


def parse(factor: Factor, text: str) -> tuple[Value, ...]:
    """The levels of `factor`, in the order written. Raises LevelError."""
    levels: dict[tuple[type, Value], Value] = {}
    for piece in text.split(","):
        if not piece.strip():
            raise LevelError(f"{factor.label}: a level is missing between two commas in `{text.strip()}`.")
        for level in _piece(factor, piece.strip()):
            levels.setdefault((type(level), level), level)
        if len(levels) > MAX_LEVELS:
            raise LevelError(f"{factor.label}: more than {MAX_LEVELS} levels. Take larger steps.")
    return tuple(levels.values())


def _piece(factor: Factor, text: str) -> tuple[Value, ...]:
    try:
        if isinstance(factor.values, LayoutLine):
            return factor.values.sweep(text)
        return _range(factor, text) if ".." in text else (factor.values.parse(text),)
    except ValueRefused as refusal:
        raise LevelError(f"{factor.label}: {refusal}.") from refusal


def _range(factor: Factor, text: str) -> tuple[Value, ...]:
    levels = _range_of(factor, text)
    if levels.count > MAX_LEVELS:
        raise ValueRefused(f"more than {MAX_LEVELS} levels; take larger steps")
    return _checked(factor, levels.numbers())


@dataclass(frozen=True)
class _Range:
    """`count` numbers from `first`: each is the previous one times or plus `by`."""

    first: int
    by: int
    multiplies: bool
    count: int

    @property
    def ends(self) -> tuple[int, int]:
        steps = self.count - 1
        return self.first, self.first * self.by**steps if self.multiplies else self.first + self.by * steps

    def numbers(self) -> Iterator[int]:
        number = self.first
        for _ in range(self.count):
            yield number
            number = number * self.by if self.multiplies else number + self.by


def _range_of(factor: Factor, text: str) -> _Range:
    match = _RANGE.fullmatch(text) if len(text) <= MAX_RANGE else None
    if match is None:
        raise ValueRefused(f"`{text}` is not understood; write a range like `1..64 *2` or `10..100 +10`")
    if not factor.numeric:
        raise ValueRefused(f"`{text}`: this factor has names, not numbers; list them: `a, b`")
    if match["how"] is None:
        difference = (match["first"].strip().strip("0") and match["first"].strip()) or "1"
        raise ValueRefused(f"`{text}` has no step; write `{text} *2` to double or `{text} +{difference}` to add")
    first, last = _number(factor, match["first"]), _number(factor, match["last"])
    if last < first:
        raise ValueRefused(f"`{text}` ends below its start")
    multiplies, by = match["how"] == "*", _step(factor, match["how"], match["by"])
    if multiplies and first < 1:
        raise ValueRefused("a range that multiplies must start above 0")
    return _Range(first, by, multiplies, _powers(first, last, by) if multiplies else (last - first) // by + 1)


def _powers(first: int, last: int, by: int) -> int:
    number, count = first, 0
    while number <= last:
        number, count = number * by, count + 1
    return count


def _number(factor: Factor, text: str) -> int:
    value = factor.values.parse(text)
    if value is None:
        raise ValueRefused(f"`{text.strip()}` cannot be the end of a range")
    return int(value)


def _step(factor: Factor, how: str, text: str) -> int:
    """The ratio of a geometric range, or the difference of an arithmetic range in the factor's notation."""
    if how == "*":
        if not re.fullmatch(r"[0-9]{1,9}", text.strip(), re.ASCII) or int(text) < 2:
            raise ValueRefused(f"`*{text.strip()}` must be a whole number of at least 2")
        return int(text)
    try:
        step = _number(factor, text)
    except ValueRefused as refusal:
        raise ValueRefused(f"the step `+{text.strip()}` does not fit, {refusal}") from refusal
    if step < 1:
        raise ValueRefused(f"`+{text.strip()}` must be greater than 0")
    return step


def _checked(factor: Factor, numbers: Iterable[int]) -> tuple[Value, ...]:
    """Check the factor's rules; numbers of settings stay text."""
    return tuple(factor.values.parse(factor.values.write(number)) for number in numbers)
