"""What a comparison shows before anybody has chosen: the factor worth an axis, the one worth a line each,
and one level of every other factor, so that like is compared with like."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.plans.factors import FACTORS, FactorKind, Value
from webapp.screens import points

Point = Mapping[str, Value]


@dataclass(frozen=True)
class Choice:
    x: str
    series: str  # "" where nothing else varies
    fixed: dict[str, Value]


def choose(all_points: Sequence[Point], *, x: str = "", series: str = "") -> Choice:
    """`x` and `series` are kept where they are given."""
    names = [name for name in points.varying(all_points) if name in FACTORS]
    x = x or _best_x([name for name in names if name != series], all_points)
    series = series or _best_series([name for name in names if name != x])
    return Choice(x, series, _fixed([name for name in names if name not in (x, series)], all_points))


def _levels(name: str, all_points: Sequence[Point]) -> set[str]:
    return {repr(point.get(name)) for point in all_points}


def _best_x(names: Sequence[str], all_points: Sequence[Point]) -> str:
    """The number with the most levels; a name only where no number varies."""
    numeric = [name for name in names if FACTORS[name].numeric]
    return max(numeric or names, key=lambda name: len(_levels(name, all_points)), default="block_size")


def _best_series(names: Sequence[str]) -> str:
    """A setting before the engine before other names; a number last. The pattern only if there is nothing else."""

    def rank(name: str) -> tuple[bool, bool, bool, bool]:
        factor = FACTORS[name]
        return name == "pattern", factor.kind is not FactorKind.SETTING, name != "engine", factor.numeric

    return min(names, key=rank, default="")


def _fixed(names: Sequence[str], all_points: Sequence[Point]) -> dict[str, Value]:
    """Factor by factor the level that the most points have, of those that the earlier choices leave."""
    fixed: dict[str, Value] = {}
    left = list(all_points)
    for name in names:
        count = Counter(repr(point.get(name)) for point in left)
        if len(count) < 2:
            continue
        ordered = sorted(left, key=lambda point: points.sort_key(point.get(name)))
        fixed[name] = max(ordered, key=lambda point: count[repr(point.get(name))]).get(name)
        left = [point for point in left if point.get(name) == fixed[name]]
    return fixed
