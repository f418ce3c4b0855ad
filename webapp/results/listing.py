"""Results as a list shows them: plain rows, as thousands of model instances take longer to make than to read."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform

from webapp.hosts.models import Target
from webapp.hosts.names import BESIDE, group_name
from webapp.plans.points import at_once
from webapp.plans.trial_numbers import number_of
from webapp.results.models import Configuration, Result
from webapp.results.points import Point, points_of
from webapp.runs.at_once import FurtherTarget
from webapp.runs.models import Run

Named = tuple[str, str, str]  # slug, model and serial of a target


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
    trial: int  # number in its run
    repeat: int
    point: Point
    run: int  # number
    plan: str  # slug
    plan_title: str
    label: str  # of its host in a group, "" where it was not run for a group
    host: str
    target: str  # of several at once first + second; so are model and serial
    model: str  # of the drive, "" where none is known
    serial: str
    drive_state: str  # what the worker knew the drive to hold before its stream began; "" where nobody said
    why_invalid: str  # what a person wrote when marking it; "" where it is to be trusted


_NUMBERS = [*itertools.takewhile(lambda name: name != "trial", Listed.__dataclass_fields__)]
_COLUMNS = (
    *_NUMBERS, "trial__index", "trial__repeat", "trial__invalid_reason", "point_key", "run_id", "target_id",
    "stream_run__configuration_id",
)  # fmt: skip


def listed(results: QuerySet[Result]) -> list[Listed]:
    """In their order. What rows share is read once and not with each: five queries, or four; two more where targets
    were used at once."""
    rows = list(results.values_list(*_COLUMNS))
    points = points_of({row[-4]: row[0] for row in rows})
    runs = by_key(
        Run.objects.filter(pk__in={row[-3] for row in rows}),
        "number", "version__plan__slug", "version__plan__title", "label", "invalid_reason",
    )  # fmt: skip
    targets = by_key(Target.objects.filter(pk__in={row[-2] for row in rows}), "host__slug", "slug", "model", "serial")
    several = {row[0]: row[-1] for row in rows if at_once(points[row[-4]]) > 1}
    further = further_of(several)
    states = _drive_states({row[-1] for row in rows}) | _states_of_all({*several.values()})
    return [_listed(row, points, runs, targets, further, states) for row in rows]


def _listed(
    row: tuple[Any, ...],
    points: Mapping[str, Point],
    runs: Mapping[UUID, tuple[Any, ...]],
    targets: Mapping[UUID, tuple[Any, ...]],
    further: Mapping[int, list[Named]],
    states: Mapping[str | None, str],
) -> Listed:
    *numbers, index, repeat, why, key, run_id, target_id, configuration = row
    *of_run, run_why = runs[run_id]
    host, *named = targets[target_id]
    of_configuration = (states.get(configuration, ""), why or run_why)
    place = together((named[0], named[1], named[2]), further.get(row[0], ()))
    return Listed(*(*numbers, number_of(index), repeat, points[key], *of_run, host, *place, *of_configuration))


def further_of(results: Iterable[int]) -> dict[int, list[Named]]:
    """Of results (ids) of targets at once, those beside the first one, in the order of streams. One query, or none."""
    wanted, found = list(results), dict[int, list[Named]]()
    columns = ("trial__results__id", "target__slug", "target__model", "target__serial")
    known = FurtherTarget.objects.filter(trial__results__in=wanted).order_by("stream") if wanted else None
    for id_, *named in known.values_list(*columns) if known is not None else ():
        found.setdefault(id_, []).append((named[0], named[1], named[2]))
    return found


def together(first: Named, further: Sequence[Named]) -> Named:
    """What targets at once are called together; a model or serial that several have is said once."""
    if not further:
        return first
    slugs, models, serials = zip(first, *further, strict=True)
    return group_name(slugs[0], slugs[1:]), _each_once(models), _each_once(serials)


def _each_once(names: Iterable[str]) -> str:
    return BESIDE.join(dict.fromkeys(name for name in names if name))


def by_key(found: QuerySet[Any], *columns: str) -> dict[UUID, tuple[Any, ...]]:
    """These columns of each row: what many results share, for looking up."""
    return {key: tuple(values) for key, *values in found.order_by().values_list("pk", *columns)}


def _drive_states(digests: set[str | None]) -> dict[str | None, str]:
    state = KeyTextTransform("stream.0.drive_state", "facts")
    found = Configuration.objects.filter(pk__in=digests - {None}).values_list("pk", state)
    return {digest: text or "" for digest, text in found}


def _states_of_all(digests: set[str | None]) -> dict[str | None, str]:
    """The same of every stream, each state once."""
    found = Configuration.objects.filter(pk__in=digests - {None}).values_list("pk", "facts") if digests else ()
    return {digest: _each_once(drive_states(facts)) for digest, facts in found}


def drive_states(facts: Mapping[str, str]) -> list[str]:
    """What the worker knew each stream's drive to hold before, in the order of the streams."""
    return [
        text for name, text in sorted(facts.items()) if name.startswith("stream.") and name.endswith(".drive_state")
    ]
