"""The search of a run whose plan has a goal: its next trials, and its answer on each target.

    start of the run ──► batch 0 ──► … ──► final rounds ──► the run ends, `answers_of`
                          each batch is added when the trials of the one before have ended

A search has no state besides its run: `tuning.search` gets the measurements from the results; of a search over shares
of the load, `analysis.bisection` does. A trial that failed, was skipped or is invalid counts as one without a value.

With a limit of time, the number of trials that fit into it is computed anew before each batch, from the mean time of
the trials on the host so far. When the rest of the time is only enough for the final rounds, the planned trials of the
current batch are cancelled (NO_TIME). The final rounds are always complete.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import transaction

from webapp.analysis.bisection import Bracket, bracket, next_levels
from webapp.core.services import audit
from webapp.core.statistics import mean_of
from webapp.hosts.models import Target
from webapp.plans.document import read
from webapp.plans.expand import expand, repeated
from webapp.plans.goal import Goal, read_goal
from webapp.plans.load import LOAD, MAX
from webapp.plans.points import Point
from webapp.plans.search_space import SearchSpace, spaces_of
from webapp.plans.selectors import facts_for
from webapp.results.metrics import METRICS, Metric
from webapp.results.models import Result
from webapp.results.reading.doubts import kept_up
from webapp.runs.dispatch.ending import STOPPED
from webapp.runs.models import ENDED_TRIAL_STATES, Run, Trial, TrialState
from webapp.runs.selectors import working_s
from webapp.runs.services import add_trials
from webapp.runs.states import cancel_these
from webapp.tuning.search import (
    ROUNDS,
    Batch,
    Conclusion,
    Effect,
    Measurement,
    NothingMeasured,
    Search,
    conclude,
    finalists_within,
    next_batch,
)
from webapp.tuning.surface import Factor

NO_TIME = "no_time"  # reason code of the trials that are not needed


@dataclass(frozen=True)
class MeasuredTrial:
    """`value` and `limited` in the stored units of their metrics; None if it has none. `limited` is infinite if a share
    of the load could not keep up."""

    trial: Trial
    combination: int
    value: float | None
    limited: float | None


@dataclass(frozen=True)
class TargetSearch:
    """The search of a run on one of its targets, as far as it is."""

    target: Target
    goal: Goal
    space: SearchSpace
    search: Search
    trials: tuple[MeasuredTrial, ...]  # that have ended, in order

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        invert = not self.goal.at_most
        return tuple(
            Measurement(
                each.combination,
                each.trial.batch or 0,
                each.value,
                1 / each.limited if invert and each.limited else each.limited,
                each.trial.is_final,
            )
            for each in self.trials
        )

    @property
    def metric(self) -> Metric:
        return METRICS[self.goal.metric]

    @property
    def limited(self) -> Metric | None:
        return METRICS[self.goal.limited] if self.goal.limited else None

    def is_within(self, trial: MeasuredTrial) -> bool:
        """In a search over loads, `max` does not count: its I/Os wait for earlier ones, so its latency is not that of
        arrivals."""
        if self.is_over_loads and trial.trial.point[LOAD] == MAX:
            return False
        if not self.goal.limited:
            return trial.value is not None
        if trial.limited is None:
            return False
        return trial.limited <= self.goal.limit if self.goal.at_most else trial.limited >= self.goal.limit

    @property
    def best_so_far(self) -> list[MeasuredTrial | None]:
        """After each trial, the one with the best value within the limit."""
        best: MeasuredTrial | None = None
        course = []
        for trial in self.trials:
            if self.is_within(trial) and (best is None or self._is_better(trial, best)):
                best = trial
            course.append(best)
        return course

    def _is_better(self, trial: MeasuredTrial, other: MeasuredTrial) -> bool:
        if trial.value is None or other.value is None:
            return False
        return trial.value > other.value if self.goal.highest else trial.value < other.value

    def levels(self, combination: int) -> Point:
        """Of the factors that are searched."""
        point = self.space.by_number[combination].point
        return {name: point[name] for name in self.space.levels if name in point}

    def level(self, effect: Effect) -> Any:
        return self.space.levels[effect.factor][effect.level]

    @property
    def is_over_loads(self) -> bool:
        return LOAD in self.space.levels

    def next_batch(self, budget: int) -> Batch:
        search = replace(self.search, budget=budget)
        return (next_levels if self.is_over_loads else next_batch)(search, self.measurements)

    @property
    def conclusion(self) -> Conclusion | None:
        """None before the final rounds, if no combination succeeded in all of them, or of a search over loads."""
        return None if self.is_over_loads else _concluded(self.search, self.measurements)

    @property
    def bracket(self) -> Bracket | None:
        """Of a search over loads; None before its rounds."""
        return bracket(self.search, self.measurements) if self.is_over_loads else None

    def limited_at(self, combination: int) -> float | None:
        """Geometric mean of the limited metric in the final rounds."""
        values = [each.limited for each in self.trials if each.trial.is_final and each.combination == combination]
        known = [value for value in values if value is not None]
        return mean_of(known) if known else None


@lru_cache(maxsize=32)
def _concluded(search: Search, measurements: tuple[Measurement, ...]) -> Conclusion | None:
    try:
        return conclude(search, measurements)
    except NothingMeasured:
        return None


def searches_of(run: Run) -> list[TargetSearch]:
    """In the order in which the targets were chosen; none if the plan can no longer run on them."""
    document = read(run.version.document)
    if run.budget is None:
        return []
    by_id = {str(target.pk): target for target in run.targets.select_related("host")}
    targets = [by_id[pk] for pk in run.target_order if pk in by_id]
    expansion = expand(document, facts_for(document, targets), seed=run.seed)
    goal, spaces = read_goal(document.goal), spaces_of(expansion)
    trials = _measured(run, goal)
    return [
        _of_target(run, target, goal, spaces[str(target.pk)], place, trials[str(target.pk)])
        for place, target in enumerate(targets)
        if str(target.pk) in spaces
    ]


def _of_target(
    run: Run, target: Target, goal: Goal, space: SearchSpace, place: int, trials: Sequence[tuple[Trial, Any, Any]]
) -> TargetSearch:
    assert run.budget is not None
    factors = tuple(
        Factor(name, len(levels), space.places_of(name), space.is_costly(name)) for name, levels in space.levels.items()
    )
    limit = None if not goal.limited else goal.limit if goal.at_most else 1 / goal.limit
    search = Search(factors, run.budget, goal.highest, limit, tuple(sorted(space.by_number)), run.seed + place)
    measured = tuple(
        MeasuredTrial(trial, space.number_of(trial.point), value, limited) for trial, value, limited in trials
    )
    return TargetSearch(target, goal, space, search, measured)


def _measured(run: Run, goal: Goal) -> Mapping[str, list[tuple[Trial, float | None, float | None]]]:
    """Trials that have ended, by target, each with its value and that of the limited metric. Two queries."""
    rows: dict[Any, list[Result]] = defaultdict(list)
    for row in Result.objects.filter(run=run, invalid=False):
        rows[row.trial_id].append(row)
    measured: dict[str, list[tuple[Trial, float | None, float | None]]] = defaultdict(list)
    for trial in run.trials.filter(state__in=ENDED_TRIAL_STATES).exclude(reason_code=NO_TIME).order_by("index"):
        results = rows[trial.pk] if trial.state == TrialState.DONE and not trial.invalid_reason else []
        value = _value(METRICS[goal.metric], results)
        limited = _value(METRICS[goal.limited], results) if goal.limited else None
        if limited is not None and not all(map(kept_up, results)):
            limited = math.inf  # I/Os that were never sent have no latency
        complete = value is not None and (limited is not None or not goal.limited)
        measured[str(trial.target_id)].append((trial, value if complete else None, limited))
    return measured


def _value(metric: Metric, results: Sequence[Result]) -> float | None:
    """Of a trial: the sum over its directions, or the worst of them. None if one is unknown or not above 0."""
    values = [metric.of(row) for row in results]
    known = [value for value in values if value is not None and value > 0]
    if not known or len(known) < len(values):
        return None
    if metric.adds_up:
        return sum(known)
    return max(known) if metric.lower_is_better else min(known)


@transaction.atomic
def add_next_batches(run: Run) -> bool:
    """Add the next trials on each target whose trials have ended; False if there are none. The run is locked."""
    document = read(run.version.document)
    index, is_any = run.trials.count(), False
    for each in searches_of(run):
        here = run.trials.filter(target=each.target)
        unended = here.exclude(state__in=ENDED_TRIAL_STATES)
        if unended.exists() or run.trials.filter(host=each.target.host_id, reason_code=STOPPED).exists():
            continue
        following = each.next_batch(_budgets(run, each.target.host_id).get(each.target.pk, each.search.budget))
        batch = 1 + max((number or 0 for number in here.values_list("batch", flat=True)), default=-1)
        repeats = Counter(here.values_list("point_key", flat=True))
        planned = []
        for number in following.points:
            trial = each.space.by_number[number]
            repeats[trial.point_key] += 1
            planned.append(repeated(trial, index=index, repeat=repeats[trial.point_key]))
            index += 1
        add_trials(run, planned, [each.target], document.retries, batch, is_final=following.is_final)
        is_any = is_any or bool(planned)
    if run.budget_s:
        _lower_budget(run)
    return is_any


def _budgets(run: Run, host_id: UUID) -> Mapping[UUID, int]:
    """Trials on each target of the host in all: those that have ended, and as many as there is time for. Targets that
    are still searched share the time. Empty without a limit of time, or before the first trial has ended."""
    trials = run.trials.filter(host=host_id).exclude(reason_code=NO_TIME)
    rows = list(trials.values_list("target", "state", "is_final"))
    timed = sum(state in (TrialState.DONE, TrialState.FAILED) for _, state, _ in rows)
    if run.budget is None or not run.budget_s or not timed:
        return {}
    ended = Counter(target for target, state, _ in rows if state in ENDED_TRIAL_STATES)
    unended = {target for target, state, _ in rows if state not in ENDED_TRIAL_STATES}
    searched = {target for target, *_ in rows} - ({target for target, _, is_final in rows if is_final} - unended)
    spent_s = working_s(run)
    left = int(timed * max(0.0, run.budget_s / spent_s - 1) / max(1, len(searched)))
    return {target: min(run.budget, ended[target] + left) for target, *_ in rows}


def _lower_budget(run: Run) -> None:
    """To the largest one of its targets; the number of trials to that of all targets."""
    rows = list(run.trials.values_list("host", "target", "is_final", "reason_code"))
    budgets = {pk: trials for host in {host for host, *_ in rows} for pk, trials in _budgets(run, host).items()}
    if not budgets:
        return
    created = Counter(target for _, target, _, code in rows if code != NO_TIME)
    concluding = {target for _, target, is_final, _ in rows if is_final}
    expected = [
        count if target in concluding else max(count, budgets.get(target, run.budget or 0))
        for target, count in created.items()
    ]
    run.budget = max(expected)
    run.trial_count = sum(expected) + len(rows) - sum(created.values())
    run.save(update_fields=["budget", "trial_count"])


@transaction.atomic
def end_exploration(run_id: UUID, host_id: UUID) -> None:
    """Cancel the host's planned trials of the run for which there is no time before the final rounds."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    planned = run.trials.filter(host=host_id, state=TrialState.PLANNED, is_final=False)
    exploring = list(planned.select_for_update(no_key=True, of=("self",)).order_by("index"))
    budgets = _budgets(run, host_id) if exploring else {}
    ended = Counter(run.trials.filter(host=host_id, state__in=ENDED_TRIAL_STATES).values_list("target", flat=True))
    late = [
        trial
        for trial in exploring
        if (budget := budgets.get(trial.target_id)) is not None
        and budget - ended[trial.target_id] <= ROUNDS * finalists_within(budget)
    ]
    if late:
        cancel_these(run, late, code=NO_TIME, fields={})
        audit(by=None, action="run.end_exploration", on=run, detail={"host": str(host_id), "trials": len(late)})
