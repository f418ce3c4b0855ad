"""The goal of a plan that searches for its best combination of levels, instead of measuring all of them. Pure.

    goal: highest iops where latency_p99 <= 1ms
    budget: 80 trials, 30 minutes

The combinations are those of the plan's only part. Each target is searched by itself, with that many trials, which are
chosen while the run goes on (`analysis.searching`). The time counts from the start of the run, without its pauses; the
targets of a host share it.

With the factor `load`, the search is for the highest share whose latency stays within the limit (`analysis.bisection`).
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webapp.plans.document import MAX_BUDGET, Order, PlanDocument
from webapp.plans.engines import engine_name
from webapp.plans.factors import AT_ONCE, HOSTS_AT_ONCE
from webapp.plans.load import LOAD
from webapp.plans.rules import TRACK
from webapp.plans.values import Value
from worker.contract.items import Unit
from worker.recipes import ENGINES

LEAST_BUDGET = 32  # trials: exploration, and four rounds of two finalists
SHARE = 0.15  # of the combinations: the budget, if the plan states none
USUAL_BUDGET = 80  # at least, likewise
MAX_COMBINATIONS = 5_000  # a search draws surfaces over all of them
EXAMPLE = "highest iops where latency_p99 <= 1ms"

_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_THOUSANDS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_RATES = {f"{multiple}{end}": factor for multiple, factor in _THOUSANDS.items() for end in ("", "b/s")}
_SECONDS = {end: factor / 1e9 for end, factor in _TIMES.items()}
_OF_UNIT: Mapping[Unit, Mapping[str, float]] = {
    Unit.SECONDS: _SECONDS, Unit.BYTES_PER_S: _RATES, Unit.PER_S: _THOUSANDS, Unit.PERCENT: {"": 1.0, "%": 1.0},
    Unit.COUNT: _THOUSANDS,
}  # fmt: skip
_LATENCIES = ("mean", "p50", "p95", "p99", "p999", "min", "max", "stddev")
# Suffixes of a limit, by the key of its metric in `results.metrics`, with the factor to the stored unit.
SUFFIXES: Mapping[str, Mapping[str, float]] = {
    "iops": _THOUSANDS,
    "bytes_per_s": _RATES,
    **{f"latency_{name}": _TIMES for name in _LATENCIES},
    **{metric.name: _OF_UNIT[metric.unit] for engine in ENGINES.values() for metric in engine.METRICS},
}
_GOAL = re.compile(
    r"(?P<wanted>highest|lowest) (?P<metric>\w+)"
    r"(?: where (?P<limited>\w+) ?(?P<sign><=|>=) ?(?P<number>\d+(?:\.\d+)?) ?(?P<suffix>\S*))?"
)


class GoalRefused(ValueError):
    """The text is not a goal; the message says why."""


@dataclass(frozen=True)
class Goal:
    """`metric` and `limited` are keys of `results.metrics`; `limited` is "" without a limit. `limit` in its stored
    unit."""

    metric: str
    highest: bool
    limited: str = ""
    at_most: bool = True  # else at least
    limit: float = 0.0


def read_goal(text: str) -> Goal:
    """Raises GoalRefused."""
    words = _GOAL.fullmatch(" ".join(text.split()))
    if words is None:
        raise GoalRefused(f"This is not a goal. Write it as `{EXAMPLE}`.")
    metric, limited = words["metric"], words["limited"] or ""
    for name in filter(None, (metric, limited)):
        if name not in SUFFIXES:
            raise GoalRefused(f"`{name}` is not a metric. Use one of {', '.join(SUFFIXES)}.")
    highest = words["wanted"] == "highest"
    if not limited:
        return Goal(metric, highest)
    factor = SUFFIXES[limited].get(words["suffix"].lower())
    if factor is None:
        units = ", ".join(filter(None, SUFFIXES[limited]))
        raise GoalRefused(f"The limit of `{limited}` needs one of these units: {units}.")
    limit = float(words["number"]) * factor
    if limit <= 0:
        raise GoalRefused("The limit must be larger than 0.")
    return Goal(metric, highest, limited, words["sign"] == "<=", limit)


def budget_of(document: PlanDocument, combinations: int, trial_s: float = 0.0, sharing: int = 1) -> int:
    """Trials on each target, at most. `trial_s`: shortest time of a trial, 0 if unknown; `sharing`: the number of
    targets whose trials run one after another."""
    usual = MAX_BUDGET if document.budget_s else max(math.ceil(SHARE * combinations), USUAL_BUDGET)
    budget = document.budget or usual
    return min(budget, int(document.budget_s / trial_s / sharing)) if document.budget_s and trial_s else budget


def goal_problems(document: PlanDocument, levels: Mapping[str, tuple[Value, ...]]) -> Iterator[tuple[str, str]]:
    """Field and message of each reason against a search. `levels`: of the first part."""
    if not document.goal:
        if document.budget or document.budget_s:
            yield "budget", "Only a plan with a goal has a budget. Enter a goal, or remove the budget."
        return
    try:
        read = read_goal(document.goal)
    except GoalRefused as refused:
        yield "goal", str(refused)
    else:
        yield from _foreign_metrics(document, read)
        if LOAD in levels:
            yield from _load_problems(document, read, levels)
    if document.budget and document.budget < LEAST_BUDGET:
        yield "budget", f"A search needs at least {LEAST_BUDGET} trials."
    if document.repeats != 1:
        yield "repeats", "A search repeats its best combinations itself. Set the repeats to 1."
    if document.spread_percent:
        yield "spread_percent", "A search has no repeats that could be skipped. Set this to 0."
    if document.decide_percent:
        yield "decide_percent", "A search has no repeats that could be decided. Set this to 0."
    if document.order is Order.LISTED:
        yield "order", "A search chooses the order of its trials. Choose the randomised order."
    if len(document.parts) > 1:
        yield "goal", "A search needs exactly one part: its combinations are searched. Remove the other parts."
    yield from _part_problems(document, levels)


def _foreign_metrics(document: PlanDocument, goal: Goal) -> Iterator[tuple[str, str]]:
    """Metrics of an engine that the part does not use."""
    by_engine = {kind.engine_name(): {metric.name for metric in each.METRICS} for kind, each in ENGINES.items()}
    measured = by_engine[engine_name(document.common | document.parts[0].factors)]
    foreign = set[str]().union(*by_engine.values()) - measured
    for name in dict.fromkeys((goal.metric, goal.limited)):
        if name in foreign:
            yield "goal", f"The engine of the part does not measure `{name}`. Choose another metric."


def _load_problems(
    document: PlanDocument, goal: Goal, levels: Mapping[str, tuple[Value, ...]]
) -> Iterator[tuple[str, str]]:
    is_latency = goal.limited.startswith("latency_") and goal.at_most
    if goal.metric != "iops" or not goal.highest or not is_latency:
        yield "goal", f"With the factor `load`, the goal is the highest IOPS below a latency. Write it as `{EXAMPLE}`."
    if any(len(values) > 1 for name, values in levels.items() if name != LOAD):
        yield "goal", "A search over `load` has no other factor with several levels. Use one level of each."
    if document.budget_s:
        yield "budget", "A search over `load` has no limit of time. Enter a number of trials."


def _part_problems(document: PlanDocument, levels: Mapping[str, tuple[Value, ...]]) -> Iterator[tuple[str, str]]:
    part = document.parts[0]
    if part.streams:
        yield "goal", "A search cannot have several streams. Remove the streams."
    if {AT_ONCE, HOSTS_AT_ONCE} & levels.keys():
        yield "goal", f"A search uses one target at a time. Remove the factors {AT_ONCE} and {HOSTS_AT_ONCE}."
    if any(rule.strip().startswith(TRACK) for rule in part.rules):
        yield "goal", f"A search has no rounds. Remove the rule `{TRACK}`."
    if any(step.strip().startswith("once ") for step in part.before):
        yield "goal", "A search has no first trial of a part. Remove the steps that are done once."
    combinations = math.prod(map(len, levels.values())) if levels else 0
    if levels and not 2 <= combinations <= MAX_COMBINATIONS:
        yield "goal", f"A search needs 2 to {MAX_COMBINATIONS:,} combinations; this part has {combinations:,}."
