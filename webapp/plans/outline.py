"""The size of a plan before its targets are chosen. Pure."""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from webapp.plans.document import PlanDocument
from webapp.plans.estimate import OVERHEAD_S
from webapp.plans.factors import AT_ONCE
from webapp.plans.grids import PartGrid, grids_of


@dataclass(frozen=True)
class Outline:
    """The size per target: minimum and maximum over the kinds of target that the plan runs on. A trial of several
    targets at once counts for each of them with its share.
    """

    trials_low: int
    trials_high: int
    seconds: float | None  # of the maximum; None if the time depends on the drive


def outline(document: PlanDocument) -> Outline:
    """The outline of a plan; zeros if its levels are invalid."""
    trials: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    bound = True
    for grid in grids_of(document):
        count, each = _count(grid) * document.repeats, grid.engine.time_s(grid.levels)
        for kind in set(grid.kinds) if grid.count else ():
            trials[kind] += ceil(count)
            seconds[kind] += count * ((each or 0.0) + OVERHEAD_S)
        bound = bound and each is not None
    counts = list(trials.values()) or [0]
    return Outline(min(counts), max(counts), max(seconds.values(), default=0.0) if bound else None)


def _count(grid: PartGrid) -> float:
    sizes = [float(level or 1) for level in grid.levels.get(AT_ONCE, (1,))]
    return grid.count * fmean(1 / size for size in sizes)
