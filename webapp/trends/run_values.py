"""The values of each cell in the runs of a plan at a target. A cell is a point and a direction; if several parts of the
plan have the point, each part has a cell."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from statistics import fmean
from typing import Any
from uuid import UUID

import msgspec
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Case, Count, F, FloatField, QuerySet, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from webapp.analysis.seals import scope_of_run
from webapp.core.answers import Parts, all_parts
from webapp.hosts.models import Target
from webapp.plans.factors import STREAMS
from webapp.plans.models import Plan
from webapp.plans.points import point_key, targets_at_once
from webapp.plans.streams import names_of, result_point
from webapp.results.metrics import Metric
from webapp.results.models import Result
from webapp.results.reading.content import POINTS, Point
from webapp.runs.models import Run, Trial
from webapp.runs.states import ENDED_RUN_STATES

MAX_RUNS = 100  # the latest

Cell = tuple[str, str, str]  # point key, direction, and its part if several parts of the plan have the point, else ""


class RunValues(msgspec.Struct, frozen=True):
    """Valid values above 0 of one run, by cell and repeat: their mean, if a repeat has several. Cells are in
    the order of their last trials. `planned` are the keys of its points; `results` has the id of a result at each
    measured one; `observed` the points of each configuration, as its digest and the engine's version;
    `invalid` counts results left out by point key and direction, and `zeros` values of 0."""

    planned: frozenset[str] = frozenset()
    cells: dict[Cell, dict[int, float]] = {}
    results: dict[str, int] = {}
    observed: dict[tuple[str, str], frozenset[str]] = {}
    invalid: dict[tuple[str, str], int] = {}
    zeros: dict[Cell, int] = {}


@dataclass(frozen=True)
class RunHistory:
    run: Run
    at: datetime
    values: RunValues


@dataclass(frozen=True)
class History:
    """Oldest first. `points` has the point of each key."""

    runs: Sequence[RunHistory]
    points: Mapping[str, Point]


def ended_ids(plan: Plan, target: Target) -> list[UUID]:
    """Of the newest ended runs, the newest first."""
    ended = Run.objects.filter(version__plan=plan, targets=target, state__in=ENDED_RUN_STATES)
    return list(ended.order_by("-number").values_list("pk", flat=True)[:MAX_RUNS])


def runs_of(ids: Collection[UUID]) -> list[Run]:
    """Oldest first."""
    runs = Run.objects.filter(pk__in=ids).select_related("version").defer("version__document")
    return list(runs.order_by("number"))


def ended_runs(plan: Plan, target: Target) -> list[Run]:
    """The newest ended runs, oldest first."""
    return runs_of(ended_ids(plan, target))


def read_history(runs: Sequence[Run], target: Target, metric: Metric) -> History:
    """Of these runs, oldest first. The values of each run are stored until the run changes (`core.answers`). Six
    queries if a run has changed, else one; points that are new to this process take one more."""
    texts = (str(target.pk), metric.key)
    scopes = {str(run.pk): scope_of_run(run.pk) for run in runs}
    values = all_parts(Parts(texts, scopes, RunValues, partial(_values, target.pk, metric)))
    histories = [RunHistory(run, run.started_at or run.created_at, values[str(run.pk)]) for run in runs]
    results = {key: id_ for run in histories for key, id_ in run.values.results.items()}
    return History(histories, POINTS.get(results))


def _values(target: UUID, metric: Metric, runs: Sequence[str]) -> dict[str, RunValues]:
    ids = [UUID(run) for run in runs]
    planned, invalid, observed = _planned(ids, target), _invalid(ids, target), _observed(ids, target)
    cells: dict[str, dict[Cell, dict[int, list[float]]]] = {run: {} for run in runs}
    newest: dict[str, dict[Cell, int]] = {run: {} for run in runs}
    zeros: dict[str, Counter[Cell]] = {run: Counter() for run in runs}
    in_parts = _in_several_parts(ids, target)
    for key, direction, *measured in _cells(ids, target, metric):
        for run, part, repeat, value, id_ in zip(*measured, strict=True):
            cell = key, direction, part if (run, key) in in_parts else ""
            newest[str(run)][cell] = id_
            if value == 0:
                zeros[str(run)][cell] += 1
            else:
                cells[str(run)].setdefault(cell, {}).setdefault(repeat, []).append(value)
    return {
        run: RunValues(
            planned=frozenset(planned[run]),
            cells={
                cell: {repeat: fmean(values) for repeat, values in cells[run][cell].items()}
                for cell in sorted(cells[run], key=newest[run].__getitem__)
            },
            results={key: id_ for (key, *_), id_ in newest[run].items()},
            observed=observed[run],
            invalid=invalid[run],
            zeros=dict(zeros[run]),
        )
        for run in runs
    }


def _planned(runs: Sequence[UUID], target: UUID) -> dict[str, set[str]]:
    """The keys of the points of the results that each run should have."""
    planned: dict[str, set[str]] = {str(run): set() for run in runs}
    trials = Trial.objects.filter(run__in=runs, target=target).order_by()
    columns = ("point_key", Case(When(point__has_key=STREAMS, then="point")))
    # Repeats are listed too: PostgreSQL would sort all trials on disk to list each run once.
    for key, point, runs_of_point in trials.values_list(*columns).annotate(runs=ArrayAgg("run")):
        keys = _of_streams(point) if point else {key}
        for run in runs_of_point:
            planned[str(run)] |= keys
    return planned


def _of_streams(point: Point) -> set[str]:
    """The keys of the results at the first target of a trial with named streams."""
    here = names_of(point)[:1] if targets_at_once(point) > 1 else names_of(point)
    return {point_key(result_point(point, name)) for name in here}


def _in_several_parts(runs: Sequence[UUID], target: UUID) -> set[tuple[UUID, str]]:
    """The runs and points that several parts of the plan have."""
    results = Result.objects.filter(run__in=runs, target=target).order_by()
    counts = results.values("run", "point_key").annotate(parts=Count("trial__part", distinct=True))
    return set(counts.filter(parts__gt=1).values_list("run", "point_key"))


def _invalid(runs: Sequence[UUID], target: UUID) -> dict[str, dict[tuple[str, str], int]]:
    """The number of invalid results of each point and direction."""
    invalid: dict[str, dict[tuple[str, str], int]] = {str(run): {} for run in runs}
    results = Result.objects.filter(run__in=runs, target=target, invalid=True).order_by()
    counts = results.values_list("run", "point_key", "direction").annotate(Count("pk"))
    for run, key, direction, count in counts:
        invalid[str(run)][key, direction] = count
    return invalid


def _observed(runs: Sequence[UUID], target: UUID) -> dict[str, dict[tuple[str, str], frozenset[str]]]:
    observed: dict[str, dict[tuple[str, str], frozenset[str]]] = {str(run): {} for run in runs}
    results = Result.objects.filter(run__in=runs, target=target, invalid=False).order_by()
    columns = ("run", "stream_run__configuration", "stream_run__engine_version")
    for run, digest, engine, keys in results.values_list(*columns).annotate(keys=ArrayAgg("point_key")):
        observed[str(run)][digest or "", engine] = frozenset(keys)
    return observed


def _cells(runs: Sequence[UUID], target: UUID, metric: Metric) -> QuerySet[Any, Any]:
    """A row for each cell, because a hundred runs have 50,000 results: its point key, its direction, and arrays of run,
    part, repeat, value and id of the results, the oldest first."""
    value = F(metric.column) if metric.column else Cast(KeyTextTransform(metric.key, "metrics"), FloatField())
    results = Result.objects.filter(run__in=runs, target=target, invalid=False).annotate(own=value)
    cells = results.filter(own__gte=0).order_by().values_list("point_key", "direction")
    return cells.annotate(
        runs=ArrayAgg("run", order_by="pk"),
        parts=ArrayAgg("trial__part", order_by="pk"),
        repeats=ArrayAgg("repeat", order_by="pk"),
        values=ArrayAgg("own", order_by="pk"),
        ids=ArrayAgg("pk", order_by="pk"),
    )
