"""The rules of a part with stored levels, and their problems. Pure."""

import math
from itertools import chain

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.engines.base import Levels
from webapp.plans.factors import STREAMS
from webapp.plans.grid_problem import TOO_LARGE, GridProblem
from webapp.plans.part_levels import parsed_levels
from webapp.plans.rules import NO_RULES, TRACK, Conditions, RuleRefused, Rules, RuleTexts
from webapp.plans.rules import parse as parse_rules
from webapp.plans.stream_grids import with_running
from webapp.plans.values import Value
from worker.contract.stopping import SNIA_ROUNDS


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
