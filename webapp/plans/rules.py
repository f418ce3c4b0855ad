"""Parses and applies the rules of a part, which select and combine its points. One rule per line:

    except ioengine=psync; iodepth=2..64 *2      leaves out the points that meet all conditions
    only when direct=on                          leaves out the points that meet no `only when` rule
    zip block_size, iodepth                      pairs the levels in their order, instead of crossing them
    one at a time scheduler, read_ahead_kb       changes one factor at a time from the first levels, the base
    rounds until steady block_size=4k            the repeats are rounds: they end when these points are steady

Zipped factors count as one factor of `one at a time`. Such points have the factor `change`, which names the change.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from webapp.plans.factors import BASE, CHANGE, FACTORS
from webapp.plans.points import Grid, Point, decides_effect, without_effect
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
        return any(_meets(point, each) for each in self.tracked)

    @property
    def factors(self) -> frozenset[str]:
        """Factors that they name."""
        return frozenset(itertools.chain(*self.excluded, *self.only, *self.zipped, self.one_at_a_time))

    def allow(self, point: Point) -> bool:
        return not _meets_any(point, self.excluded) and (not self.only or _meets_any(point, self.only))


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


def selected(levels: Grid, rules: Rules) -> list[Point]:
    """The points of a grid that the rules allow, each once; the first factor changes slowest.

    Only factors that several levels or the rules distinguish are crossed: rules can select few of 100,000 combinations.
    """
    base: Point = {name: values[0] for name, values in levels.items()}
    crossed = {name: values for name, values in levels.items() if len(values) > 1 or name in rules.factors}
    deciding = decides_effect(base)

    @cache
    def with_effect(*decided: Value) -> Point:
        given: Point = {name: level for name, level in zip(deciding, decided, strict=True) if level is not None}
        without = without_effect(base | given)
        return {name: level for name, level in base.items() if name not in without}

    found: dict[bytes, Point] = {}
    for levels_of, change in _all(crossed, rules):
        fixed = with_effect(*map(levels_of.get, deciding))
        point = {name: level for name, level in levels_of.items() if name in fixed}
        if rules.allow(point) and (key := msgspec.json.encode(point)) not in found:
            found[key] = fixed | point | change
    return list(found.values())


def _all(levels: Grid, rules: Rules) -> Iterator[tuple[Point, Point]]:
    """All combinations, each with the factor `change` if a rule is `one at a time`."""
    axes = _axes(levels, rules.zipped)
    changing = [axis for axis in axes if not set(axis[0]).isdisjoint(rules.one_at_a_time)]
    crossed = [axis for axis in axes if axis not in changing]
    changes: list[tuple[Point, Point]] = [
        (_joined(changed), {CHANGE: name} if changing else {}) for name, changed in _changes(changing)
    ]
    for fixed in map(_joined, itertools.product(*crossed)):
        for changed, change in changes:
            yield fixed | changed, change


def _joined(levels: Iterable[Point]) -> Point:
    point: Point = {}
    for levels_of in levels:
        point |= levels_of
    return point


def _axes(levels: Grid, zipped: Sequence[Sequence[str]]) -> list[list[Point]]:
    """The levels of each factor, or of several zipped factors, as parts of points."""
    group_of = {name: group for group in zipped for name in group}
    groups = dict.fromkeys(tuple(group_of.get(name, (name,))) for name in levels)
    return [
        [dict(zip(group, values, strict=True)) for values in zip(*(levels[name] for name in group), strict=True)]
        for group in groups
    ]


def _changes(axes: Sequence[list[Point]]) -> Iterator[tuple[str, list[Point]]]:
    """The base, then each other level of each axis with the base of the others; just one without axes."""
    base = [axis[0] for axis in axes]
    yield BASE, base
    for place, axis in enumerate(axes):
        for levels in axis[1:]:
            yield _words(levels), [*base[:place], levels, *base[place + 1 :]]


def _words(levels: Point) -> str:
    return ", ".join(f"{FACTORS[name].label} {FACTORS[name].format(value)}" for name, value in levels.items())


def _meets_any(point: Point, conditions: Iterable[Condition]) -> bool:
    for condition in conditions:  # noqa: SIM110 - `any` takes twice as long, for each of 100,000 combinations
        if _meets(point, condition):
            return True
    return False


def _meets(point: Point, condition: Condition) -> bool:
    for name, levels in condition.items():  # noqa: SIM110 - as above
        if name not in point or point[name] not in levels:
            return False
    return True


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
