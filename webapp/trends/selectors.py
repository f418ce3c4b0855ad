"""Baselines, and the verdicts on runs that they give."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, QuerySet

from webapp.analysis.trial_metrics import metrics_of
from webapp.analysis.verdicts import Outcome, Row
from webapp.core.errors import NotFound, Refusal
from webapp.hosts.models import Target
from webapp.results.metrics import METRICS, Metric
from webapp.results.models import Result
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.trends.models import Baseline
from webapp.trends.two_sides import Side, TwoSides, import_side, judge_read

NOT_JUDGED = frozenset({"latency_stddev", "latency_min", "latency_max", "shared_percent"})  # single I/Os, or no speed
KEPT_OUTCOMES = 5_000
KEPT_IMPORTS = 1  # an import may have 20,000 results


@dataclass(frozen=True)
class Verdict:
    """On a run at the target of its baseline. `points` has the point of each row's cell; `same`, `ignored` and `limits`
    are those of `TwoSides`. Without rows, `problem` says why it could not be judged."""

    baseline: Baseline
    outcome: Outcome
    rows: Sequence[Row]
    points: Mapping[str, Point]
    new_cells: int  # of the run that the baseline does not have
    problem: str
    same: Sequence[str] = ()
    ignored: Sequence[str] = ()
    limits: Sequence[str] = ()

    @property
    def counts(self) -> Mapping[Outcome, int]:
        counts = Counter(row.outcome for row in self.rows)
        return {each: counts[each] for each in Outcome}


def baselines() -> QuerySet[Baseline]:
    return Baseline.objects.select_related("plan", "target__host", "run", "imported", "set_by")


def known_baseline(pk: int) -> Baseline:
    """Raises Refusal baseline_unknown."""
    baseline = baselines().filter(pk=pk).first()
    if baseline is None:
        raise NotFound("baseline_unknown", f"There is no baseline {pk}.")
    return baseline


def baselines_of(run: Run) -> list[Baseline]:
    """Those that judge this run: of its plan, at its targets, set to an earlier run or an import."""
    earlier = Q(run=None) | Q(run__number__lt=run.number)
    known = baselines().filter(earlier, plan=run.version.plan_id, target__in=run.targets.all())
    return list(known.order_by("target__host__slug", "target__slug"))


def worst_of(verdicts: Iterable[Verdict]) -> Outcome | None:
    """The most serious outcome; None without verdicts."""
    return min((verdict.outcome for verdict in verdicts), key=list(Outcome).index, default=None)


def verdicts_on(run: Run) -> list[Verdict]:
    """One for each target with a baseline; none while the run is open."""
    if run.state not in ENDED_RUN_STATES:
        return []
    known = baselines_of(run)
    seals = _import_seals({baseline.imported_id for baseline in known if baseline.imported_id})
    return [_verdict(run.pk, baseline, seals.get(baseline.imported_id, 0)) for baseline in known]


def _verdict(run_id: UUID, baseline: Baseline, seal: "Seal") -> Verdict:
    """`seal` is that of the results of the baseline."""
    try:
        judged = _judged(run_id, baseline, seal)
    except Refusal as refusal:
        return Verdict(baseline, Outcome.UNCLEAR, (), {}, 0, str(refusal))
    points = {key: place.point for key, place in judged.places.items()}
    return Verdict(
        baseline, judged.outcome, judged.rows, points, judged.new_cells, "", judged.same, judged.ignored, judged.limits
    )


def _judged(run_id: UUID, baseline: Baseline, seal: "Seal") -> TwoSides:
    """Raises Refusal if a row would mix different results, or an import no longer has a chosen level.

    An import is compared with the results of the target alone: of results of several targets at once, it has no equal.
    """
    mine = _rows(run_id, baseline.target_id)
    if baseline.imported is not None:
        mine = [row for row in mine if row.target_name == str(baseline.target)]
    return judge_read(
        _side_of(baseline, seal), _run_side(run_id, mine, "the run"), baseline.tolerances,
        ignored=baseline.ignored, single_values=baseline.single_values,
    )  # fmt: skip


def _side_of(baseline: Baseline, seal: "Seal") -> Side:
    if baseline.imported is None:
        rows = _rows(baseline.run_id, baseline.target_id)
        return _run_side(baseline.run_id, rows, "the baseline run")
    return _import_side(baseline.imported.number, tuple(baseline.levels.items()), seal)


def _run_side(run_id: UUID | None, rows: Sequence[ResultRow], name: str) -> Side:
    return Side({"run": [str(run_id)]}, rows, name)


@lru_cache(maxsize=KEPT_IMPORTS)
def _import_side(number: int, levels: tuple[tuple[str, str], ...], _seal: "Seal") -> Side:
    """Kept for the next run of a list: reading takes longer than judging. Raises Refusal."""
    return import_side(number, dict(levels))


def _rows(run_id: UUID | None, target_id: UUID) -> list[ResultRow]:
    valid = Result.objects.filter(run=run_id, target=target_id, invalid=False)
    return read_rows(valid.order_by("id"), with_facts=False)


def outcomes_on(runs: Iterable[Run], target: Target | None = None) -> dict[UUID, Outcome]:
    """The most serious outcome of each run over its targets, or that at `target`; runs without a baseline are missing.
    At most five queries."""
    outcomes: dict[UUID, Outcome] = {}
    order = list(Outcome)
    for (run_id, at), outcome in outcomes_at(runs).items():
        if target is None or at == target.pk:
            outcomes[run_id] = min(outcome, outcomes.get(run_id, outcome), key=order.index)
    return outcomes


def outcomes_at(runs: Iterable[Run]) -> dict[tuple[UUID, UUID], Outcome]:
    """By run and target, where there is a baseline.

    At most five queries, and the results of runs that this process has not judged since they or their baseline changed.
    Runs with the same baseline are judged one after another, so that an import is read once.
    """
    ended = {run.pk: run for run in runs if run.state in ENDED_RUN_STATES}
    judged = _judged_by(ended.values())
    if not judged:
        return {}
    known = {baseline for _, baseline in judged}
    seals = _seals(
        {run_id for run_id, _ in judged} | {baseline_of.run_id for baseline_of in known if baseline_of.run_id}
    )
    imports = _import_seals({baseline_of.imported_id for baseline_of in known if baseline_of.imported_id})
    outcomes: dict[tuple[UUID, UUID], Outcome] = {}
    for run_id, baseline in sorted(judged, key=lambda pair: pair[1].pk):
        mine, theirs = seals.get((run_id, baseline.target_id), 0), imports.get(baseline.imported_id, 0)
        if baseline.run_id:
            theirs = seals.get((baseline.run_id, baseline.target_id), 0)
        outcomes[run_id, baseline.target_id] = _outcome(run_id, baseline, baseline.set_at, mine, theirs)
    return outcomes


def _judged_by(runs: Collection[Run]) -> list[tuple[UUID, Baseline]]:
    plans = {run.version.plan_id for run in runs}
    known = (
        Baseline.objects.filter(plan__in=plans).select_related("run", "imported", "target__host")
        if plans
        else Baseline.objects.none()
    )
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
        if (run.pk, baseline.target_id) in places and (baseline.run is None or baseline.run.number < run.number)
    ]


Seal = int  # hash of the ids of the valid results: it changes with any of them


def _seals(runs: Collection[UUID]) -> dict[tuple[UUID, UUID], Seal]:
    valid = Result.objects.filter(run__in=runs, invalid=False).order_by().values_list("run", "target")
    with_ids = valid.annotate(ids=ArrayAgg("pk", order_by="pk"))
    return {(run_id, target_id): hash(tuple(ids)) for run_id, target_id, ids in with_ids}


def _import_seals(imports: Collection[int]) -> dict[int | None, Seal]:
    if not imports:
        return {}
    valid = Result.objects.filter(origin__imported__in=imports, invalid=False).order_by()
    with_ids = valid.values_list("origin__imported").annotate(ids=ArrayAgg("pk", order_by="pk"))
    return {imported: hash(tuple(ids)) for imported, ids in with_ids}


@lru_cache(maxsize=KEPT_OUTCOMES)
def _outcome(run_id: UUID, baseline: Baseline, _set_at: datetime, _own: Seal, theirs: Seal) -> Outcome:
    """Results never change, so an outcome stays valid as long as the baseline and the seals are the same."""
    return _verdict(run_id, baseline, theirs).outcome


def judged_metrics(run: Run, target: Target) -> list[Metric]:
    """Metrics of which the run has valid values at the target. One query."""
    valid = Result.objects.filter(run=run, target=target, invalid=False).order_by()
    offered = [metric for metric in METRICS.values() if metric.key not in NOT_JUDGED]
    counted = valid.aggregate(**{f"n_{metric.key}": _values_of(metric) for metric in offered})
    return [metric for metric in offered if counted[f"n_{metric.key}"]]


def known_metrics(run: Run, target: Target, wanted: Iterable[str]) -> set[str]:
    """Their keys; those of whole trials, such as power, and entered ones only if one of them is `wanted`: all results
    of the run are read for them."""
    known = {metric.key for metric in judged_metrics(run, target)}
    return known if METRICS.keys() >= set(wanted) else known | metrics_of(_rows(run.pk, target.pk))


def _values_of(metric: Metric) -> Count:
    if metric.column:
        return Count(metric.column)
    return Count("pk", filter=Q(metrics__has_key=metric.key))
