"""Parses the texts of a plan's parts into grids of levels, and collects all problems."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from webapp.plans import levels
from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.engines import ENGINE, ENGINES, engine_of
from webapp.plans.engines.base import Levels, PlanEngine
from webapp.plans.factors import ALTERNATIVES, AT_ONCE, FACTORS, closest, factor_of
from webapp.plans.points import with_defaults
from webapp.plans.values import Value
from worker.contract.workload import TargetKind
from worker.recipes import DEFAULT_ENGINE

# Kinds of target that a part may name. Pools are used by parts with a layout.
NAMED_KINDS = (TargetKind.BLOCK, TargetKind.DIRECTORY, TargetKind.FILE)


@dataclass(frozen=True)
class GridProblem:
    """`field` is the factor with the problem, `on` for the kinds of target, "" for the part as a whole."""

    field: str
    message: str


@dataclass(frozen=True)
class PartGrid:
    """A part, its levels (slowest factor first), and the problems in its text."""

    part: Part
    levels: dict[str, tuple[Value, ...]]
    found: tuple[GridProblem, ...]
    kinds: tuple[str, ...]  # kinds of target that it runs on

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"Part {self.part.name}: {one.message}" for one in self.found)

    @property
    def count(self) -> int:
        """The maximum number of points. A factor without effect does not multiply them."""
        if self.found:
            return 0
        return sum(
            math.prod(len(values) for name, values in self.levels.items() if name not in without)
            for without in _without(self.engine, self.levels)
        )

    @property
    def engine(self) -> PlanEngine:
        return engine_of({name: values[0] for name, values in self.levels.items() if name == ENGINE})


def _without(engine: PlanEngine, levels: Levels) -> list[set[str]]:
    """For each level of `SILENT_BY`, the factors that do not multiply the points: itself and those without effect."""
    by = engine.SILENT_BY
    if by not in levels:
        return [set()]
    return [{by, *engine.silent({by: level})} for level in levels[by]]


def factor_texts(document: PlanDocument, part: Part) -> dict[str, str]:
    """Factor name -> levels as typed. The part overrides the common factors and their alternatives."""
    overruled = {other for pair in ALTERNATIVES for one, other in (pair, pair[::-1]) if one in part.factors}
    others = _of_other_engines(engine_name(document.common | part.factors))
    common = {name: text for name, text in document.common.items() if name not in overruled | others}
    return common | part.factors


def engine_name(texts: Mapping[str, str]) -> str:
    """The engine of a part; the default engine if the part names none or an unknown one."""
    name = texts.get(ENGINE, DEFAULT_ENGINE).strip()
    return name if name in ENGINES else DEFAULT_ENGINE


def _of_other_engines(name: str) -> set[str]:
    """Factors of other engines only."""
    own = {factor.name for factor in ENGINES[name].FACTORS}
    return {factor.name for engine in ENGINES.values() for factor in engine.FACTORS} - own


def part_grid(document: PlanDocument, part: Part) -> PartGrid:
    texts = factor_texts(document, part)
    parsed, problems = parsed_levels(texts)
    problems += (
        _engine_problems(texts)
        + _contradictions(texts)
        + _pooled(texts)
        + _stopped_at_once(texts)
        + _missing(parsed, texts)
        + _unknown_kinds(part)
    )
    sequence = document.sequence if document.order is Order.LISTED else ()
    levels = {} if problems else with_defaults(parsed, drop_caches=document.drop_caches, sequence=sequence)
    return PartGrid(part, levels, tuple(problems), kinds_of(part, texts))


def kinds_of(part: Part, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Kinds of target that a part runs on. A part with a layout runs only on pools."""
    return (TargetKind.POOL.value,) if "layout" in texts else part.on


def parsed_levels(texts: Mapping[str, str]) -> tuple[dict[str, tuple[Value, ...]], list[GridProblem]]:
    """Levels of each factor with valid text, and the problems of the others."""
    parsed: dict[str, tuple[Value, ...]] = {}
    problems = []
    engine = engine_name(texts)
    for name, text in texts.items():
        factor = factor_of(name, engine)
        if factor is None:
            problems.append(GridProblem(name, _no_such_factor(name)))
            continue
        try:
            parsed[name] = levels.parse(factor, text)
        except levels.LevelError as error:
            problems.append(GridProblem(name, str(error)))
    return parsed, problems


def _no_such_factor(name: str) -> str:
    meant = closest(name)
    return f"there is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}"


def _engine_problems(texts: Mapping[str, str]) -> list[GridProblem]:
    if len(texts.get(ENGINE, "").split(",")) > 1:
        return [GridProblem(ENGINE, "a part has one engine; create one part per engine.")]
    name = engine_name(texts)
    others = _of_other_engines(name)
    return [
        GridProblem(factor, f"`{factor}` is not a factor of {ENGINES[name].LABEL}; remove it.")
        for factor in texts
        if factor in others
    ]


def _contradictions(texts: Mapping[str, str]) -> list[GridProblem]:
    return [
        GridProblem(other, f"`{one}` and `{other}` exclude each other; remove one of them.")
        for one, other in ALTERNATIVES
        if one in texts and other in texts
    ]


def _pooled(texts: Mapping[str, str]) -> list[GridProblem]:
    if not {AT_ONCE, "layout"} <= set(texts):
        return []
    words = "`at_once` needs several targets, but a layout makes one target from a pool; remove `at_once` or `layout`."
    return [GridProblem(AT_ONCE, words)]


def _stopped_at_once(texts: Mapping[str, str]) -> list[GridProblem]:
    if not {AT_ONCE, "stop"} <= set(texts):
        return []
    words = "a stop rule would end each target at a different time; remove `stop` or `at_once`."
    return [GridProblem("stop", words)]


def _missing(parsed: Mapping[str, tuple[Value, ...]], texts: Mapping[str, str]) -> list[GridProblem]:
    engine = ENGINES[engine_name(texts)]
    if engine.REQUIRED not in texts:
        example = FACTORS[engine.REQUIRED].example
        return [GridProblem("", f"`{engine.REQUIRED}` is missing, e.g. `{example}`.")]
    if engine.SILENT_BY not in parsed:
        return []
    without = set.intersection(*_without(engine, parsed)) & set(texts)
    return [
        GridProblem(name, f"`{name}` has no effect at any level of `{engine.SILENT_BY}` in this part. Remove it.")
        for name in sorted(without - {engine.SILENT_BY})
    ]


def _unknown_kinds(part: Part) -> list[GridProblem]:
    kinds = [kind for kind in part.on if kind not in NAMED_KINDS]
    return [GridProblem("on", f"`on` names {', '.join(kinds)}; there are block, directory and file.")] if kinds else []
