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

from webapp.plans.factors import Factor
from webapp.plans.values import LayoutLine, Value, ValueRefused

MAX_LEVELS = 1000
_RANGE = re.compile(
    r"(?P<first>[^.]+(?:\.[0-9][^.]*)?)\.\.(?P<last>(?:[^*+.]|\.(?!\.))+?)\s*(?:(?P<how>[*+])\s*(?P<by>[^*+]+))?"
)


class LevelError(ValueError):
    """Invalid text: the message names the invalid part and the correct form."""

    code = "levels_not_understood"


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
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueRefused(f"`{text}` is not understood; write a range like `1..64 *2` or `10..100 +10`")
    if not factor.numeric:
        raise ValueRefused(f"`{text}`: this factor has names, not numbers; list them: `a, b`")
    if match["how"] is None:
        by = (match["first"].strip().strip("0") and match["first"].strip()) or "1"
        raise ValueRefused(f"`{text}` has no step; write `{text} *2` to double or `{text} +{by}` to add")
    first, last = _number(factor, match["first"]), _number(factor, match["last"])
    if last < first:
        raise ValueRefused(f"`{text}` ends below its start")
    return _checked(factor, _steps(first, last, match["how"], _step(factor, match["how"], match["by"])))


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


def _steps(first: int, last: int, how: str, by: int) -> list[int]:
    if how == "*" and first < 1:
        raise ValueRefused("a range that multiplies must start above 0")
    values = [first]
    while (following := values[-1] * by if how == "*" else values[-1] + by) <= last:
        values.append(following)
        if len(values) > MAX_LEVELS:
            raise ValueRefused(f"more than {MAX_LEVELS} levels; take larger steps")
    return values


def _checked(factor: Factor, numbers: list[int]) -> tuple[Value, ...]:
    """Check the factor's rules; numbers of settings stay text."""
    return tuple(factor.values.parse(factor.values.write(number)) for number in numbers)
