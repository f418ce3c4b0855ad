"""The answer of a run whose plan has a goal, in words and as a picture of its path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webapp.analysis.words import PERCENT, interval, shown
from webapp.core.formatting import duration, percent
from webapp.core.statistics import Ratio
from webapp.plans.load import LOAD
from webapp.plans.points import Point
from webapp.runs.models import Run
from webapp.screens import point_words

if TYPE_CHECKING:
    from webapp.analysis.bisection import Bracket
    from webapp.analysis.searching import MeasuredTrial, TargetSearch
    from webapp.tuning.search import Conclusion

WIDTH, HEIGHT, EDGE = 640, 160, 8  # of the picture
SURE = 0.95


@dataclass(frozen=True)
class Row:
    """`words`: of a combination or a level. `ratio`: its value divided by the best one's, with its interval."""

    words: str
    ratio: str
    note: str = ""


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    number: int  # of the trial
    words: str
    is_within: bool
    is_final: bool


@dataclass(frozen=True)
class SearchView:
    """Of one target. `answer`: one sentence. `steps`: points of the line of the best value so far."""

    target: str
    answer: str
    used: str
    noise: str
    runners_up: Sequence[Row]
    effects: Sequence[Row]
    dots: Sequence[Dot]
    steps: str
    lowest: str
    highest: str
    metric: str


def search_views(run: Run) -> list[SearchView]:
    """By target; none for a run without a goal."""
    if run.budget is None:
        return []
    from webapp.analysis.searching import searches_of  # the search takes much memory, and few runs have one

    return [_view(search, run) for search in searches_of(run)]


def search_heading(views: Sequence[SearchView]) -> str:
    """Of an ended run."""
    if len(views) == 1:
        return views[0].answer
    return f"The search ended on {len(views)} targets" if views else "The plan can no longer run on its targets"


def _time(run: Run) -> str:
    return f" in at most {duration(run.budget_s)}" if run.budget_s else ""


def _view(search: TargetSearch, run: Run) -> SearchView:
    conclusion, bracket = search.conclusion, search.bracket
    if bracket:
        answer = _highest_load(search, bracket)
    elif conclusion:
        answer = _answer(search, conclusion)
    else:
        answer = _best_so_far(search, ended=run.ended_at is not None)
    dots, steps, ends = _path(search)
    return SearchView(
        target=str(search.target),
        answer=answer,
        used=f"{len(search.trials)} of at most {search.search.budget} trials{_time(run)}, "
        f"among {len(search.space.by_number):,} combinations",
        noise=f"{percent(100 * conclusion.noise)} between trials of one combination" if conclusion else "",
        runners_up=list(_runners_up(search, conclusion)) if conclusion else (),
        effects=list(_effects(search, conclusion)) if conclusion else (),
        dots=dots,
        steps=steps,
        lowest=search.metric.format(ends[0]) if ends else "",
        highest=search.metric.format(ends[1]) if ends else "",
        metric=search.metric.label,
    )


def _name(search: TargetSearch, combination: int) -> str:
    point: Point = search.levels(combination)
    return ", ".join(f"{point_words.label(name)} {point_words.level(name, value)}" for name, value in point.items())


def _answer(search: TargetSearch, conclusion: Conclusion) -> str:
    name = _name(search, conclusion.point)
    value = f"{search.metric.format(conclusion.value)} {_short(search)}".rstrip()
    limited = search.limited_at(conclusion.point)
    at = f" at {search.limited.label} {search.limited.format(limited)}" if search.limited and limited else ""
    if conclusion.within < SURE:
        return f"No combination surely keeps the limit. Nearest: {name}: {value}{at}"
    bound = f"{math.ceil(1000 * conclusion.bound) / 10:g} %"
    return f"Best: {name}: {value}{at}; no combination beats it by more than {bound} (95 %)"


