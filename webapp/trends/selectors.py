"""Baseline runs, and the verdicts on runs that they give."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, QuerySet

from webapp.compare.blocks import Measured, measured
from webapp.compare.grouping import CellKey, Grouped
from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.results.metrics import METRICS, Metric
from webapp.results.models import Result
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run
from webapp.trends.history import ENDED
from webapp.trends.judging import Cells, Outcome, Row, judge, outcome_of
from webapp.trends.models import Baseline

NOT_JUDGED = frozenset({"latency_stddev", "latency_min", "latency_max"})  # single I/Os, or not a speed
KEPT_OUTCOMES = 5_000


@dataclass(frozen=True)
class Verdict:
    """On a run at the target of its baseline. `points` has the point of each row's cell."""

    baseline: Baseline
    outcome: Outcome
    rows: Sequence[Row]
    points: Mapping[str, Point]
    new_cells: int  # of the run that the baseline run does not have

    @property
    def counts(self) -> Mapping[Outcome, int]:
        found = Counter(row.outcome for row in self.rows)
        return {each: found[each] for each in Outcome}


def baselines() -> QuerySet[Baseline]:
    return Baseline.objects.select_related("plan", "target__host", "run", "set_by")


def known_baseline(pk: int) -> Baseline:
    """Raises Refusal baseline_unknown."""
    found = baselines().filter(pk=pk).first()
    if found is None:
        raise Refusal("baseline_unknown", f"There is no baseline {pk}.")
    return found


def baselines_of(run: Run) -> list[Baseline]:
    """Those that judge this run: of its plan, at its targets, set to an earlier run."""
    found = baselines().filter(plan=run.version.plan_id, target__in=run.targets.all(), run__number__lt=run.number)
    return list(found.order_by("target__host__slug", "target__slug"))


def verdicts_on(run: Run) -> list[Verdict]:
    """One for each target with a baseline; none while the run is open."""
    if run.state not in ENDED:
        return []
    return [_verdict(run.pk, baseline) for baseline in baselines_of(run)]


def _verdict(run_id: UUID, baseline: Baseline) -> Verdict:
    target, tolerances = baseline.target, baseline.tolerances
    mine, theirs = _rows(run_id, target.pk), _rows(baseline.run_id, target.pk)
    rows = judge(_cells(mine, tolerances), _cells(theirs, tolerances), tolerances)
    points = {row.point_key: row.point for row in (*theirs, *mine)}
    known = {(row.point_key, row.direction) for row in theirs}
    new = {(row.point_key, row.direction) for row in mine} - known
    return Verdict(baseline, outcome_of(rows), rows, points, len(new))


def _rows(run_id: UUID, target_id: UUID) -> list[ResultRow]:
    valid = Result.objects.filter(run=run_id, target=target_id, invalid=False)
    return read_rows(valid.order_by("id"), with_facts=False)


def _cells(rows: Sequence[ResultRow], metrics: Iterable[str]) -> dict[str, Cells]:
    return {key: _cells_of(rows, METRICS[key]) for key in metrics}


def _cells_of(rows: Sequence[ResultRow], metric: Metric) -> dict[tuple[str, str], Measured]:
    grouped: dict[CellKey, list[ResultRow]] = {}
    for row in rows:
        if metric.of(row) is not None:
            grouped.setdefault(("", row.point_key, row.direction), []).append(row)
    return {(key, way): cell for (_, key, way), cell in measured(Grouped(grouped, (), (), ()), metric).items()}


def outcomes_on(runs: Iterable[Run]) -> dict[UUID, Outcome]:
    """The most serious outcome of each run over its targets; runs without a baseline are missing.

    Two queries, and the results of runs that this process has not judged since they or their baseline changed.
    """
    ended = {run.pk: run for run in runs if run.state in ENDED}
    judged = _judged_by(ended.values())
    if not judged:
        return {}
    seals = _seals({run_id for run_id, _ in judged} | {baseline.run_id for _, baseline in judged})
    found: dict[UUID, Outcome] = {}
    order = list(Outcome)
    for run_id, baseline in judged:
        own, other = (seals.get((each, baseline.target_id), 0) for each in (run_id, baseline.run_id))
        tolerances = tuple(sorted(baseline.tolerances.items()))
        outcome = _outcome(run_id, baseline.target_id, baseline.run_id, tolerances, own, other)
        found[run_id] = min(outcome, found.get(run_id, outcome), key=order.index)
    return found


def _judged_by(runs: Collection[Run]) -> list[tuple[UUID, Baseline]]:
    plans = {run.version.plan_id for run in runs}
    known = Baseline.objects.filter(plan__in=plans).select_related("run") if plans else Baseline.objects.none()
    by_plan: dict[UUID, list[Baseline]] = {}
    for baseline in known:
        by_plan.setdefault(baseline.plan_id, []).append(baseline)
    if not by_plan:
        return []
    at = Run.targets.through.objects.filter(run__in=[run.pk for run in runs]).values_list("run_id", "target_id")
    places = set(at)
    return [
        (run.pk, baseline)
        for run in runs
        for baseline in by_plan.get(run.version.plan_id, ())
        if (run.pk, baseline.target_id) in places and baseline.run.number < run.number
    ]


Seal = int  # hash of the ids of the valid results: it changes with any of them


def _seals(runs: Collection[UUID]) -> dict[tuple[UUID, UUID], Seal]:
    valid = Result.objects.filter(run__in=runs, invalid=False).order_by().values_list("run", "target")
    found = valid.annotate(ids=ArrayAgg("pk", order_by="pk"))
    return {(run_id, target_id): hash(tuple(ids)) for run_id, target_id, ids in found}


@lru_cache(maxsize=KEPT_OUTCOMES)
def _outcome(
    run_id: UUID, target_id: UUID, baseline_run: UUID, tolerances: tuple[tuple[str, float], ...], *_seals_of: Seal
) -> Outcome:
    """Results never change, so an outcome stays valid as long as the seals are the same."""
    wanted = dict(tolerances)
    mine, theirs = (_cells(_rows(each, target_id), wanted) for each in (run_id, baseline_run))
    return outcome_of(judge(mine, theirs, wanted))


def judged_metrics(run: Run, target: Target) -> list[Metric]:
    """Metrics of which the run has valid values at the target. One query."""
    valid = Result.objects.filter(run=run, target=target, invalid=False).order_by()
    offered = [metric for metric in METRICS.values() if metric.key not in NOT_JUDGED]
    counted = valid.aggregate(**{f"n_{metric.key}": _values_of(metric) for metric in offered})
    return [metric for metric in offered if counted[f"n_{metric.key}"]]


def _values_of(metric: Metric) -> Count:
    if metric.column:
        return Count(metric.column)
    return Count("pk", filter=Q(metrics__has_key=metric.key))
