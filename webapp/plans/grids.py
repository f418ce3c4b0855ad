"""Finds problems of a plan that do not depend on its targets, each with its place in the document.

Saving, importing and the editor show these problems. Problems that depend on the target (free space, the host's
policy, missing engines) are found by `expand` when targets are chosen.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from webapp.core.errors import Refusal
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
    STREAMS_ON,
    factor_of,
    name_layout,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.goal import goal_problems
from webapp.plans.load_points import load_problems, with_maxima
from webapp.plans.part_levels import (
    NAMED_KINDS,
    PLAN_PROBLEM,
    TOO_LARGE,
    GridProblem,
    StreamLevels,
    complete,
    factor_texts,
    kinds_of,
    parsed_levels,
    stream_engine,
    stream_problems,
    with_running,
)
from webapp.plans.points import Point, with_defaults
from webapp.plans.rules import NO_RULES, TRACK, AtOnce, Conditions, RuleRefused, Rules, RuleTexts, Selection
from webapp.plans.rules import parse as parse_rules
from webapp.plans.steps import steps_before
from webapp.plans.streams import of_stream
from webapp.plans.values import LEAST_RUNTIME_S, StopRuleText, Value
from worker.contract.workload import SNIA_ROUNDS, least_s
from worker.recipes import DEFAULT_ENGINE
from worker.recipes.base import write_stop_rule

# Parses the texts of a plan's parts into grids of levels, and collects all problems.
#
# A few bytes of text can describe billions of points. So everything is counted before it is made, and a plan over a
# limit has no levels or no points, only a problem that says so.

# Problems of a part besides those of its levels, its rules, and factors that exclude each other. Pure.

# Factors with one level if steps are done once, because the steps prepare the targets for all trials of the part.
_ONE_LEVEL = frozenset({
    BEFORE, AT_ONCE, HOSTS_AT_ONCE, STREAMS, STREAMS_ON, "size", "size_percent", "size_memory", "files", "offset",
    "offset_increment", "offset_percent", "offset_increment_percent",
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
    if not rules or "amount" in parsed or "passes" in parsed:
        return []
    least = min(int(level or 0) for level in parsed.get("runtime_min", (LEAST_RUNTIME_S,)))
    needed, name = min((least_s(rule, least), write_stop_rule(rule)) for rule in rules)
    longest = max(int(level or 0) for level in parsed.get("runtime", (FACTORS["runtime"].default,)))
    words = f"stop rule {name} needs at least {needed} s: use a longer runtime."
    return [GridProblem("stop", words)] if needed > longest else []


def _steps(part: Part, parsed: Mapping[str, tuple[Value, ...]]) -> list[GridProblem]:
    problems = []
    if part.before and BEFORE in part.factors:
        problems.append("the steps are given twice, as `before` of the part and as a factor. Remove one of them.")
    if any("," in line for line in part.before):
        problems.append("a step contains no comma. Write one step per line.")
    steps = [steps_before(str(level)) for level in parsed.get(BEFORE, ())]
    if any(each.first.purge for each in steps) and PURGE in parsed:
        problems.append("`purge` is a step and a factor. Remove one of them.")
    if any(each.once for each in steps):
        problems += [
            f"steps with `once` prepare the targets for all trials of the part, so `{name}` must have one level."
            for name, given in parsed.items()
            if len(given) > 1 and stream_and_factor(name)[1] in _ONE_LEVEL
        ]
        if name_layout(parsed):
            words = "a layout may be built again during a run. Leave out `once`, or create a part without layout."
            problems.append(words)
        if any(level != "none" for level in parsed.get(PURGE, ())):
            problems.append("`purge` before each trial removes what steps with `once` have written. Use `once purge`.")
    return [GridProblem(BEFORE, text) for text in problems]


def _unknown_kinds(part: Part) -> list[GridProblem]:
    kinds = [kind for kind in part.on if kind not in NAMED_KINDS]
    return [GridProblem("on", f"`on` names {', '.join(kinds)}; there are block, directory and file.")] if kinds else []


# The rules of a part with stored levels, and their problems. Pure.


def rules_of(part: Part, levels: Levels, engine: str, most: int) -> tuple[Rules, list[GridProblem]]:
    """The part's rules with stored levels, and their problems; `most` is the maximum of combinations."""
    sentences = [
        f"Rule {number}: {text}"
        for number, line in enumerate(part.rules, start=1)
        for text in _line_problems(line, levels, engine)
    ]
    if sentences:
        return NO_RULES, [GridProblem("rules", text) for text in sentences]
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
    unknown = [
        f"names `{name}`, which is not a factor of this part." for name in dict.fromkeys(named) if name not in levels
    ]
    return unknown + [
        problem.message for text in conditions for problem in parsed_levels(text, engine)[1] if problem.field in levels
    ]