def _highest_load(search: TargetSearch, bracket: Bracket) -> str:
    """`p99 latency stays below 1.00 ms up to 60 % of the maximum (95 % CI from 55 % to 65 %, n = 4): 45.2k IOPS`."""
    assert search.limited is not None
    limited, limit = search.limited.label, search.limited.format(search.goal.limit)

    def share(combination: int) -> str:
        return point_words.level(LOAD, search.levels(combination)[LOAD])

    n, highest = f"n = {bracket.rounds}", max(search.space.by_number) - 1
    if bracket.point is None:
        sure = "not certain" if bracket.above is None else "95 % sure"
        at = share(bracket.lowest if bracket.above is None else bracket.above)
        return f"{limited} is above {limit} already at {at} of the maximum ({sure}, {n})"
    ends = [f"{word} {share(end)}" for word, end in (("from", bracket.below), ("to", bracket.above)) if end is not None]
    certainty = f"95 % CI {' '.join(ends)}" if ends else "not certain"
    limit_of_plan = ", the highest share of the plan" if bracket.point == highest else ""
    return (
        f"{limited} stays below {limit} up to {share(bracket.point)} of the maximum{limit_of_plan} ({certainty}, {n}): "
        f"{search.metric.format(bracket.value)} {_short(search)}"
    )


def _short(search: TargetSearch) -> str:
    """The label, unless the value's unit says it."""
    return search.metric.label if search.metric.shown_as in ("iops", "number", "percent", "seconds") else ""


def _best_so_far(search: TargetSearch, *, ended: bool) -> str:
    best = next((trial for trial in reversed(search.best_so_far) if trial), None)
    if best is None:
        return "The search found no combination within the limit" if ended else "No result within the limit yet"
    words = f"{_name(search, best.combination)}: {search.metric.format(best.value)} {_short(search)}".rstrip()
    return f"No final rounds, so nothing is certain. Best of its trials: {words}" if ended else f"Best so far: {words}"


def _ratio(value: float, low: float, high: float) -> str:
    """In the digits and with the rounding of all other pages."""
    return f"{shown(value, PERCENT)} ({interval(Ratio(value=value, low=low, high=high), PERCENT)})"


def _runners_up(search: TargetSearch, conclusion: Conclusion) -> Iterator[Row]:
    for each in conclusion.runners_up:
        note = "" if each.within >= SURE else "may exceed the limit"
        yield Row(_name(search, each.point), _ratio(each.ratio, each.low, each.high), note)


def _effects(search: TargetSearch, conclusion: Conclusion) -> Iterator[Row]:
    for each in conclusion.effects:
        words = f"{point_words.label(each.factor)} {point_words.level(each.factor, search.level(each))}"
        yield Row(words, _ratio(each.ratio, each.low, each.high))


def _path(search: TargetSearch) -> tuple[list[Dot], str, tuple[float, float] | None]:
    """Dots, the line of the best value so far, and the lowest and highest value. The scale is logarithmic."""
    known = [trial.value for trial in search.trials if trial.value is not None]
    if not known:
        return [], "", None
    low, high = min(known), max(known)
    across = (WIDTH - 2 * EDGE) / max(1, search.search.budget - 1)

    def x_of(place: int) -> float:
        return round(EDGE + across * place, 1)

    def y_of(value: float) -> float:
        share = (math.log(value) - math.log(low)) / (math.log(high / low) or 1)
        return round(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE), 1)

    dots = [
        Dot(x_of(place), y_of(trial.value), trial.trial.number, _of_dot(search, trial), search.is_within(trial),
            trial.trial.is_final)
        for place, trial in enumerate(search.trials) if trial.value is not None
    ]  # fmt: skip
    line: list[str] = []
    before: float | None = None
    for place, best in enumerate(search.best_so_far):
        if best is not None and best.value is not None:
            y = y_of(best.value)
            line += [f"{x_of(place)},{before}"] if before not in (None, y) else []
            line.append(f"{x_of(place)},{y}")
            before = y
    return dots, " ".join(line), (low, high)


def _of_dot(search: TargetSearch, trial: MeasuredTrial) -> str:
    return f"#{trial.trial.number}: {_name(search, trial.combination)}: {search.metric.format(trial.value)}"
