"""The texts of a part's factors, and their levels. Pure."""

from collections.abc import Mapping

from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import engine_name
from webapp.plans.factors import (
    ALTERNATIVES,
    BEFORE,
    FactorKind,
    closest,
    factor_of,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.grid_problem import GridProblem
from webapp.plans.stream_grids import stream_engine, stream_texts
from webapp.plans.values import Value
from worker.contract.workload import TargetKind

# Kinds of target that a part may name. Pools are used by parts with a layout.
NAMED_KINDS = (TargetKind.BLOCK, TargetKind.DIRECTORY, TargetKind.FILE)
MAX_SUGGESTIONS = 5  # each takes almost a millisecond
MAX_MESSAGE = 300  # characters; a text of levels can have 1,000


def factor_texts(document: PlanDocument, part: Part) -> dict[str, str]:
    """Factor name -> levels as typed. The part overrides the common factors and their alternatives."""
    overruled = {other for pair in ALTERNATIVES for one, other in (pair, pair[::-1]) if one in part.factors}
    others = set() if part.streams else of_other_engines(engine_name(document.common | part.factors))
    common = {name: text for name, text in document.common.items() if name not in overruled | others}
    steps = {BEFORE: "; ".join(part.before)} if part.before else {}
    return stream_texts(part, common | part.factors | steps)


def kinds_of(part: Part, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Kinds of target that a part runs on. A part with a layout runs only on pools."""
    return (TargetKind.POOL.value,) if "layout" in texts else part.on


def parsed_levels(texts: Mapping[str, str], engine: str = "") -> tuple[dict[str, tuple[Value, ...]], list[GridProblem]]:
    """Levels of each factor with valid text, and the problems of the others. The engine is by default that of the
    texts."""
    parsed: dict[str, tuple[Value, ...]] = {}
    problems: list[GridProblem] = []
    for name, text in texts.items():
        factor = factor_of(name, engine or stream_engine(texts, stream_and_factor(name)[0]))
        if factor is None or factor.kind is FactorKind.CHANGE:
            meant = closest(name) if len(problems) < MAX_SUGGESTIONS else ""
            problems.append(GridProblem(name, _no_such_factor(name, meant)))
            continue
        try:
            parsed[name] = levels.parse(factor, text)
        except levels.LevelError as error:
            problems.append(GridProblem(name, _shortened(str(error))))
    return parsed, problems


def _no_such_factor(name: str, meant: str) -> str:
    return f"there is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} …"
