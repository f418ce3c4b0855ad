"""Which factors vary among points: the one rule for tables, grids, filters and comparisons.

A factor varies if it takes more than one level. That a point lacks a factor is a level where it says something:
a setting that is left as the host had it, no layout, one target alone, or one of two alternatives (a block size or a
split, a time or an amount).
Where a factor just does not apply (`fixedbufs` of psync), what makes it so varies itself, and nothing is said twice.
"""

from collections.abc import Iterable, Mapping, Sequence

from webapp.plans.factors import ALTERNATIVES, FACTORS, FactorKind

_SPEAKING = (FactorKind.SETTING, FactorKind.LAYOUT, FactorKind.TARGETS)
_ABSENT = "absent"  # is no repr of a level: those of texts have quotes
_PLACES = {name: index for index, name in enumerate(FACTORS)}


def varying(points: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Names of the factors that vary, in the order of the table of factors; unknown ones last, by alphabet."""
    known = list(points)
    names = [name for name in differing(known) if len(_levels(name, known)) > 1]
    return tuple(in_order(names))


def in_order(names: Iterable[str]) -> list[str]:
    """As in the table of factors, unknown ones last, by alphabet; the database keeps points in an order of its own."""
    return sorted(names, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))


def differing(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names that some points have and others lack, or that take more than one level: all that can vary."""
    columns = {name: [point.get(name, _ABSENT) for point in points] for name in set[str]().union(*points)}
    return {name for name, column in columns.items() if column.count(column[0]) < len(column)}


def _levels(name: str, points: Sequence[Mapping[str, object]]) -> set[str]:
    """What it takes in the points that have it, and that others lack it where this says something."""
    levels = {repr(point[name]) for point in points if name in point}
    return levels | {_ABSENT} if _absence_speaks(name) and any(name not in point for point in points) else levels


def _absence_speaks(name: str) -> bool:
    factor = FACTORS.get(name)
    left_out = factor is not None and factor.kind in _SPEAKING
    return left_out or any(name in pair for pair in ALTERNATIVES)
