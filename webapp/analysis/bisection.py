"""A search for the highest level of one factor at which a metric that rises with the level stays within a limit.

    start ──► the last level ──► bisection ──► rounds of the two neighbours ──► further rounds, outwards ──► `bracket`
              e.g. the maximum   one trial      of the limit                     until both sides are sure
                                 each

The trials of the bisection only say where to repeat. The bracket is of the rounds alone. It is sure of a level if
Student's interval of the mean logarithm leaves out the limit. The trials are a function of the search and its
measurements, as in `tuning.search`. A level at which a trial has no value is left out.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from webapp.core.statistics import Summary, mean_of, summarise
from webapp.tuning.search import ROUNDS, Batch, Measurement, Search


@dataclass(frozen=True)
class Bracket:
    """`point`: the highest combination whose mean of the rounds is within the limit; None if none is. `below`: the
    highest one that is surely within; None if none is. `above`: the lowest one that is surely beyond; None if none is.
    Together, `below` and `above` have a probability of 95 %. `lowest`: of all combinations of the rounds. `value`: mean
    at `point`, or at `lowest`."""

    point: int | None
    below: int | None
    above: int | None
    lowest: int
    value: float
    rounds: int


def next_levels(search: Search, measurements: Sequence[Measurement]) -> Batch:
    """What to measure next; nothing at the end of the search. All trials of earlier batches have ended."""
    unknown = {each.point for each in measurements if each.limited is None}  # failed, or too few I/Os for a percentile
    *levels, last = (int(level) for level in search.candidates)
    levels = [level for level in levels if level not in unknown]
    if not measurements:
        return Batch((last,) * ROUNDS)
    if not levels or all(each.value is None for each in measurements):
        return Batch()  # without the last level, e.g. the maximum, the others have no rate
    if not any(each.is_final for each in measurements):
        low, high = _ends(search, levels, measurements)
        if high - low > 1:
            return Batch((levels[(low + high) // 2],))
        points: Sequence[int] = levels[max(low, 0) : high + 1]
    else:
        points = _outwards(search, levels, measurements)
    if len(measurements) + ROUNDS * len(points) > search.budget:
        return Batch()
    chance = np.random.default_rng((search.seed, len(measurements)))
    return Batch(tuple(int(point) for _ in range(ROUNDS) for point in chance.permutation(points)), is_final=True)


def _ends(search: Search, levels: Sequence[int], measurements: Iterable[Measurement]) -> tuple[int, int]:
    """Places of the highest level within the limit (-1: none yet), and of the lowest one above it that is beyond."""
    assert search.limit is not None
    places = {level: place for place, level in enumerate(levels)}
    known = [(places[each.point], each.limited) for each in measurements if each.point in places]
    within = {place: limited is not None and limited <= search.limit for place, limited in known}
    low = max((place for place, is_within in within.items() if is_within), default=-1)
    beyond = [place for place, is_within in within.items() if not is_within and place > low]
    return low, min(beyond, default=len(levels))


def _outwards(search: Search, levels: Sequence[int], measurements: Sequence[Measurement]) -> list[int]:
    """The next lower level until one is surely within, and the next higher one until one is surely beyond."""
    final, limit = _rounds(measurements), search.limit
    assert limit is not None
    repeated = [level for level in levels if any(each.is_final and each.point == level for each in measurements)]
    if not repeated:
        return []
    lowest, highest = levels.index(repeated[0]), levels.index(repeated[-1])
    points = []
    if lowest > 0 and not any(_sure_below(summary, limit) for summary in final.values()):
        points.append(levels[lowest - 1])
    if highest < len(levels) - 1 and not any(_sure_above(summary, limit) for summary in final.values()):
        points.append(levels[highest + 1])
    return points


def _rounds(measurements: Sequence[Measurement]) -> dict[int, Summary]:
    """The limited metric in the rounds, of each combination that succeeded in all of them, lowest first."""
    values: dict[int, list[float]] = defaultdict(list)
    for each in measurements:
        if each.is_final and each.limited is not None:
            values[each.point].append(each.limited)
    return {point: _summary(of_point) for point, of_point in sorted(values.items()) if len(of_point) == ROUNDS}


def _summary(values: Sequence[float]) -> Summary:
    """With an infinite value, the level is not within any limit; only if all are, it is surely beyond."""
    if math.inf not in values:
        return summarise(values)
    return Summary(tuple(values), len(values), math.inf, None, min(values), None)


def _sure_below(summary: Summary, limit: float) -> bool:
    return summary.high is not None and summary.high <= limit


def _sure_above(summary: Summary, limit: float) -> bool:
    return summary.low is not None and summary.low > limit


def bracket(search: Search, measurements: Sequence[Measurement]) -> Bracket | None:
    """None before the end of the rounds, or if no combination succeeded in all of them."""
    final, limit = _rounds(measurements), search.limit
    trials = Counter(each.point for each in measurements if each.is_final)
    if not final or limit is None or min(trials.values()) < ROUNDS:
        return None
    within = list(takewhile(lambda point: final[point].mean <= limit, final))
    below = [point for point in within if _sure_below(final[point], limit)]
    above = [point for point in final if point not in within and _sure_above(final[point], limit)]
    lowest = min(final)
    shown = within[-1] if within else lowest
    value = mean_of([each.value for each in measurements if each.is_final and each.point == shown and each.value])
    sides = max(below, default=None), min(above, default=None)
    return Bracket(shown if within else None, *sides, lowest, value, ROUNDS)
