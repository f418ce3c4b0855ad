"""Folds the sections that Sweetspot wrote for the points of one part into as few parts as possible."""

import math
from collections.abc import Sequence

from webapp.plans.factors import FACTORS

MAX_LEVELS_LENGTH = 1000  # characters of a factor's levels in a plan
Texts = dict[str, str]  # factor -> one level, as a plan writes it


def folded(points: Sequence[Texts]) -> list[Texts]:
    """Full-factorial grids, factor -> levels, that together contain exactly `points`, in their order."""
    alike: dict[frozenset[str], list[Texts]] = {}
    for point in points:
        alike.setdefault(frozenset(point), []).append(point)
    return [_said(grid) for group in alike.values() for grid in _grids(group)]


def _said(grid: Texts) -> Texts:
    """The point without default levels."""
    return {name: text for name, text in grid.items() if text != FACTORS[name].values.write(FACTORS[name].default)}


def _grids(points: Sequence[Texts]) -> list[Texts]:
    """Grids of points with the same factors: one grid if they fill it, else one per level of a varying factor."""
    levels = {name: list(dict.fromkeys(point[name] for point in points)) for name in points[0]}
    distinct = {tuple(point[name] for name in levels) for point in points}
    if len(distinct) == math.prod(len(texts) for texts in levels.values()):
        grid = {name: ", ".join(texts) for name, texts in levels.items()}
        long = next((name for name, text in grid.items() if len(text) > MAX_LEVELS_LENGTH), "")
        return _split(points, long, _halves(levels[long])) if long else [grid]
    name = next(name for name, texts in levels.items() if len(texts) > 1)
    return _split(points, name, [[text] for text in levels[name]])


def _split(points: Sequence[Texts], name: str, shares: Sequence[Sequence[str]]) -> list[Texts]:
    return [grid for share in shares for grid in _grids([point for point in points if point[name] in share])]


def _halves(texts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    middle = len(texts) // 2
    return texts[:middle], texts[middle:]
