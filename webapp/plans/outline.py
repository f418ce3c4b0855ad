"""How large a plan is before anybody says where it runs. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from webapp.plans.document import PlanDocument
from webapp.plans.estimate import OVERHEAD_S
from webapp.plans.factors import AT_ONCE
from webapp.plans.grids import PartGrid, part_grid
from webapp.plans.values import Value


@dataclass(frozen=True)
class Outline:
    """For each target; the least and the most over the kinds of target that the plan runs on. A trial of several at
    once counts for each of them with its share.
    """

    trials_low: int
    trials_high: int
    seconds: float | None  # of the most; None where an amount ends trials, then the drive decides


def outline(document: PlanDocument) -> Outline:
    """Zeros for a plan whose levels are not understood."""
    trials: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    bound = True
    for grid in (part_grid(document, part) for part in document.parts):
        count = _count(grid) * document.repeats
        for kind in set(grid.kinds) if grid.count else ():
            trials[kind] += ceil(count)
            seconds[kind] += count * _seconds_each(grid)
        bound = bound and "amount" not in grid.levels
    counts = list(trials.values()) or [0]
    return Outline(min(counts), max(counts), max(seconds.values(), default=0.0) if bound else None)


def _count(grid: PartGrid) -> float:
    sizes = [float(level or 1) for level in grid.levels.get(AT_ONCE, (1,))]
    return grid.count * fmean(1 / size for size in sizes)


def _seconds_each(grid: PartGrid) -> float:
    return _mean(grid.levels.get("runtime", ())) + _mean(grid.levels["ramp"]) + OVERHEAD_S


def _mean(levels: Sequence[Value]) -> float:
    return fmean(float(value or 0) for value in levels) if levels else 0.0
