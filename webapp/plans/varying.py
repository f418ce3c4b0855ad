"""Which factors vary among points: the one rule for tables, grids, filters and comparisons.

A factor varies if it takes more than one level. That a point lacks a factor is a level where it says something:
a setting that is left as the host had it, or one of two alternatives (a block size or a split, a time or an amount).
Where a factor just does not apply (`fixedbufs` of psync), what makes it so varies itself, and nothing is said twice.
"""

from collections.abc import Iterable, Mapping

from webapp.plans.factors import ALTERNATIVES, FACTORS, FactorKind

_ABSENT = "absent"  # is no repr of a level: those of texts have quotes
_PLACES = {name: index for index, name in enumerate(FACTORS)}


def varying(points: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Names of the factors that vary, in the order of the table of factors; unknown ones last, by alphabet."""
    known = list(points)
    seen: dict[str, set[str]] = {}
    for point in known:
        for name, value in point.items():
            seen.setdefault(name, set()).add(repr(value))
    for name in seen:
        if _absence_speaks(name) and any(name not in point for point in known):
            seen[name].add(_ABSENT)
    names = [name for name, levels in seen.items() if len(levels) > 1]
    return tuple(sorted(names, key=lambda name: (_PLACES.get(name, len(_PLACES)), name)))


def _absence_speaks(name: str) -> bool:
    factor = FACTORS.get(name)
    is_setting = factor is not None and factor.kind is FactorKind.SETTING
    return is_setting or any(name in pair for pair in ALTERNATIVES)
