"""Results as a list shows them: plain rows, as thousands of model instances take longer to make than to read."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform

from webapp.hosts.models import Target
from webapp.results.models import Configuration, Result
from webapp.results.points import Point, points_of
from webapp.runs.models import Run


@dataclass(slots=True)
class Listed:
    """One result. Numbers have the names and units of `models.Result`."""

    id: int
    direction: str
    measured_at: datetime
    kernel_lines: int
    invalid: bool
    ios: int
    bytes: int
    runtime_ms: int
    iops: float
    bytes_per_s: float
    latency_kind: str
    latency_min_ns: float
    latency_mean_ns: float
    latency_max_ns: float
    latency_stddev_ns: float
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    trial: int  # index
    repeat: int
    point: Point
    run: int  # number
    plan: str  # slug
    plan_title: str
    host: str
    target: str
    model: str  # of the drive, "" where none is known
    serial: str
    drive_state: str  # what the worker knew the drive to hold before its leg began; "" where nobody said
    why_invalid: str  # what a person wrote when marking it; "" where it is to be trusted


_NUMBERS = [*itertools.takewhile(lambda name: name != "trial", Listed.__dataclass_fields__)]
_COLUMNS = (
    *_NUMBERS, "trial__index", "trial__repeat", "trial__invalid_reason", "point_key", "run_id", "target_id",
    "leg_run__configuration_id",
)  # fmt: skip


def listed(results: QuerySet[Result]) -> list[Listed]:
    """In their order. What rows share is read once and not with each: five queries, or four."""
    rows = list(results.values_list(*_COLUMNS))
    points = points_of({row[-4]: row[0] for row in rows})
    runs = by_key(
        Run.objects.filter(pk__in={row[-3] for row in rows}),
        "number", "version__plan__slug", "version__plan__title", "invalid_reason",
    )  # fmt: skip
    targets = by_key(Target.objects.filter(pk__in={row[-2] for row in rows}), "host__slug", "slug", "model", "serial")
    states = _drive_states({row[-1] for row in rows})
    return [_listed(row, points, runs, targets, states) for row in rows]


def _listed(
    row: tuple[Any, ...],
    points: Mapping[str, Point],
    runs: Mapping[UUID, tuple[Any, ...]],
    targets: Mapping[UUID, tuple[Any, ...]],
    states: Mapping[str | None, str],
) -> Listed:
    *numbers, index, repeat, why, key, run_id, target_id, configuration = row
    run, plan, title, run_why = runs[run_id]
    of_run, of_configuration = (run, plan, title), (states.get(configuration, ""), why or run_why)
    return Listed(*(*numbers, index, repeat, points[key], *of_run, *targets[target_id], *of_configuration))


def by_key(found: QuerySet[Any], *columns: str) -> dict[UUID, tuple[Any, ...]]:
    """These columns of each row: what many results share, for looking up."""
    return {key: tuple(values) for key, *values in found.order_by().values_list("pk", *columns)}


def _drive_states(digests: set[str | None]) -> dict[str | None, str]:
    state = KeyTextTransform("leg.0.drive_state", "facts")
    found = Configuration.objects.filter(pk__in=digests - {None}).values_list("pk", state)
    return {digest: text or "" for digest, text in found}
