"""Parses the rules of a part, which select and combine its points (`plans.selection`). One rule per line:

    except ioengine=psync; iodepth=2..64 *2      leaves out the points that meet all conditions
    only when direct=on                          leaves out the points that meet no `only when` rule
    zip block_size, iodepth                      pairs the levels in their order, instead of crossing them
    one at a time scheduler, read_ahead_kb       changes one factor at a time from the first levels, the base
    rounds until steady block_size=4k            the repeats are rounds: they end when these points are steady

Zipped factors count as one factor of `one at a time`. Such points have the factor `change`, which names the change.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from webapp.plans.points import Point
from webapp.plans.values import Value

TRACK = "rounds until steady"
_RULE = re.compile(r"(except|only when|zip|one at a time|rounds until steady)\s+(.+)", re.DOTALL)
_NEXT = re.compile(r";(?=\s*[\w.]+\s*=|\s*$)")  # levels of `before` have semicolons, too

Conditions = Mapping[str, str]  # factor -> levels as typed
Condition = Mapping[str, frozenset[Value]]


class RuleRefused(ValueError):
    """Invalid text of a rule; the message says what is valid."""


@dataclass(frozen=True)
class RuleTexts:
    """The rules of a part, with levels as typed."""

    excluded: tuple[Conditions, ...] = ()
    only: tuple[Conditions, ...] = ()
    zipped: tuple[tuple[str, ...], ...] = ()
    one_at_a_time: tuple[str, ...] = ()
    tracked: tuple[Conditions, ...] = ()


@dataclass(frozen=True)
class Rules:
    """The rules of a part, with stored levels."""

    excluded: tuple[Condition, ...] = ()
    only: tuple[Condition, ...] = ()
    zipped: tuple[tuple[str, ...], ...] = ()
    one_at_a_time: tuple[str, ...] = ()
    tracked: tuple[Condition, ...] = ()  # points whose steady state ends the repeats of the part

    def tracks(self, point: Point) -> bool:
        return any(
            all(name in point and point[name] in levels for name, levels in condition.items())
            for condition in self.tracked
        )


NO_RULES = Rules()


def parse(lines: Iterable[str]) -> RuleTexts:
    """Raises RuleRefused."""
    found: dict[str, list[str]] = {"except": [], "only when": [], "zip": [], "one at a time": [], TRACK: []}
    for line in lines:
        match = _RULE.fullmatch(line.strip())
        if match is None:
            raise RuleRefused(
                f"`{line.strip()}` is not a rule. Start with `except`, `only when`, `zip`, `one at a time` or "
                f"`{TRACK}`."
            )
        found[match[1]].append(match[2])
    return RuleTexts(
        excluded=tuple(map(_conditions, found["except"])),
        only=tuple(map(_conditions, found["only when"])),
        zipped=tuple(map(_names, found["zip"])),
        one_at_a_time=tuple(name for text in found["one at a time"] for name in _names(text)),
        tracked=tuple(map(_conditions, found[TRACK])),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _conditions(text: str) -> Conditions:
    found = {}
    for condition in _NEXT.split(text):
        name, equals, levels = (piece.strip() for piece in condition.partition("="))
        if not equals or not name or not levels:
            raise RuleRefused(f"`{condition.strip()}` is not a condition; write it like `ioengine=psync`.")
        found[name] = levels
    return found