def _rule_problems(texts: RuleTexts, levels: Levels, most: int) -> list[GridProblem]:
    """Problems of the rules together, whose factors are known."""
    zipped = [name for group in texts.zipped for name in group]
    sentences = [
        f"`{name}` is in two `zip` rules. Remove it from one of them."
        for name in dict.fromkeys(zipped)
        if zipped.count(name) > 1
    ]
    for group in texts.zipped:
        counts = {len(levels[name]) for name in group}
        if len(counts) > 1 or len(group) < 2:
            sentences.append(f"`zip {', '.join(group)}` needs two or more factors with the same number of levels.")
    if texts.one_at_a_time and all(len(levels[name]) == 1 for name in texts.one_at_a_time):
        sentences.append("`one at a time` needs a factor with several levels.")
    several = "streams" if STREAMS in levels else "rules"
    if (texts != RuleTexts() or STREAMS in levels) and math.prod(map(len, levels.values())) > most:
        words = f"{several} can select from at most {most:,} combinations in this part. Remove levels."
        return [*(GridProblem("rules", text) for text in sentences), GridProblem("rules", words, TOO_LARGE)]
    return [GridProblem("rules", text) for text in sentences]


def round_problems(document: PlanDocument) -> list[GridProblem]:
    sentences = []
    if document.order is not Order.LISTED:
        sentences.append(f"`{TRACK}` needs the listed order, so that all rounds are alike.")
    if document.repeats < SNIA_ROUNDS:
        sentences.append(f"`{TRACK}` looks at {SNIA_ROUNDS} rounds. Enter at least {SNIA_ROUNDS} repeats.")
    return [GridProblem("rules", text) for text in sentences]


# Factors of a part that exclude each other. Pure.


def contradictions(part: Part, texts: Mapping[str, str]) -> Iterator[GridProblem]:
    yield from _alternatives(texts)
    if HOSTS_AT_ONCE in texts:
        yield from _several_hosts(part, texts)
    if part.streams:
        yield from _several_streams(texts)


def _alternatives(texts: Mapping[str, str]) -> Iterator[GridProblem]:
    """Of the part, or of one of its streams."""
    for scope in dict.fromkeys(name.removesuffix(stream_and_factor(name)[1]) for name in texts):
        for first, second in ALTERNATIVES:
            if f"{scope}{first}" in texts and f"{scope}{second}" in texts:
                words = f"`{first}` and `{second}` exclude each other; remove one of them."
                yield GridProblem(f"{scope}{second}", words)


def _several_hosts(part: Part, texts: Mapping[str, str]) -> Iterator[GridProblem]:
    """Only fio waits for a common start."""
    several = (
        f"a trial uses several targets of one host or one target of several hosts; remove `{AT_ONCE}` or this factor."
    )
    problems = (
        (AT_ONCE in texts, several),
        ("layout" in texts, "a layout is built on pools of one host; remove this factor or `layout`."),
        (
            "stop" in texts,
            "no host knows the I/Os of all hosts, which a stop rule needs; remove `stop`.",
        ),
        (bool(part.streams), "streams with different workloads cannot use several hosts; remove this factor."),
        (engine_name(texts) != DEFAULT_ENGINE, "only fio can start on several hosts at once; remove this factor."),
    )
    for applies, words in problems:
        if applies:
            yield GridProblem(HOSTS_AT_ONCE, words)


