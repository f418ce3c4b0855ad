"""The combinations of a plan with a goal on one target, and what a run of it costs at most. Pure.

A combination is its flat number in the grid of all levels, in C order of the factors. Rules leave some out, and levels
without effect make some equal: each point has one number.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from webapp.plans.bytes_written import written_in
from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.factors import FACTORS, FactorKind
from webapp.plans.points import Point, varying
from webapp.plans.values import Value


@dataclass(frozen=True)
class SearchSpace:
    """The combinations on one target. `trials`: one of each. Its factors are those that vary; a level is None where a
    factor is absent."""

    trials: tuple[PlannedTrial, ...]

    @cached_property
    def levels(self) -> Mapping[str, tuple[Value | None, ...]]:
        """By factor; numbers in ascending order."""
        points = [trial.point for trial in self.trials]
        return {name: tuple(sorted({point.get(name) for point in points}, key=_place)) for name in varying(points)}

    @cached_property
    def by_number(self) -> Mapping[int, PlannedTrial]:
        return {self.number_of(trial.point): trial for trial in self.trials}

    def number_of(self, point: Point) -> int:
        """Raises ValueError for a level that the plan does not have."""
        number = 0
        for name, levels in self.levels.items():
            number = number * len(levels) + levels.index(point.get(name))
        return number

    def places_of(self, name: str) -> tuple[float, ...]:
        """Of the factor's levels on a scale: logarithmic if all are above 0; () for levels without an order."""
        numbers = [number for level in self.levels[name] if (number := _number(level)) is not None]
        if len(numbers) < len(self.levels[name]):
            return ()
        return tuple(map(math.log2, numbers) if min(numbers) > 0 else numbers)

    @staticmethod
    def is_costly(name: str) -> bool:
        """Whether a change builds a layout or fills files."""
        factor = FACTORS.get(name)
        return factor is not None and factor.cost > 0 and factor.kind is not FactorKind.SETTING


def _number(level: Value | None) -> float | None:
    return float(level) if isinstance(level, int) and not isinstance(level, bool) else None


def _place(level: Value | None) -> tuple[int, float, str]:
    number = _number(level)
    return (1, 0.0, str(level)) if number is None else (0, number, "")


def spaces_of(expansion: Expansion) -> Mapping[str, SearchSpace]:
    """By target id."""
    trials: dict[str, list[PlannedTrial]] = defaultdict(list)
    for trial in expansion.trials:
        trials[trial.target_id].append(trial)
    return {target: SearchSpace(tuple(each)) for target, each in trials.items()}


def within_budget(expansion: Expansion) -> Expansion:
    """As many trials as a run has at most, for its estimates: on each target of those that may write the most, in the
    shares in which the plan has them. Of a plan without a goal all trials."""
    if expansion.budget is None:
        return expansion
    spaces = spaces_of(expansion).values()
    trials = [trial for space in spaces for trial in _costliest(space.trials, expansion.budget)]
    return replace(expansion, trials=tuple(trials), budget=None)


def _costliest(trials: Sequence[PlannedTrial], budget: int) -> list[PlannedTrial]:
    written = [sum(written_in(trial, {}).values()) for trial in trials]
    largest = max(written)
    most = [trial for trial, each in zip(trials, written, strict=True) if each == largest]
    return [most[number * len(most) // budget] for number in range(budget)]
