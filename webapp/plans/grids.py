"""Parses the texts of a plan's parts into grids of levels, and collects all problems."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from webapp.plans import levels
from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.engines import ENGINE, ENGINES, engine_name, engine_of
from webapp.plans.engines.base import Levels, PlanEngine
from webapp.plans.factors import (
    ALTERNATIVES,
    AT_ONCE,
    BEFORE,
    FACTORS,
    HOSTS_AT_ONCE,
    PURGE,
    STREAMS,
    FactorKind,
    closest,
    factor_of,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.grid_problem import GridProblem
from webapp.plans.points import Point, with_defaults
from webapp.plans.rules import NO_RULES, TRACK, Conditions, RuleRefused, Rules, RuleTexts, selected
from webapp.plans.rules import parse as parse_rules
from webapp.plans.steps import steps_before
from webapp.plans.stop_rule_values import StopRuleText
from webapp.plans.stream_grids import (
    StreamLevels,
    complete,
    stream_engine,
    stream_problems,
    stream_texts,
    with_running,
)
from webapp.plans.values import Value
from worker.contract.stopping import SNIA_ROUNDS, least_s
from worker.contract.workload import TargetKind
from worker.recipes import DEFAULT_ENGINE
from worker.recipes.stop_rules import write

# Factors with one level if steps are done once, because the steps prepare the targets for all trials of the part.
_ONE_LEVEL = (BEFORE, AT_ONCE, "size", "size_percent", "size_memory", "files", "offset", "offset_increment")

# Kinds of target that a part may name. Pools are used by parts with a layout.
NAMED_KINDS = (TargetKind.BLOCK, TargetKind.DIRECTORY, TargetKind.FILE)

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
    others = set() if part.streams else of_other_engines(engine_name(document.common | part.factors))
    common = {name: text for name, text in document.common.items() if name not in overruled | others}
    steps = {BEFORE: "; ".join(part.before)} if part.before else {}
    return stream_texts(part, common | part.factors | steps)


def grids_of(document: PlanDocument) -> tuple[PartGrid, ...]:
    """The grids of all parts. A large plan takes long here: compute them once and pass them on."""
    return tuple(part_grid(document, part) for part in document.parts)


def part_grid(document: PlanDocument, part: Part) -> PartGrid:
    texts = factor_texts(document, part)
    parsed, problems = parsed_levels(texts)
    if part.streams:
        parsed, unknown = with_running(part, parsed)
        problems += unknown
    else:
        problems += _engine_problems(texts)
    problems += _contradictions(texts) + _pooled(texts)
    problems += _stopped_at_once(texts) + _stopped_too_late(parsed) + _on_several_hosts(part, texts)
    problems += [] if part.streams else _missing(parsed, texts)
    problems += _steps(part, parsed) + _unknown_kinds(part) + stream_problems(part, texts)
    levels = {} if problems else _completed(document, part, parsed, texts)
    most = MAX_CROSSED // max(1, sum(bool(each.rules or each.streams) for each in document.parts))
    wanted, wrong = (NO_RULES, []) if problems else _rules(part, levels, engine_name(texts), most)
    wrong += _round_problems(document) if wanted.tracked else []
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


def _round_problems(document: PlanDocument) -> list[GridProblem]:
    said = []
    if document.order is not Order.LISTED:
        said.append(f"`{TRACK}` needs the listed order, so that all rounds are alike.")
    if document.repeats < SNIA_ROUNDS:
        said.append(f"`{TRACK}` looks at {SNIA_ROUNDS} rounds. Enter at least {SNIA_ROUNDS} repeats.")
    return [GridProblem("rules", text) for text in said]


def _rules(part: Part, levels: Levels, engine: str, most: int) -> tuple[Rules, list[GridProblem]]:
    """The part's rules with stored levels, and their problems; `most` is the maximum of combinations."""
    said = [
        f"Rule {number}: {text}"
        for number, line in enumerate(part.rules, start=1)
        for text in _line_problems(line, levels, engine)
    ]
    if said:
        return NO_RULES, [GridProblem("rules", text) for text in said]
    texts = parse_rules(part.rules)
    if problems := _rule_problems(texts, levels, most):
        return NO_RULES, problems
    excluded, only, tracked = (
        tuple(_condition(part, text, engine) for text in each) for each in (texts.excluded, texts.only, texts.tracked)
    )
    return Rules(excluded, only, texts.zipped, texts.one_at_a_time, tracked), []


def _condition(part: Part, text: Conditions, engine: str) -> dict[str, frozenset[Value]]:
    parsed, _ = parsed_levels(text, engine)
    parsed = with_running(part, parsed)[0] if STREAMS in parsed else parsed
    return {name: frozenset(values) for name, values in parsed.items()}


def _line_problems(line: str, levels: Levels, engine: str) -> list[str]:
    """Problems of one rule."""
    try:
        texts = parse_rules([line])
    except RuleRefused as refused:
        return [str(refused)]
    conditions = (*texts.excluded, *texts.only, *texts.tracked)
    named = [*chain(*conditions, *texts.zipped, texts.one_at_a_time)]
    said = [
        f"names `{name}`, which is not a factor of this part." for name in dict.fromkeys(named) if name not in levels
    ]
    return said + [one.message for text in conditions for one in parsed_levels(text, engine)[1] if one.field in levels]


