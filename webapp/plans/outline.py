"""The size of a plan before its targets are chosen. Pure."""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil

from webapp.plans.document import PlanDocument
from webapp.plans.engines import ENGINE, ENGINES
from webapp.plans.expected_time import OVERHEAD_S
from webapp.plans.grids import PartGrid, grids_of
from webapp.plans.streams import of_stream


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
        count, each = _count(grid) * document.repeats, _seconds(grid)
        for kind in set(grid.kinds) if grid.count else ():
            trials[kind] += ceil(count)
            seconds[kind] += count * ((each or 0.0) + OVERHEAD_S)
        bound = bound and each is not None
    counts = list(trials.values()) or [0]
    return Outline(min(counts), max(counts), max(seconds.values(), default=0.0) if bound else None)


def _seconds(grid: PartGrid) -> float | None:
    """The mean time of a trial, at most; of streams, that of the longest one."""
    if not grid.part.streams or not grid.levels:
        return grid.engine.time_s(grid.levels)
    of_streams = [_of_stream(grid, stream.name) for stream in grid.part.streams]
    return None if None in of_streams else max(seconds for seconds in of_streams if seconds is not None)


def _of_stream(grid: PartGrid, stream: str) -> float | None:
    engine = str((grid.levels.get(f"{stream}.{ENGINE}") or grid.levels[ENGINE])[0])
    return ENGINES[engine].time_s(of_stream(grid.levels, stream, engine))


def _count(grid: PartGrid) -> float:
    """Points of a target: a trial of several targets at once counts with its share."""
    return sum(count / at_once.all_targets for at_once, count in grid.by_targets.items())
