"""The search of a run whose plan has a goal: its next trials, and its answer on each target.

    start of the run ──► batch 0 ──► … ──► final rounds ──► the run ends, `answers_of`
                          each batch is added when the trials of the one before have ended

A search has no state besides its run: `tuning.search` gets the measurements from the results. A trial that failed, was
skipped or is invalid counts as one without a value.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import transaction

from webapp.core.statistics import mean_of
from webapp.hosts.models import Target
from webapp.plans.document import read
from webapp.plans.expand import expand, repeated
from webapp.plans.goal import Goal, read_goal
from webapp.plans.points import Point
from webapp.plans.search_space import SearchSpace, spaces_of
from webapp.plans.selectors import facts_for
from webapp.results.metrics import METRICS, Metric
from webapp.results.models import Result
from webapp.runs.dispatch.ending import STOPPED
from webapp.runs.models import ENDED_TRIAL_STATES, Run, Trial, TrialState
from webapp.runs.services import add_trials
from webapp.tuning.search import Conclusion, Effect, Measurement, NothingMeasured, Search, conclude, next_batch
from webapp.tuning.surface import Factor


@dataclass(frozen=True)
class MeasuredTrial:
    """`value` and `limited` in the stored units of their metrics; None if it has none."""

    trial: Trial
    combination: int
    value: float | None
    limited: float | None
    is_final: bool  # of the final rounds


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
    def conclusion(self) -> Conclusion | None:
        """None before the final rounds, or if no combination succeeded in all of them."""
        return _concluded(self.search, self.measurements)

    def limited_at(self, combination: int) -> float | None:
        """Geometric mean of the limited metric in the final rounds."""
        values = [each.limited for each in self.trials if each.is_final and each.combination == combination]
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
        MeasuredTrial(trial, space.number_of(trial.point), value, limited, is_final=number >= search.exploring)
        for number, (trial, value, limited) in enumerate(trials)
    )
    return TargetSearch(target, goal, space, search, measured)


def _measured(run: Run, goal: Goal) -> Mapping[str, list[tuple[Trial, float | None, float | None]]]:
    """Trials that have ended, by target, each with its value and that of the limited metric. Two queries."""
    rows: dict[Any, list[Result]] = defaultdict(list)
    for row in Result.objects.filter(run=run, invalid=False):
        rows[row.trial_id].append(row)
    measured: dict[str, list[tuple[Trial, float | None, float | None]]] = defaultdict(list)
    for trial in run.trials.filter(state__in=ENDED_TRIAL_STATES).order_by("index"):
        results = rows[trial.pk] if trial.state == TrialState.DONE and not trial.invalid_reason else []
        value = _value(METRICS[goal.metric], results)
        limited = _value(METRICS[goal.limited], results) if goal.limited else None
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
        points = next_batch(each.search, each.measurements)
        batch = 1 + max((trial.trial.batch or 0 for trial in each.trials), default=-1)
        repeats = Counter(trial.combination for trial in each.trials)
        planned = []
        for number in points:
            repeats[number] += 1
            planned.append(repeated(each.space.by_number[number], index=index, repeat=repeats[number]))
            index += 1
        add_trials(run, planned, [each.target], document.retries, batch)
        is_any = is_any or bool(planned)
    return is_any
