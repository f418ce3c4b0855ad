"""The values of each cell in the runs of a plan at a target. A cell is a point and a direction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.results.metrics import Metric
from webapp.results.models import Result
from webapp.results.reading.content import POINTS, Point
from webapp.runs.models import Run, RunState, Trial

ENDED = (RunState.DONE, RunState.FAILED, RunState.CANCELLED)
MAX_RUNS = 100  # the latest

Cell = tuple[str, str]  # point key and direction
Repeats = Mapping[int, float]  # repeat -> value


@dataclass
class RunHistory:
    """Valid values above 0 of one run. `planned` are the keys of its points; `invalid` counts results left out."""

    run: Run
    at: datetime
    planned: frozenset[str]
    cells: dict[Cell, dict[int, float]] = field(default_factory=dict)
    invalid: int = 0


@dataclass(frozen=True)
class History:
    """Oldest first. `points` has the point of each key."""

    runs: Sequence[RunHistory]
    points: Mapping[str, Point]


def ended_runs(plan: Plan, target: Target) -> list[Run]:
    """The latest, oldest first."""
    found = Run.objects.filter(version__plan=plan, targets=target, state__in=ENDED)
    return sorted(found.select_related("version").order_by("-number")[:MAX_RUNS], key=lambda run: run.number)


def read_history(plan: Plan, target: Target, metric: Metric) -> History:
    """Four queries; points that are new to this process take one more."""
    runs = ended_runs(plan, target)
    planned: dict[UUID, set[str]] = {run.pk: set() for run in runs}
    trials = Trial.objects.filter(run__in=runs, target=target).order_by().values_list("run", "point_key").distinct()
    for run_id, key in trials:
        planned[run_id].add(key)
    read = {run.pk: RunHistory(run, run.started_at or run.created_at, frozenset(planned[run.pk])) for run in runs}
    column = metric.column or "metrics"
    results = Result.objects.filter(Q(run__in=runs), target=target).order_by("id")
    ids: dict[str, int] = {}
    columns = ("id", "run", "point_key", "direction", "trial__repeat", "invalid", column)
    for id_, run_id, key, direction, repeat, invalid, found in results.values_list(*columns):
        ids[key] = id_
        value = found if metric.column else found.get(metric.key)
        if invalid:
            read[run_id].invalid += 1
        elif value is not None and value > 0:
            read[run_id].cells.setdefault((key, direction), {})[repeat] = value
    return History(list(read.values()), POINTS.get(ids))