def _several_streams(texts: Mapping[str, str]) -> Iterator[GridProblem]:
    if AT_ONCE in texts:
        yield GridProblem(
            AT_ONCE, "`at_once` runs one workload on several targets; use `streams_on` for streams, and remove it."
        )
    for name in texts:
        if stream_and_factor(name)[1] == "stop":
            yield GridProblem(name, "a stop rule looks at the sum of equal streams, and these differ; remove `stop`.")


MAX_TRIALS = 10_000  # of a run
MAX_VALUES = 500_000  # levels of all workloads of a run: its trials times the factors of all their streams
MAX_PLAN_LEVELS = 20_000  # of all factors of all parts, and of the conditions of rules
MAX_CROSSED = 100_000  # combinations from which the rules of all parts select
MAX_DECISIONS = 10_000  # combinations of levels that decide which other factors have an effect, of all parts


@dataclass(frozen=True)
class PartGrid:
    """A part, its levels (slowest factor first), and the problems in its text."""

    part: Part
    levels: dict[str, tuple[Value, ...]]
    found: tuple[GridProblem, ...]
    kinds: tuple[str, ...]  # kinds of target that it runs on
    rules: Rules = NO_RULES
    over: str = ""  # why no run can have all points of the plan; "" if one can

    @cached_property
    def selection(self) -> Selection | None:
        """Its points that the rules allow, not made; None if it has problems."""
        return Selection(self.levels, self.rules) if self.levels and not self.found else None

    @cached_property
    def points(self) -> list[Point]:
        """Its points that the rules allow; none of a plan with too many."""
        return self.selection.points() if self.selection is not None and not self.over else []

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"Part {self.part.name}: {problem.message}" for problem in self.found)

    @property
    def by_targets(self) -> Mapping[AtOnce, int]:
        """The number of points that the rules allow, by what their trials use at once."""
        return self.selection.by_targets if self.selection else {}

    @property
    def count(self) -> int:
        return sum(self.by_targets.values())

    @property
    def engine(self) -> PlanEngine:
        return engine_of({name: values[0] for name, values in self.levels.items() if name == ENGINE})


def grids_of(document: PlanDocument) -> tuple[PartGrid, ...]:
    """The grids of all parts. A large plan takes long here: compute them once and pass them on."""
    if _level_count(document) > MAX_PLAN_LEVELS:
        problem = GridProblem("", f"the plan has more than {MAX_PLAN_LEVELS:,} levels. Remove levels.", TOO_LARGE)
        return tuple(PartGrid(part, {}, (problem,), part.on) for part in document.parts)
    grids = tuple(part_grid(document, part) for part in document.parts)
    if sum(grid.selection.decisions for grid in grids if grid.selection) > MAX_DECISIONS:
        return tuple(_refused(grid, [_too_many_decisions()]) for grid in grids)
    over = _over_limit(document, grids)
    return tuple(replace(grid, over=over) for grid in grids) if over else grids


def _level_count(document: PlanDocument) -> int:
    """Levels of the common factors and of all parts; it ends above the maximum."""
    count = 0
    for engine, name, text in _texts(document):
        factor = factor_of(name, engine)
        count += levels.count(factor, text) if factor else 1
        if count > MAX_PLAN_LEVELS:
            break
    return count


def _texts(document: PlanDocument) -> Iterator[tuple[str, str, str]]:
    """Engine, factor and levels as typed."""
    yield from ((engine_name(document.common), name, text) for name, text in document.common.items())
    for part in document.parts:
        texts = factor_texts(document, part)
        for name, text in (*texts.items(), *_conditions(part)):
            yield stream_engine(texts, stream_and_factor(name)[0]), name, text


