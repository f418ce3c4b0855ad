"""Finds the factors that vary among points; tables, grids, filters and comparisons use this rule.

A factor varies if it has more than one level. A missing factor counts as a level if its absence has a meaning: a
setting that keeps the host's value, no layout, one target alone, an option that keeps fio's default, or the other of
two alternatives (a block size or a split, a time or an amount), if the point has it. It does not count if the factor
does not apply (`fixedbufs` of psync, the block size of a reflink), because then the factor that causes it varies
already.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from webapp.plans.engines import engine_of, name_of
from webapp.plans.factors import (
    ALTERNATIVES,
    BESIDE,
    FACTORS,
    STREAMS,
    STREAMS_ON,
    FactorKind,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.streams import names_of, own_point

_SPEAKING = (
    FactorKind.SETTING,
    FactorKind.LAYOUT,
    FactorKind.TARGETS,
    FactorKind.STREAMS,
    FactorKind.OPTION,
    FactorKind.CHANGE,
)
DERIVED_FROM: Mapping[str, frozenset[str]] = {"size": frozenset({"size_percent", "size_memory"})}  # resolved per target
_ABSENT = object()  # differs from every level
_ALTERNATIVES_OF = {
    name: frozenset(other for pair in ALTERNATIVES if name in pair for other in pair)
    for name in {*chain.from_iterable(ALTERNATIVES)}
}
_PLACES = {name: index for index, name in enumerate(FACTORS)}


def varying(points: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Names of the varying factors, in the order of the table of factors; unknown ones last, in alphabetical order."""
    known = list(points)
    certain = _shared(known) - DERIVED_FROM.keys()  # every point has these, so only their levels count
    names = (name for name in differing(known) if name in certain or len(_levels(name, known)) > 1)
    return tuple(in_order(names))


def in_order(names: Iterable[str]) -> list[str]:
    """Names in the order of the table of factors, unknown ones last, alphabetically; jsonb does not keep the order."""
    return sorted(names, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))


def differing(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names that only some points have, or that have more than one level: all candidates."""
    levels = set[tuple[str, object]]().union(*(point.items() for point in points))
    counts = Counter(name for name, _ in levels)
    return {name for name, count in counts.items() if count > 1} | (counts.keys() - _shared(points))


def _shared(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names that all points have."""
    names = {tuple(point) for point in points}  # few: most points have the same names
    return set.intersection(*map(set, names)) if names else set()


def follow_from(cause: str, points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names of differing factors that have a single level at each level of `cause`."""
    by_cause: dict[str, list[Mapping[str, object]]] = {}
    for point in points:
        by_cause.setdefault(repr(point.get(cause, _ABSENT)), []).append(point)
    return differing(points) - {cause}.union(*map(differing, by_cause.values()))


def _levels(name: str, points: Sequence[Mapping[str, object]]) -> set[object]:
    """The factor's levels that no other factor determines, and its absence if that has a meaning."""
    causes = DERIVED_FROM.get(name, frozenset())
    levels = {point[name] for point in points if name in point and causes.isdisjoint(point)}
    others = _ALTERNATIVES_OF.get(name, frozenset())
    factor = FACTORS.get(name)
    speaks = factor is not None and factor.kind in _SPEAKING
    without = (point for point in points if name not in point)
    absent = any((speaks and applies(name, point)) or not others.isdisjoint(point) for point in without)
    return levels | {_ABSENT} if absent else levels


def applies(name: str, point: Mapping[str, object]) -> bool:
    """Whether the factor can have an effect at the point: its engine has it, and no other level rules it out."""
    if name == STREAMS_ON:
        return BESIDE in str(point.get(STREAMS, ""))
    stream, plain = stream_and_factor(name)
    if stream:
        return stream in names_of(point) and applies(plain, own_point(point, stream))
    return name not in of_other_engines(name_of(point)) and name not in engine_of(point).silent(point)
