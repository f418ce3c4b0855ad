"""The values of each cell in the runs of a plan at a target. A cell is a point and a direction."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Case, Count, F, FloatField, Max, QuerySet, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from webapp.hosts.models import Target
from webapp.plans.factors import STREAMS
from webapp.plans.models import Plan
from webapp.plans.points import point_key, targets_at_once
from webapp.plans.streams import names_of, result_point
from webapp.results.metrics import Metric
from webapp.results.models import Result
from webapp.results.reading.content import POINTS, Point
from webapp.runs.models import Run, RunState, Trial

ENDED = (RunState.DONE, RunState.FAILED, RunState.CANCELLED)
MAX_RUNS = 100  # the latest

Cell = tuple[str, str]  # point key and direction


@dataclass
class RunHistory:
    """Valid values above 0 of one run, by cell and repeat: their mean, if several parts of the plan have the point.
    `planned` are the keys of its points; `invalid` counts results left out of each cell, and `zeros` values of 0."""

    run: Run
    at: datetime
    planned: frozenset[str]
    cells: dict[Cell, dict[int, float]] = field(default_factory=dict)
    invalid: Mapping[Cell, int] = field(default_factory=dict)
    zeros: Counter[Cell] = field(default_factory=Counter)


@dataclass(frozen=True)
class History:
    """Oldest first. `points` has the point of each key."""

    runs: Sequence[RunHistory]
    points: Mapping[str, Point]


def ended_ids(plan: Plan, target: Target) -> list[UUID]:
    """Of the newest ended runs, the newest first."""
    ended = Run.objects.filter(version__plan=plan, targets=target, state__in=ENDED)
    return list(ended.order_by("-number").values_list("pk", flat=True)[:MAX_RUNS])


def runs_of(ids: Collection[UUID]) -> list[Run]:
    """Oldest first."""
    runs = Run.objects.filter(pk__in=ids).select_related("version").defer("version__document")
    return list(runs.order_by("number"))


def ended_runs(plan: Plan, target: Target) -> list[Run]:
    """The newest ended runs, oldest first."""
    return runs_of(ended_ids(plan, target))


def read_history(runs: Sequence[Run], target: Target, metric: Metric) -> History:
    """Of these runs, oldest first. Three queries; points that are new to this process take one more."""
    planned, invalid = _planned(runs, target), _invalid(runs, target)
    read = {
        run.number: RunHistory(
            run, run.started_at or run.created_at, frozenset(planned[run.number]), {}, invalid.get(run.number, {})
        )
        for run in runs
    }
    ids: dict[str, int] = {}
    for key, direction, newest, *measured in _cells(runs, target, metric):
        ids[key] = newest
        values: dict[tuple[int, int], list[float]] = {}
        for number, repeat, value in zip(*measured, strict=True):
            if value == 0:
                read[number].zeros[key, direction] += 1
                continue
            values.setdefault((number, repeat), []).append(value)
        for (number, repeat), own in values.items():
            read[number].cells.setdefault((key, direction), {})[repeat] = fmean(own)
    return History(list(read.values()), POINTS.get(ids))


def _planned(runs: Sequence[Run], target: Target) -> dict[int, set[str]]:
    """The keys of the points of the results that each run should have, by its number."""
    found: dict[int, set[str]] = {run.number: set() for run in runs}
    trials = Trial.objects.filter(run__in=runs, target=target).order_by()
    columns = ("point_key", Case(When(point__has_key=STREAMS, then="point")))
    # Repeats are listed too: PostgreSQL would sort all trials on disk to list each run once.
    for key, point, numbers in trials.values_list(*columns).annotate(runs=ArrayAgg("run__number")):
        keys = _of_streams(point) if point else {key}
        for number in numbers:
            found[number] |= keys
    return found


def _of_streams(point: Point) -> set[str]:
    """The keys of the results at the first target of a trial with named streams."""
    here = names_of(point)[:1] if targets_at_once(point) > 1 else names_of(point)
    return {point_key(result_point(point, name)) for name in here}


def _invalid(runs: Sequence[Run], target: Target) -> dict[int, dict[Cell, int]]:
    """The number of invalid results of each cell by the number of the run."""
    results = Result.objects.filter(run__in=runs, target=target, invalid=True).order_by()
    found: dict[int, dict[Cell, int]] = {}
    for number, key, direction, count in results.values_list("run__number", "point_key", "direction").annotate(
        Count("pk")
    ):
        found.setdefault(number, {})[key, direction] = count
    return found


def _cells(runs: Sequence[Run], target: Target, metric: Metric) -> QuerySet[Any, Any]:
    """A row for each cell, because a hundred runs have 50,000 results: its point key, direction and newest result, and
    arrays of run number, repeat and value."""
    value = F(metric.column) if metric.column else Cast(KeyTextTransform(metric.key, "metrics"), FloatField())
    results = Result.objects.filter(run__in=runs, target=target, invalid=False).annotate(own=value)
    cells = results.filter(own__gte=0).order_by().values_list("point_key", "direction")
    return cells.annotate(
        newest=Max("pk"),
        runs=ArrayAgg("run__number", order_by="pk"),
        repeats=ArrayAgg("repeat", order_by="pk"),
        values=ArrayAgg("own", order_by="pk"),
    ).order_by("newest")
