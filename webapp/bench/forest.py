"""The rows of the forest plot: which workloads stand on it, and what may be said of each ratio.

The plot shows a few workloads of each pattern. Where only one factor varies, such as the queue depth, these are its
levels; where several vary, the others stay at one level. The rest of the shared workloads are in the grids of ratios.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, hypot, log

from webapp.analysis.answer import BaselineRatio, Cell, Conclusion
from webapp.analysis.claims import MIN_BLOCKS
from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN, is_label
from webapp.analysis.findings.curves import Noise, smoothness
from webapp.bench.alike import PLACES
from webapp.bench.curves import Curve
from webapp.bench.products import Product
from webapp.bench.workloads import MAIN, Workload, number_of
from webapp.plans.points import differing, in_order, varying
from webapp.plans.values import Value
from worker.contract.workload import KIB

# What may be said of a ratio.


class RatioState(StrEnum):
    DIFFERENT = "different"  # claimed: corrected for the page
    EQUAL = "equal"  # within the margin, with its whole interval
    UNCLEAR = "unclear"  # neither
    DRIFT = "drift"  # a difference, which may be drift: the products always ran in the same order
    ONCE = "once"  # measured once: only the ratio is known, and no difference is certain


class Whisker(StrEnum):
    INTERVAL = "interval"  # the 95 % confidence interval, not corrected for the page
    NOISE = "noise"  # of a table without repeats, from how smooth its curves are


@dataclass(frozen=True)
class Judgement:
    """`low` to `high` is the whisker of the ratio."""

    state: RatioState
    whisker: Whisker | None = None
    low: float | None = None
    high: float | None = None


_STATES = {Conclusion.DIFFERENT: RatioState.DIFFERENT, Conclusion.MAY_BE_DRIFT: RatioState.DRIFT}


def judgement(against: BaselineRatio, noise: Noise | None, of_baseline: Noise | None) -> Judgement:
    """The two noises are those of the product and of the baseline."""
    ratio = against.ratio
    if against.n >= MIN_BLOCKS or (ratio.low is not None and ratio.high is not None):
        state = RatioState.EQUAL if against.equal else _STATES.get(against.conclusion, RatioState.UNCLEAR)
        known = ratio.low is not None and ratio.high is not None
        return Judgement(state, Whisker.INTERVAL if known else None, ratio.low, ratio.high)
    if noise is None or of_baseline is None or ratio.value <= 0:
        return Judgement(RatioState.ONCE)
    half = hypot(noise.sigmas * noise.sigma, of_baseline.sigmas * of_baseline.sigma)
    return Judgement(RatioState.ONCE, Whisker.NOISE, ratio.value / exp(half), ratio.value * exp(half))


def noises(curves: Iterable[Curve]) -> dict[tuple[str, Product], Noise]:
    """Of each panel and product, from how smooth its curves along the factor with the most levels are. Without products
    whose curves are too short to tell."""
    series: dict[tuple[str, Product], dict[str, list[Sequence[Cell]]]] = {}
    for curve in curves:
        for product, cells in curve.points.items():
            by_factor = series.setdefault((curve.panel.key, product), {})
            by_factor.setdefault(curve.factor, []).append(tuple(cells.values()))
    made = {key: smoothness(_logs(max(by_factor.values(), key=_longest))) for key, by_factor in series.items()}
    return {key: noise for key, noise in made.items() if noise and noise.is_known}


def _longest(series: Iterable[Sequence[Cell]]) -> int:
    return max(map(len, series))


def _logs(series: Iterable[Sequence[Cell]]) -> list[list[float]]:
    return [[log(cell.summary.mean) for cell in cells if cell.summary.mean > 0] for cells in series]


# Which workloads stand on the plot.

MOST = 7  # of a pattern
MOST_BLOCKS = (4 * KIB, 64 * KIB, 1024 * KIB)  # of these, or the nearest ones, if the load varies too


def chosen(workloads: Sequence[Workload], most: int = MOST) -> list[Workload]:
    """In their order. At most `most`, unless labels of imports tell more of them apart."""
    left = list(workloads)
    for name in (*_others(left), JOBS):
        fixes_jobs = name == JOBS and len(levels_of(left, DEPTH)) > 1
        if len(left) > most and (name != JOBS or fixes_jobs):
            left = _at_one_level(left, name)
    loads = {(workload.number(DEPTH), workload.number(JOBS)) for workload in left}
    if len(left) > most and len(loads) > 1:
        sizes = {workload.number(BLOCK) for workload in left}
        wanted = {min(sizes, key=lambda size: abs(log(size / block))) for block in MOST_BLOCKS}
        left = [workload for workload in left if workload.number(BLOCK) in wanted]
        groups = [[workload for workload in left if workload.number(BLOCK) == size] for size in sorted(wanted)]
        rooms = _rooms(len(groups), most)
        left = [workload for group, room in zip(groups, rooms, strict=True) for workload in thinned(group, room)]
    return thinned(left, most)


def _rooms(groups: int, most: int) -> list[int]:
    """The first group has the most rows, and each has at least two."""
    others = max(2, most // groups)
    return [max(2, most - others * (groups - 1)), *[others] * (groups - 1)]


def thinned(workloads: Sequence[Workload], most: int) -> list[Workload]:
    """Evenly, with both ends."""
    if len(workloads) <= most:
        return list(workloads)
    places = {round(place * (len(workloads) - 1) / (most - 1)) for place in range(most)}
    return [workloads[place] for place in sorted(places)]


def levels_of(workloads: Iterable[Workload], name: str) -> set[Value]:
    return {workload.point[name] for workload in workloads if name in workload.point}


def varying_factors(workloads: Sequence[Workload]) -> list[str]:
    """The main ones first. A factor that only some workloads state varies too."""
    names = {name for workload in workloads for name in workload.point} - PLACES - {PATTERN}
    differing = [name for name in names if len({workload.point.get(name) for workload in workloads}) > 1]
    return [*(name for name in MAIN if name in differing), *in_order(name for name in differing if name not in MAIN)]


def _others(workloads: Sequence[Workload]) -> list[str]:
    return [name for name in varying_factors(workloads) if name not in MAIN and not is_label(name)]


def _at_one_level(workloads: Sequence[Workload], name: str) -> list[Workload]:
    """The level with the most workloads, of several the first one."""
    counts = Counter(workload.point.get(name) for workload in workloads)
    level = max(counts, key=lambda level: counts[level])
    return [workload for workload in workloads if workload.point.get(name) == level]


_LOADS = (DEPTH, JOBS)  # preferred to block sizes


def telling_factors(workloads: Sequence[Workload]) -> list[str]:
    """The factors, labels and places that tell these workloads of one pattern apart."""
    points = [workload.point for workload in workloads]
    names = [name for name in in_order(varying(points)) if name != PATTERN]
    if len({_levels(workload, names) for workload in workloads}) < len(workloads):
        names = [name for name in in_order(differing(points)) if name != PATTERN]
    return [*(name for name in MAIN if name in names), *(name for name in names if name not in MAIN)]


def _levels(workload: Workload, names: Iterable[str]) -> tuple[Value | None, ...]:
    return tuple(workload.point.get(name) for name in names)


def series_of(on_plot: Sequence[Workload], shared: Sequence[Workload]) -> tuple[str, list[list[Workload]]]:
    """The factor along which sentences are said, and all shared workloads as series: those of one series differ in this
    factor only. The factor is a number, and the series of the first workload on the plot is the longest one; it comes
    first. Without such a factor it is "", and each workload is alone."""
    names = telling_factors(shared)
    numbers = [name for name in names if _are_numbers(levels_of(shared, name))]
    axis, longest = "", 1
    for name in sorted(numbers, key=lambda name: name not in _LOADS):
        others = [other for other in names if other != name]
        length = sum(_levels(workload, others) == _levels(on_plot[0], others) for workload in on_plot)
        axis, longest = (name, length) if length > longest else (axis, longest)
    others = [name for name in names if name != axis]
    first = _levels(on_plot[0], others)
    made: dict[tuple[Value | None, ...], list[Workload]] = {first: []}
    for workload in shared:
        made.setdefault(_levels(workload, others), []).append(workload)
    along = [sorted(each, key=lambda workload: _size(workload.point.get(axis, 0))) for each in made.values()]
    return axis, along


def _are_numbers(levels: Iterable[Value]) -> bool:
    """Also texts of one unit, such as the labels `20 %` and `80 %`: they have an order."""
    units = {_unit(level) for level in levels}
    return len(units) == 1 and None not in units


def _unit(level: Value) -> str | None:
    """None if the level is no number."""
    if isinstance(level, str):
        return number[1] if (number := number_of(level)) else None
    return None if isinstance(level, bool) else ""


# Grids: all shared workloads of a pattern by two factors.


@dataclass(frozen=True)
class Grid:
    across: str  # factors
    down: str
    columns: tuple[Value, ...]
    rows: tuple[tuple[Value, tuple[Workload | None, ...]], ...]


def grid(workloads: Sequence[Workload]) -> Grid | None:
    """None if the plot has all of them, or if no two factors vary. Others stay at their most frequent level."""
    if len(workloads) <= MOST:
        return None
    left = list(workloads)
    for name in _others(left):
        left = _at_one_level(left, name)
    sizes = {name: len(levels_of(left, name)) for name in MAIN}
    two = sorted((name for name in MAIN if sizes[name] > 1), key=lambda name: -sizes[name])[:2]
    if len(two) < 2:
        return None
    for name in MAIN:
        left = left if name in two else _at_one_level(left, name)
    across, down = two if sizes[two[0]] > sizes[two[1]] else (name for name in MAIN if name in two)
    return _grid(left, across, down)


def _grid(workloads: Sequence[Workload], across: str, down: str) -> Grid:
    by_levels = {(workload.point.get(down), workload.point.get(across)): workload for workload in workloads}
    columns = tuple(sorted(levels_of(workloads, across), key=_size))
    rows = tuple(sorted(levels_of(workloads, down), key=_size))
    return Grid(
        across, down, columns, tuple((row, tuple(by_levels.get((row, column)) for column in columns)) for row in rows)
    )


def _size(level: Value) -> float:
    return float(level) if isinstance(level, int | float) else 0.0