def _conditions(part: Part) -> Iterator[tuple[str, str]]:
    """The factors and levels that rules name."""
    for line in part.rules:
        try:
            texts = parse_rules([line])
        except RuleRefused:
            continue
        for condition in (*texts.excluded, *texts.only, *texts.tracked):
            yield from condition.items()


def _over_limit(document: PlanDocument, grids: Iterable[PartGrid]) -> str:
    """Why no run can have all trials of the plan on one target of each kind that it names; "" if one can.

    Such a plan is neither saved nor started, so that nobody waits for a plan that can never run.
    """
    trials: Counter[str] = Counter()
    values: Counter[str] = Counter()
    for grid in grids:
        for kind in set(grid.kinds):
            trials[kind] += document.repeats * grid.count
            values[kind] += document.repeats * grid.count * _values_of(grid)
    if (most := max(trials.values(), default=0)) > MAX_TRIALS:
        return too_many_trials(most)
    if (most := max(values.values(), default=0)) > MAX_VALUES:
        return f"The trials have {most:,} levels in their streams, more than {MAX_VALUES:,}. Remove levels or repeats."
    return ""


def _values_of(grid: PartGrid) -> int:
    """The most factors of a trial, counted for each of its streams."""
    streams = [stream.name for stream in grid.part.streams] if grid.levels else []
    engines = {name: str((grid.levels.get(f"{name}.{ENGINE}") or grid.levels[ENGINE])[0]) for name in streams}
    of_streams = [len(of_stream(grid.levels, name, engine)) for name, engine in engines.items()]
    return sum(of_streams) or len(grid.levels)


def too_many_trials(count: int) -> str:
    return f"{count:,} trials exceed the maximum of {MAX_TRIALS:,} per run. Remove levels or repeats."


def part_grid(document: PlanDocument, part: Part) -> PartGrid:
    texts = factor_texts(document, part)
    parsed, problems = parsed_levels(texts)
    problems += [GridProblem(*problem) for problem in load_problems(document, part, parsed)]
    if part.streams:
        parsed, unknown = with_running(part, parsed)
        problems += unknown
    problems += [*contradictions(part, texts), *part_problems(part, parsed, texts), *stream_problems(part, texts)]
    if not problems:
        part, parsed = with_maxima(part, parsed)
    completed = {} if problems else _completed(document, part, parsed, texts)
    most = MAX_CROSSED // max(1, sum(bool(each.rules or each.streams) for each in document.parts))
    rules, wrong = (NO_RULES, []) if problems else rules_of(part, completed, engine_name(texts), most)
    wrong += round_problems(document) if rules.tracked else []
    grid = PartGrid(part, {} if wrong else completed, (*problems, *wrong), kinds_of(part, texts), rules)
    return _refused(grid, _selection_problems(grid, grid.selection)) if grid.selection else grid


def _selection_problems(grid: PartGrid, selection: Selection) -> Iterator[GridProblem]:
    if selection.decisions > MAX_DECISIONS:
        yield _too_many_decisions()
    elif grid.part.rules and not any(selection.by_targets.values()):
        yield GridProblem("rules", "the rules leave out all points. Change or remove a rule.")
    elif grid.rules.tracked and not selection.tracks_any():
        yield GridProblem("rules", f"no point meets `{TRACK}`. Change this rule.")


def _too_many_decisions() -> GridProblem:
    words = f"more than {MAX_DECISIONS:,} combinations of patterns, schedulers and streams. Remove levels."
    return GridProblem("", words, TOO_LARGE)


def _refused(grid: PartGrid, problems: Iterable[GridProblem]) -> PartGrid:
    return replace(grid, found=(*grid.found, *problems))


