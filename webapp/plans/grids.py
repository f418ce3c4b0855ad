"""Parses the texts of a plan's parts into grids of levels, and collects all problems.

A few bytes of text can describe billions of points. So everything is counted before it is made, and a plan over a limit
has no levels or no points, only a problem that says so.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from webapp.plans import levels
from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.engines import ENGINE, engine_name, engine_of
from webapp.plans.engines.base import Levels, PlanEngine
from webapp.plans.factors import ALTERNATIVES, AT_ONCE, HOSTS_AT_ONCE, STREAMS, factor_of, stream_and_factor
from webapp.plans.grid_problem import TOO_LARGE, GridProblem
from webapp.plans.part_levels import factor_texts, kinds_of, parsed_levels
from webapp.plans.part_problems import part_problems
from webapp.plans.points import Point, with_defaults
from webapp.plans.selection import NO_RULES, TRACK, AtOnce, Conditions, RuleRefused, Rules, RuleTexts, Selection
from webapp.plans.selection import parse as parse_rules
from webapp.plans.stream_grids import StreamLevels, complete, stream_engine, stream_problems, with_running
from webapp.plans.streams import of_stream
from webapp.plans.values import Value
from worker.contract.stopping import SNIA_ROUNDS
from worker.recipes import DEFAULT_ENGINE

# The rules of a part with stored levels, and their problems. Pure.


def rules_of(part: Part, levels: Levels, engine: str, most: int) -> tuple[Rules, list[GridProblem]]:
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
        words = f"{several} can select from at most {most:,} combinations in this part. Remove levels."
        return [*(GridProblem("rules", text) for text in said), GridProblem("rules", words, TOO_LARGE)]
    return [GridProblem("rules", text) for text in said]


def round_problems(document: PlanDocument) -> list[GridProblem]:
    said = []
    if document.order is not Order.LISTED:
        said.append(f"`{TRACK}` needs the listed order, so that all rounds are alike.")
    if document.repeats < SNIA_ROUNDS:
        said.append(f"`{TRACK}` looks at {SNIA_ROUNDS} rounds. Enter at least {SNIA_ROUNDS} repeats.")
    return [GridProblem("rules", text) for text in said]


# Factors of a part that exclude each other. Pure.

_RELATIVE = ("size_percent", "size_memory")


def contradictions(part: Part, texts: Mapping[str, str]) -> Iterator[GridProblem]:
    yield from _alternatives(texts)
    if HOSTS_AT_ONCE in texts:
        yield from _several_hosts(part, texts)
    if part.streams:
        yield from _several_streams(texts)


def _alternatives(texts: Mapping[str, str]) -> Iterator[GridProblem]:
    """Of the part, or of one of its streams."""
    for scope in dict.fromkeys(name.removesuffix(stream_and_factor(name)[1]) for name in texts):
        for one, other in ALTERNATIVES:
            if f"{scope}{one}" in texts and f"{scope}{other}" in texts:
                words = f"`{one}` and `{other}` exclude each other; remove one of them."
                yield GridProblem(f"{scope}{other}", words)


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
        if stream_and_factor(name)[1] in _RELATIVE:
            yield GridProblem(name, "streams need a size in bytes; use `size`.")


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
        return tuple(f"Part {self.part.name}: {one.message}" for one in self.found)

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
    if part.streams:
        parsed, unknown = with_running(part, parsed)
        problems += unknown
    problems += [*contradictions(part, texts), *part_problems(part, parsed, texts), *stream_problems(part, texts)]
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
