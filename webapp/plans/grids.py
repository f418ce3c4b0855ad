"""Parses the texts of a plan's parts into grids of levels, and collects all problems."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from webapp.plans.contradictions import contradictions
from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.engines import ENGINE, engine_name, engine_of
from webapp.plans.engines.base import PlanEngine
from webapp.plans.grid_problem import GridProblem
from webapp.plans.part_levels import factor_texts, kinds_of, parsed_levels
from webapp.plans.part_problems import part_problems, silent_by_level
from webapp.plans.part_rules import round_problems, rules_of
from webapp.plans.points import Point, with_defaults
from webapp.plans.rules import NO_RULES, TRACK, Rules, selected
from webapp.plans.stream_grids import StreamLevels, complete, stream_problems, with_running
from webapp.plans.values import Value

MAX_CROSSED = 100_000  # combinations from which the rules of all parts select


@dataclass(frozen=True)
class PartGrid:
    """A part, its levels (slowest factor first), and the problems in its text."""

    part: Part
    levels: dict[str, tuple[Value, ...]]
    found: tuple[GridProblem, ...]
    kinds: tuple[str, ...]  # kinds of target that it runs on
    rules: Rules = NO_RULES

    @cached_property
    def points(self) -> list[Point]:
        """Its points that the rules allow."""
        return selected(self.levels, self.rules) if self.levels else []

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"Part {self.part.name}: {one.message}" for one in self.found)

    @property
    def count(self) -> int:
        """The number of points with rules, else their maximum. A factor without effect does not multiply them."""
        if self.found:
            return 0
        if self.part.rules or self.part.streams:
            return len(self.points)
        return sum(
            math.prod(len(values) for name, values in self.levels.items() if name not in without)
            for without in silent_by_level(self.engine, self.levels)
        )

    @property
    def engine(self) -> PlanEngine:
        return engine_of({name: values[0] for name, values in self.levels.items() if name == ENGINE})


def grids_of(document: PlanDocument) -> tuple[PartGrid, ...]:
    """The grids of all parts. A large plan takes long here: compute them once and pass them on."""
    return tuple(part_grid(document, part) for part in document.parts)


def part_grid(document: PlanDocument, part: Part) -> PartGrid:
    texts = factor_texts(document, part)
    parsed, problems = parsed_levels(texts)
    if part.streams:
        parsed, unknown = with_running(part, parsed)
        problems += unknown
    problems += [*contradictions(part, texts), *part_problems(part, parsed, texts), *stream_problems(part, texts)]
    levels = {} if problems else _completed(document, part, parsed, texts)
    most = MAX_CROSSED // max(1, sum(bool(each.rules or each.streams) for each in document.parts))
    wanted, wrong = (NO_RULES, []) if problems else rules_of(part, levels, engine_name(texts), most)
    wrong += round_problems(document) if wanted.tracked else []
    grid = PartGrid(part, {} if wrong else levels, (*problems, *wrong), kinds_of(part, texts), wanted)
    if part.rules and levels and not wrong and not grid.points:
        return replace(grid, found=(GridProblem("rules", "the rules leave out all points. Change or remove a rule."),))
    if wanted.tracked and grid.points and not any(map(wanted.tracks, grid.points)):
        return replace(grid, found=(GridProblem("rules", f"no point meets `{TRACK}`. Change this rule."),))
    return grid


def _completed(document: PlanDocument, part: Part, parsed: StreamLevels, texts: Mapping[str, str]) -> StreamLevels:
    sequence = document.sequence if document.order is Order.LISTED else ()
    if part.streams:
        return complete(part, parsed, texts, drop_caches=document.drop_caches, sequence=sequence)
    return with_defaults(parsed, drop_caches=document.drop_caches, sequence=sequence)
