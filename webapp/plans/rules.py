"""The points of a grid that its rules allow. They are counted without being made, and made only if they are few. Pure.

A grid is a product of **axes**: a factor with several levels, several zipped factors, or all factors of `one at a time`
together. The **deciding** axes fix which other factors have an effect, and how many targets a trial uses. With their
levels fixed, every other axis has a fixed number of distinct levels, because levels that differ only in factors without
effect count once. So the number of points is a sum of products.

Conditions of rules are checked at combinations of the deciding axes and of the axes that a condition names, in arrays
of booleans. The other axes multiply. Callers limit `decisions` and `combinations` before they read anything else.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webapp.plans.factors import AT_ONCE, BASE, CHANGE, FACTORS, HOSTS_AT_ONCE, STREAMS, STREAMS_ON, stream_and_factor
from webapp.plans.points import Grid, Point, decides_effect, hosts_at_once, targets_at_once, without_effect
from webapp.plans.values import Value

# Parses the rules of a part, which select and combine its points (`plans.rules`). One rule per line:
#
#     except ioengine=psync; iodepth=2..64 *2      leaves out the points that meet all conditions
#     only when direct=on                          leaves out the points that meet no `only when` rule
#     zip block_size, iodepth                      pairs the levels in their order, instead of crossing them
#     one at a time scheduler, read_ahead_kb       changes one factor at a time from the first levels, the base
#     rounds until steady block_size=4k            the repeats are rounds: they end when these points are steady
#
# Zipped factors count as one factor of `one at a time`. Such points have the factor `change`, which names the change.

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
    texts: dict[str, list[str]] = {"except": [], "only when": [], "zip": [], "one at a time": [], TRACK: []}
    for line in lines:
        match = _RULE.fullmatch(line.strip())
        if match is None:
            raise RuleRefused(
                f"`{line.strip()}` is not a rule. Start with `except`, `only when`, `zip`, `one at a time` or "
                f"`{TRACK}`."
            )
        texts[match[1]].append(match[2])
    return RuleTexts(
        excluded=tuple(map(_conditions, texts["except"])),
        only=tuple(map(_conditions, texts["only when"])),
        zipped=tuple(map(_names, texts["zip"])),
        one_at_a_time=tuple(name for text in texts["one at a time"] for name in _names(text)),
        tracked=tuple(map(_conditions, texts[TRACK])),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _conditions(text: str) -> Conditions:
    levels_by_factor = {}
    for condition in _NEXT.split(text):
        name, equals, levels = (piece.strip() for piece in condition.partition("="))
        if not equals or not name or not levels:
            raise RuleRefused(f"`{condition.strip()}` is not a condition; write it like `ioengine=psync`.")
        levels_by_factor[name] = levels
    return levels_by_factor


_OF_TARGETS = (AT_ONCE, HOSTS_AT_ONCE, STREAMS, STREAMS_ON)
Booleans = NDArray[np.bool_]


class AtOnce(NamedTuple):
    """Targets of each host, and hosts, that a trial uses at once."""

    targets: int
    hosts: int

    @property
    def all_targets(self) -> int:
        return self.targets * self.hosts


@dataclass(frozen=True, eq=False)
class _Axis:
    """`levels` are parts of points. `changes` are the names of the changes of `one at a time`, one for each level."""

    factors: tuple[str, ...]
    levels: Sequence[Point]
    changes: Sequence[str] = ()


class _Decision(NamedTuple):
    """One combination of deciding levels."""

    numbers: tuple[int, ...]  # of the level of each deciding axis
    effective: Point  # its levels that have an effect
    base: Point  # first levels of all factors that have an effect; decisions share it

    def level(self, name: str) -> Value:
        return self.effective[name] if name in self.effective else self.base[name]


class _Condition(NamedTuple):
    """A condition in two parts: factors whose level a decision fixes, and the named axes."""

    factors: Sequence[str]
    decided: Condition
    met: Booleans  # where the named axes meet it


class Selection:
    """The selected points of a grid, the first factor slowest, each once."""

    def __init__(self, levels: Grid, rules: Rules) -> None:
        self._base: Point = {name: values[0] for name, values in levels.items()}
        self._rules = rules
        self._axes = _axes(levels, rules)
        decides = {*decides_effect(self._base), *_OF_TARGETS}
        named = set[str]().union(*rules.excluded, *rules.only, *rules.tracked)
        self._deciding = [axis for axis in self._axes if not decides.isdisjoint(axis.factors)]
        self._named = [axis for axis in self._axes if axis not in self._deciding and not named.isdisjoint(axis.factors)]
        self._free = [axis for axis in self._axes if axis not in (*self._deciding, *self._named)]
        self._distinct: dict[tuple[_Axis, frozenset[str]], list[tuple[int, Point]]] = {}

    @property
    def decisions(self) -> int:
        """Combinations of deciding levels, times the streams whose factors each of them takes or leaves out."""
        streams = {stream_and_factor(name)[0] for name in self._base} - {""}
        return math.prod([max(1, len(streams)), *(len(axis.levels) for axis in self._deciding)])

    @property
    def combinations(self) -> int:
        """Combinations at which conditions are checked."""
        return math.prod(len(axis.levels) for axis in (*self._deciding, *self._named))

    @cached_property
    def by_targets(self) -> Mapping[AtOnce, int]:
        """The number of points by what their trials use at once."""
        counts: Counter[AtOnce] = Counter()
        for decision, allowed in self._allowed:
            levels = {name: decision.level(name) for name in _OF_TARGETS if name in decision.base}
            free = math.prod(len(self._distinct_levels(axis, decision)) for axis in self._free)
            counts[AtOnce(targets_at_once(levels), hosts_at_once(levels))] += int(np.count_nonzero(allowed)) * free
        return counts

    def points(self) -> list[Point]:
        """Make all points. First look at their number in `by_targets`."""
        numbered = [each for decision, allowed in self._allowed for each in self._points(decision, allowed)]
        numbered.sort(key=lambda each: each[0])
        return [point for _, point in numbered]

    def tracks_any(self) -> bool:
        """Whether a rule tracks one of the points."""
        tracked = self._conditions(self._rules.tracked)
        return any(bool((allowed & self._met(tracked, decision)).any()) for decision, allowed in self._allowed)

    @cached_property
    def _allowed(self) -> list[tuple[_Decision, Booleans]]:
        """Each decision with the distinct combinations of the named axes that the rules allow."""
        excluded, only = self._conditions(self._rules.excluded), self._conditions(self._rules.only)
        rows = []
        for decision in self._decided():
            allowed = self._distinct_combinations(decision)
            if excluded:
                allowed = allowed & ~self._met(excluded, decision)
            if only:
                allowed = allowed & self._met(only, decision)
            if allowed.any():
                rows.append((decision, allowed))
        return rows

    def _decided(self) -> Iterator[_Decision]:
        """Distinct combinations of deciding levels."""
        seen = set()
        names = [name for name in decides_effect(self._base) if name in self._base]
        bases: dict[frozenset[str], Point] = {}  # by the factors without effect
        silent: dict[tuple[Value, ...], frozenset[str]] = {}  # factors without effect, by the levels of `names`
        for numbers in itertools.product(*(range(len(axis.levels)) for axis in self._deciding)):
            levels: Point = {}
            for axis, number in zip(self._deciding, numbers, strict=True):
                levels |= axis.levels[number]
            key = tuple([levels[name] if name in levels else self._base[name] for name in names])
            if key not in silent:
                silent[key] = without_effect(self._base | dict(zip(names, key, strict=True)))
            without = silent[key]
            if without not in bases:
                bases[without] = {name: level for name, level in self._base.items() if name not in without}
            effective = {name: level for name, level in levels.items() if name not in without}
            if (same := (without, tuple(effective.items()))) not in seen:
                seen.add(same)
                yield _Decision(numbers, effective, bases[without])

    def _distinct_levels(self, axis: _Axis, decision: _Decision) -> list[tuple[int, Point]]:
        """The levels that differ in a factor with an effect, without the other factors; each with its number."""
        effective = frozenset([name for name in axis.factors if name in decision.base])
        if (axis, effective) not in self._distinct:
            firsts: dict[tuple[Value, ...], tuple[int, Point]] = {}
            for number, levels in enumerate(axis.levels):
                level = {name: value for name, value in levels.items() if name in effective}
                level |= {CHANGE: axis.changes[number]} if axis.changes else {}
                firsts.setdefault(tuple([levels[name] for name in level if name != CHANGE]), (number, level))
            self._distinct[axis, effective] = list(firsts.values())
        return self._distinct[axis, effective]

    def _distinct_combinations(self, decision: _Decision) -> Booleans:
        combinations = np.ones([len(axis.levels) for axis in self._named], dtype=bool)
        for place, axis in enumerate(self._named):
            distinct = self._distinct_levels(axis, decision)
            if len(distinct) < len(axis.levels):
                table = np.zeros(len(axis.levels), dtype=bool)
                table[[number for number, _ in distinct]] = True
                combinations &= self._along(table, place)
        return combinations

    def _conditions(self, conditions: Iterable[Condition]) -> list[_Condition]:
        return [self._condition(condition) for condition in conditions]

    def _condition(self, condition: Condition) -> _Condition:
        met = np.ones([len(axis.levels) for axis in self._named], dtype=bool)
        place_of = {name: place for place, axis in enumerate(self._named) for name in axis.factors}
        for name in condition.keys() & place_of.keys():
            levels = self._named[place_of[name]].levels
            met &= self._along(np.array([level[name] in condition[name] for level in levels]), place_of[name])
        decided = {name: levels for name, levels in condition.items() if name not in place_of}
        return _Condition(tuple(condition), decided, met)

    def _met(self, conditions: Iterable[_Condition], decision: _Decision) -> Booleans:
        """Where at least one of the conditions is met. A point without a factor does not meet its condition."""
        met = np.zeros([len(axis.levels) for axis in self._named], dtype=bool)
        for condition in conditions:
            if all(name in decision.base for name in condition.factors) and all(
                decision.level(name) in levels for name, levels in condition.decided.items()
            ):
                met |= condition.met
        return met

    def _along(self, table: Booleans, place: int) -> Booleans:
        """A table of one named axis in an array of all of them."""
        return table.reshape([-1 if each == place else 1 for each in range(len(self._named))])

    def _points(self, decision: _Decision, allowed: Booleans) -> Iterator[tuple[tuple[int, ...], Point]]:
        """The points of one decision, each with the numbers of its levels in the order of the axes."""
        decided = dict(zip(self._deciding, decision.numbers, strict=True))
        changes = [axis.changes[number] for axis, number in decided.items() if axis.changes]
        base = decision.base | decision.effective
        named = [dict(self._distinct_levels(axis, decision)) for axis in self._named]
        free = [self._distinct_levels(axis, decision) for axis in self._free]
        place_of = {axis: place for place, axis in enumerate((*self._deciding, *self._named, *self._free))}
        order = [place_of[axis] for axis in self._axes]
        for numbers in map(tuple, np.argwhere(allowed).tolist()):
            start = base.copy()
            for levels, number in zip(named, numbers, strict=True):
                start |= levels[number]
            for rest in itertools.product(*free):
                point = start.copy()
                for _, level in rest:
                    point |= level
                if changes:
                    point[CHANGE] = changes[0]
                places = (*decision.numbers, *numbers, *[number for number, _ in rest])
                yield tuple([places[place] for place in order]), point


def _axes(levels: Grid, rules: Rules) -> list[_Axis]:
    """The axes with several levels, slowest first; that of `one at a time` last."""
    group_of = {name: group for group in rules.zipped for name in group}
    axes = [
        _Axis(group, [dict(zip(group, values, strict=True)) for values in zip(*map(levels.get, group), strict=True)])
        for group in dict.fromkeys(tuple(group_of.get(name, (name,))) for name in levels)
    ]
    changing = [axis for axis in axes if not set(axis.factors).isdisjoint(rules.one_at_a_time)]
    crossed = [axis for axis in axes if axis not in changing and len(axis.levels) > 1]
    return [*crossed, *([_changes(changing)] if changing else [])]


def _changes(axes: Sequence[_Axis]) -> _Axis:
    """The base, then each other level of each axis with the base of the others."""
    base: Point = {}
    for axis in axes:
        base |= axis.levels[0]
    changed = [level for axis in axes for level in axis.levels[1:]]
    return _Axis(tuple(base), [base, *(base | level for level in changed)], [BASE, *map(_words, changed)])


def _words(levels: Point) -> str:
    return ", ".join(f"{FACTORS[name].label} {FACTORS[name].format(value)}" for name, value in levels.items())