def _completed(document: PlanDocument, part: Part, parsed: StreamLevels, texts: Mapping[str, str]) -> StreamLevels:
    sequence = document.sequence if document.order is Order.LISTED else ()
    if part.streams:
        return complete(part, parsed, texts, drop_caches=document.drop_caches, sequence=sequence)
    return with_defaults(parsed, drop_caches=document.drop_caches, sequence=sequence)


_SHOWN = 5
MAX_PROBLEMS = 200
_OF_STOPS = frozenset({"stop", "runtime", "runtime_min", "amount", "passes", "at_once"})


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
        super().__init__(code, " ".join(str(problem) for problem in problems[:_SHOWN]) + more)
        self.problems = problems


def problem_code(problems: Sequence[FieldProblem]) -> str:
    """The code of problems, as that of an expansion; "" without problems."""
    if any(problem.code == TOO_LARGE for problem in problems):
        return TOO_LARGE
    return PLAN_PROBLEM if problems else ""


def refuse_unsound(document: PlanDocument) -> None:
    """Raises PlanRefused."""
    if problems := document_problems(document):
        raise PlanRefused(problems)


def document_problems(document: PlanDocument, grids: Sequence[PartGrid] | None = None) -> tuple[FieldProblem, ...]:
    """Problems in the order of the document, at most MAX_PROBLEMS; a problem of a common factor appears once."""
    grids = grids_of(document) if grids is None else grids
    if too_large := next(
        (problem for grid in grids for problem in grid.found if problem.code and not problem.field), None
    ):
        return (FieldProblem("", sentence(too_large.message), code=too_large.code),)
    over = next((FieldProblem("", grid.over, code=TOO_LARGE) for grid in grids if grid.over), None)
    _, common = parsed_levels(document.common)
    parts = _parts(document, common, grids)
    problems = (
        *_titles(document),
        *_undecided(document),
        *(FieldProblem(*problem) for problem in goal_problems(document, grids[0].levels)),
        *_common(common),
        *_unused(document),
        *parts,
        *([over] if over else []),
    )
    if len(problems) <= MAX_PROBLEMS:
        return problems
    return (*problems[:MAX_PROBLEMS], FieldProblem("", f"The plan has {len(problems) - MAX_PROBLEMS:,} more problems."))


def _titles(document: PlanDocument) -> list[FieldProblem]:
    return [] if document.title.strip() else [FieldProblem("title", "Give the plan a title.")]


def _undecided(document: PlanDocument) -> list[FieldProblem]:
    """Factors to decide that the plan does not have."""
    absent = [name for name in document.decide if not document.names(name)]
    if not absent:
        return []
    return [FieldProblem("decide", f"No part has the factor {', '.join(absent)}. Remove it here, or add it to a part.")]


def _common(problems: Sequence[GridProblem]) -> list[FieldProblem]:
    return [FieldProblem(f"common.{problem.field}", sentence(problem.message)) for problem in problems]


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
    common_fields = {problem.field for problem in common}
    names = Counter(part.name for part in document.parts)
    problems = []
    for number, grid in enumerate(grids):
        part = grid.part
        if not part.name.strip():
            problems.append(FieldProblem(f"parts.{number}.name", "Give the part a name."))
        elif names[part.name] > 1:
            problems.append(
                FieldProblem(f"parts.{number}.name", f"Two parts are called {part.name}. Rename one of them.")
            )
        if not part.on:
            problems.append(FieldProblem(f"parts.{number}.on", "Choose at least one kind of target.", part.name))
        problems += [
            _problem(_place(number, problem.field, part, document), problem, part)
            for problem in grid.found
            if problem.field in part.factors or problem.field not in common_fields
        ]
    return list(dict.fromkeys(problems))


def _problem(place: str, problem: GridProblem, part: Part) -> FieldProblem:
    return FieldProblem(
        place, sentence(problem.message), "" if place.startswith("common.") else part.name, problem.code
    )


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
