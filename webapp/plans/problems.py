"""Finds problems of a plan that do not depend on its targets, each with its place in the document.

Saving, importing and the editor show these problems. Problems that depend on the target (free space, the host's
policy, missing engines) are found by `expand` when targets are chosen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.core.errors import Refusal
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINES, engine_name
from webapp.plans.factors import BEFORE
from webapp.plans.grid_problem import PLAN_PROBLEM, TOO_LARGE, GridProblem
from webapp.plans.grids import PartGrid, grids_of
from webapp.plans.part_levels import parsed_levels

_SHOWN = 5
MAX_PROBLEMS = 200
_OF_STOPS = frozenset({"stop", "runtime", "runtime_min", "amount", "at_once"})


@dataclass(frozen=True)
class FieldProblem:
    """`place`: title, common.<factor>, parts.<n> (from 0), parts.<n>.factors.<factor>,
    parts.<n>.streams.<stream>.<factor>, or name, on, rules, before and streams of a part: parts.<n>.name."""

    place: str
    message: str
    part: str = ""  # name of the part, for messages without context
    code: str = ""  # TOO_LARGE, or "" for all other problems

    def __str__(self) -> str:
        return f"Part {self.part}: {self.message}" if self.part else self.message


class PlanRefused(Refusal):
    """A plan that cannot run on any target."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        more = f" And {len(problems) - _SHOWN} more." if len(problems) > _SHOWN else ""
        code = TOO_LARGE if problem_code(problems) == TOO_LARGE else "plan_refused"
        super().__init__(code, " ".join(str(one) for one in problems[:_SHOWN]) + more)
        self.problems = problems


def problem_code(problems: Sequence[FieldProblem]) -> str:
    """The code of problems, as that of an expansion; "" without problems."""
    if any(one.code == TOO_LARGE for one in problems):
        return TOO_LARGE
    return PLAN_PROBLEM if problems else ""


def refuse_unsound(document: PlanDocument) -> None:
    """Raises PlanRefused."""
    if problems := document_problems(document):
        raise PlanRefused(problems)


def document_problems(document: PlanDocument, grids: Sequence[PartGrid] | None = None) -> tuple[FieldProblem, ...]:
    """Problems in the order of the document, at most MAX_PROBLEMS; a problem of a common factor appears once."""
    grids = grids_of(document) if grids is None else grids
    if too_large := next((one for grid in grids for one in grid.found if one.code and not one.field), None):
        return (FieldProblem("", sentence(too_large.message), code=too_large.code),)
    over = next((FieldProblem("", grid.over, code=TOO_LARGE) for grid in grids if grid.over), None)
    _, common = parsed_levels(document.common)
    parts = _parts(document, common, grids)
    problems = (*_titles(document), *_common(common), *_unused(document), *parts, *([over] if over else []))
    if len(problems) <= MAX_PROBLEMS:
        return problems
    return (*problems[:MAX_PROBLEMS], FieldProblem("", f"The plan has {len(problems) - MAX_PROBLEMS:,} more problems."))


def _titles(document: PlanDocument) -> list[FieldProblem]:
    return [] if document.title.strip() else [FieldProblem("title", "Give the plan a title.")]


def _common(problems: Sequence[GridProblem]) -> list[FieldProblem]:
    return [FieldProblem(f"common.{one.field}", sentence(one.message)) for one in problems]


def _unused(document: PlanDocument) -> list[FieldProblem]:
    """Common factors that belong to an engine that no part uses."""
    used = {
        engine_name(document.common | part.factors | stream)
        for part in document.parts
        for stream in ([each.factors for each in part.streams] or [{}])
    }
    by_engine = {name: {factor.name for factor in engine.FACTORS} for name, engine in ENGINES.items()}
    silent = set[str]().union(*by_engine.values()).difference(*(by_engine[name] for name in used))
    labels = " or ".join(ENGINES[name].LABEL for name in sorted(used))
    return [
        FieldProblem(f"common.{name}", f"`{name}` is not a factor of {labels}, the engine of all parts. Remove it.")
        for name in document.common
        if name in silent
    ]


def _parts(document: PlanDocument, common: Sequence[GridProblem], grids: Sequence[PartGrid]) -> list[FieldProblem]:
    said = {(one.field, one.message) for one in common}
    names = Counter(part.name for part in document.parts)
    found = []
    for number, grid in enumerate(grids):
        part = grid.part
        if not part.name.strip():
            found.append(FieldProblem(f"parts.{number}.name", "Give the part a name."))
        elif names[part.name] > 1:
            found.append(FieldProblem(f"parts.{number}.name", f"Two parts are called {part.name}. Rename one of them."))
        if not part.on:
            found.append(FieldProblem(f"parts.{number}.on", "Choose at least one kind of target.", part.name))
        found += [
            _problem(_place(number, one.field, part, document), one, part)
            for one in grid.found
            if one.field in part.factors or (one.field, one.message) not in said
        ]
    return list(dict.fromkeys(found))


def _problem(place: str, one: GridProblem, part: Part) -> FieldProblem:
    return FieldProblem(place, sentence(one.message), "" if place.startswith("common.") else part.name, one.code)


def _place(number: int, field: str, part: Part, document: PlanDocument) -> str:
    """The place of the factor if the part or a stream names it; else the part, which causes the conflict."""
    if field in ("on", "rules", "streams") or (field == BEFORE and part.before):
        return f"parts.{number}.{field}"
    if field in {f"{stream.name}.{name}" for stream in part.streams for name in stream.factors}:
        return f"parts.{number}.streams.{field}"
    if field == "stop" and part.factors.keys().isdisjoint(_OF_STOPS) and field in document.common:
        return "common.stop"
    return f"parts.{number}.factors.{field}" if field in part.factors else f"parts.{number}"


def sentence(message: str) -> str:
    return message[:1].upper() + message[1:]