def _rule_problems(texts: RuleTexts, levels: Levels, most: int) -> list[GridProblem]:
    """Problems of the rules together, whose factors are known."""
    zipped = [name for group in texts.zipped for name in group]
    said = [
        f"`{name}` is in two `zip` rules. Remove it from one of them."
        for name in dict.fromkeys(zipped)
        if zipped.count(name) > 1
    ]
    for group in texts.zipped:
        counts = {len(levels[name]) for name in group}
        if len(counts) > 1 or len(group) < 2:
            said.append(f"`zip {', '.join(group)}` needs two or more factors with the same number of levels.")
    if texts.one_at_a_time and all(len(levels[name]) == 1 for name in texts.one_at_a_time):
        said.append("`one at a time` needs a factor with several levels.")
    several = "streams" if STREAMS in levels else "rules"
    if (texts != RuleTexts() or STREAMS in levels) and math.prod(map(len, levels.values())) > most:
        said.append(f"{several} can select from at most {most:,} combinations in this part. Remove levels.")
    return [GridProblem("rules", text) for text in said]


def kinds_of(part: Part, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Kinds of target that a part runs on. A part with a layout runs only on pools."""
    return (TargetKind.POOL.value,) if "layout" in texts else part.on


def parsed_levels(texts: Mapping[str, str], engine: str = "") -> tuple[dict[str, tuple[Value, ...]], list[GridProblem]]:
    """Levels of each factor with valid text, and the problems of the others. The engine is by default that of the
    texts."""
    parsed: dict[str, tuple[Value, ...]] = {}
    problems = []
    for name, text in texts.items():
        factor = factor_of(name, engine or stream_engine(texts, stream_and_factor(name)[0]))
        if factor is None or factor.kind is FactorKind.CHANGE:
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
    others = of_other_engines(name)
    return [
        GridProblem(factor, f"`{factor}` is not a factor of {ENGINES[name].LABEL}; remove it.")
        for factor in texts
        if factor in others
    ]


def _contradictions(texts: Mapping[str, str]) -> list[GridProblem]:
    """Alternatives of the part, or of one of its streams."""
    scopes = dict.fromkeys(name.removesuffix(stream_and_factor(name)[1]) for name in texts)
    return [
        GridProblem(f"{scope}{other}", f"`{one}` and `{other}` exclude each other; remove one of them.")
        for scope in scopes
        for one, other in ALTERNATIVES
        if f"{scope}{one}" in texts and f"{scope}{other}" in texts
    ]


def _pooled(texts: Mapping[str, str]) -> list[GridProblem]:
    words = "`{}` needs several targets, but a layout makes one target from a pool; remove `{}` or `layout`."
    return [GridProblem(name, words.format(name, name)) for name in _together(texts) if "layout" in texts]


def _stopped_at_once(texts: Mapping[str, str]) -> list[GridProblem]:
    words = "a stop rule would end each target at a different time; remove `stop` or `{}`."
    return [GridProblem("stop", words.format(name)) for name in _together(texts) if "stop" in texts]


def _on_several_hosts(part: Part, texts: Mapping[str, str]) -> list[GridProblem]:
    """Only fio waits for a common start, and hosts do not share the steps that are done once for a part."""
    if HOSTS_AT_ONCE not in texts:
        return []
    several = (
        f"a trial uses several targets of one host or one target of several hosts; remove `{AT_ONCE}` or this factor."
    )
    problems = (
        (AT_ONCE in texts, several),
        (bool(part.streams), "streams with different workloads cannot use several hosts; remove this factor."),
        (BEFORE in texts, f"steps before trials cannot be used with hosts at once; remove `{BEFORE}` or this factor."),
        (engine_name(texts) != DEFAULT_ENGINE, "only fio can start on several hosts at once; remove this factor."),
    )
    return [GridProblem(HOSTS_AT_ONCE, words) for applies, words in problems if applies]


def _together(texts: Mapping[str, str]) -> list[str]:
    """The factors that make a trial use several targets."""
    return [name for name in (AT_ONCE, HOSTS_AT_ONCE) if name in texts]


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
    if any(each.whole.purge for each in steps) and PURGE in parsed:
        said.append("`purge` is a step and a factor. Remove one of them.")
    if any(each.once for each in steps):
        said += [
            f"steps with `once` prepare the targets for all trials of the part, so `{name}` must have one level."
            for name in _ONE_LEVEL
            if len(parsed.get(name, ())) > 1
        ]
        if "layout" in parsed:
            said.append("a layout may be built again during a run. Leave out `once`, or create a part without layout.")
        if any(level != "none" for level in parsed.get(PURGE, ())):
            said.append("`purge` before each trial removes what steps with `once` have written. Use `once purge`.")
    return [GridProblem(BEFORE, text) for text in said]


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
