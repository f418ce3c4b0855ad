"""Problems of a part besides those of its levels, its rules, and factors that exclude each other. Pure."""

from collections.abc import Mapping

from webapp.plans.document import Part
from webapp.plans.engines import ENGINE, ENGINES, engine_name
from webapp.plans.engines.base import Levels, PlanEngine
from webapp.plans.engines.fio import StopRuleText
from webapp.plans.factors import (
    AT_ONCE,
    BEFORE,
    FACTORS,
    HOSTS_AT_ONCE,
    PURGE,
    STREAMS,
    STREAMS_ON,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.grid_problem import GridProblem
from webapp.plans.part_levels import NAMED_KINDS
from webapp.plans.steps import steps_before
from webapp.plans.values import Value
from worker.contract.stopping import least_s
from worker.recipes.stop_rules import write

# Factors with one level if steps are done once, because the steps prepare the targets for all trials of the part.
_ONE_LEVEL = frozenset({
    BEFORE, AT_ONCE, HOSTS_AT_ONCE, STREAMS, STREAMS_ON, "size", "size_percent", "size_memory", "files", "offset",
    "offset_increment",
})  # fmt: skip


def part_problems(part: Part, parsed: Levels, texts: Mapping[str, str]) -> list[GridProblem]:
    of_engine = [] if part.streams else _engine_problems(texts) + _missing(parsed, texts)
    return [*of_engine, *_stopped_too_late(parsed), *_steps(part, parsed), *_unknown_kinds(part)]


def _engine_problems(texts: Mapping[str, str]) -> list[GridProblem]:
    if len(texts.get(ENGINE, "").split(",")) > 1:
        return [GridProblem(ENGINE, "a part has one engine; create one part per engine.")]
    name = engine_name(texts)
    if ENGINES[name].WORKLOAD.needs_array:
        words = f"{ENGINES[name].LABEL} runs beside a workload: make it a stream of the part, and add a second stream."
        return [GridProblem(ENGINE, words)]
    others = of_other_engines(name)
    return [
        GridProblem(factor, f"`{factor}` is not a factor of {ENGINES[name].LABEL}; remove it.")
        for factor in texts
        if factor in others
    ]


def _missing(parsed: Mapping[str, tuple[Value, ...]], texts: Mapping[str, str]) -> list[GridProblem]:
    engine = ENGINES[engine_name(texts)]
    if engine.REQUIRED not in texts:
        example = FACTORS[engine.REQUIRED].example
        return [GridProblem("", f"`{engine.REQUIRED}` is missing, e.g. `{example}`.")]
    if engine.SILENT_BY not in parsed:
        return []
    without = set.intersection(*_silent_by_level(engine, parsed)) & set(texts)
    return [
        GridProblem(name, f"`{name}` has no effect at any level of `{engine.SILENT_BY}` in this part. Remove it.")
        for name in sorted(without - {engine.SILENT_BY})
    ]


def _silent_by_level(engine: PlanEngine, levels: Levels) -> list[set[str]]:
    """For each level of `SILENT_BY`, the factors without effect, and itself."""
    by = engine.SILENT_BY
    if by not in levels:
        return [set()]
    return [{by, *engine.silent({by: level})} for level in levels[by]]


def _stopped_too_late(parsed: Levels) -> list[GridProblem]:
    """Every stop rule needs more time than the longest run time."""
    rules = [rule for level in parsed.get("stop", ()) if (rule := StopRuleText().rule(level))]
    if not rules or "amount" in parsed:
        return []
    least = min(int(level or 0) for level in parsed.get("runtime_min", (5,)))
    needed, name = min((least_s(rule, least), write(rule)) for rule in rules)
    longest = max(int(level or 0) for level in parsed.get("runtime", (FACTORS["runtime"].default,)))
    words = f"stop rule {name} needs at least {needed} s: use a longer runtime."
    return [GridProblem("stop", words)] if needed > longest else []


def _steps(part: Part, parsed: Mapping[str, tuple[Value, ...]]) -> list[GridProblem]:
    said = []
    if part.before and BEFORE in part.factors:
        said.append("the steps are given twice, as `before` of the part and as a factor. Remove one of them.")
    if any("," in line for line in part.before):
        said.append("a step contains no comma. Write one step per line.")
    steps = [steps_before(str(level)) for level in parsed.get(BEFORE, ())]
    if any(each.first.purge for each in steps) and PURGE in parsed:
        said.append("`purge` is a step and a factor. Remove one of them.")
    if any(each.once for each in steps):
        said += [
            f"steps with `once` prepare the targets for all trials of the part, so `{name}` must have one level."
            for name, given in parsed.items()
            if len(given) > 1 and stream_and_factor(name)[1] in _ONE_LEVEL
        ]
        if "layout" in parsed:
            said.append("a layout may be built again during a run. Leave out `once`, or create a part without layout.")
        if any(level != "none" for level in parsed.get(PURGE, ())):
            said.append("`purge` before each trial removes what steps with `once` have written. Use `once purge`.")
    return [GridProblem(BEFORE, text) for text in said]


def _unknown_kinds(part: Part) -> list[GridProblem]:
    kinds = [kind for kind in part.on if kind not in NAMED_KINDS]
    return [GridProblem("on", f"`on` names {', '.join(kinds)}; there are block, directory and file.")] if kinds else []
