"""Previews whose times come from earlier runs on the hosts, and from the speeds of earlier results on the targets; and
the highest IOPS of a point, of which loads are shares."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg

from webapp.core.statistics import mean_of
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument
from webapp.plans.estimate import Earlier, Estimate, Expected, Speeds, estimate, written_expected
from webapp.plans.expand import Expansion
from webapp.plans.expected_time import NOTHING_LEARNED, Experience, Span
from webapp.plans.grids import PartGrid
from webapp.plans.points import stream_count
from webapp.plans.preview import PREVIEW_SEED, Preview, preview
from webapp.results.models import Result
from webapp.results.reading.content import POINTS, Point
from webapp.runs.durations import experience_of
from webapp.runs.models import TrialState

# Speeds of earlier results, from which the time of a plan and the bytes that it writes are estimated.

LATEST = 2_000  # newest results that are read, of the targets and of similar targets


def expected_writes(expansion: Expansion, cost: Estimate, targets: Sequence[Target]) -> list[tuple[Target, Expected]]:
    """For the targets with an estimate, by name. Queries the database only if a time limit ends trials that write."""
    wanted = [target for target in targets if str(target.pk) in cost.open_ended]
    writes = written_expected(expansion, cost.written_before, _earlier_writes(wanted)) if wanted else {}
    known = ((target, writes[str(target.pk)]) for target in wanted if str(target.pk) in writes)
    return sorted(known, key=lambda row: str(row[0]))


def _earlier_writes(targets: Sequence[Target]) -> dict[str, Earlier]:
    """By target id, from valid results. At most five queries."""
    own_speeds = _speeds({target.pk: target.pk for target in targets})
    models = {target.model for target in targets if target.model}
    others = Target.objects.filter(model__in=models).exclude(pk__in=[target.pk for target in targets]) if models else ()
    alike = _speeds({other.pk: (other.model, other.kind) for other in others})
    return {
        str(target.pk): Earlier(own_speeds.get(target.pk, Speeds()), alike.get((target.model, target.kind), Speeds()))
        for target in targets
    }


def _speeds(groups: Mapping[UUID, object]) -> dict[object, Speeds]:
    """By group; `groups` maps targets to groups."""
    if not groups:
        return {}
    written = Result.objects.filter(target__in=groups, direction="write", invalid=False)
    columns = ("target_id", "point_key", "pk", "bytes_per_s")
    rows = list(written.order_by("-measured_at", "-id").values_list(*columns)[:LATEST])
    points = POINTS.get({key: pk for _, key, pk, _ in rows})
    rates: dict[object, list[tuple[Point, float]]] = {}
    for target, key, _, rate in rows:
        if stream_count(points[key]) == 1:
            rates.setdefault(groups[target], []).append((points[key], rate))
    return {group: Speeds.of(measured) for group, measured in rates.items()}


Rates = Mapping[str, Sequence[tuple[str, Point, float]]]  # by target id: direction, point and bytes/s


def speeds_on(targets: Sequence[Target]) -> Rates:
    """Of valid results that used one target, newest first. At most two queries."""
    measured = Result.objects.filter(target__in=targets, direction__in=("read", "write"), invalid=False)
    columns = ("target_id", "point_key", "pk", "direction", "bytes_per_s")
    rows = list(measured.order_by("-measured_at", "-id").values_list(*columns)[:LATEST])
    points = POINTS.get({key: pk for _, key, pk, _, _ in rows})
    rates: dict[str, list[tuple[str, Point, float]]] = defaultdict(list)
    for target, key, _, direction, rate in rows:
        if stream_count(points[key]) == 1 and rate:
            rates[str(target)].append((direction, points[key], rate))
    return rates


def nearest_rates(expansion: Expansion, speeds: Rates) -> Mapping[tuple[str, str], Span]:
    """(target id, point key) -> bytes/s of the nearest measured workloads, for trials that end by an amount and either
    read or write.

    Their kind is the same, as in `plans.estimate`; of these, the nearest.
    """
    measured: dict[tuple[str, str], list[tuple[Point, float]]] = defaultdict(list)
    for target, rates in speeds.items():
        for way, point, rate in rates:
            measured[target, way].append((point, rate))
    known = {key: Speeds.of(rates) for key, rates in measured.items()}
    nearest_spans = {}
    for trial, _ in expansion.distinct:
        work, *further = trial.workloads
        if further or work.moved_bytes is None or len(trial.target_ids) > 1 or work.write_share not in (0.0, 1.0):
            continue
        direction = "write" if work.write_share else "read"
        if alike := known.get((trial.target_id, direction), Speeds()).nearest(trial.point):
            nearest_spans[trial.target_id, trial.point_key] = Span.of(alike)
    return nearest_spans


def sequential_writes(speeds: Rates) -> Mapping[str, Span]:
    """Target id -> bytes/s of direct sequential writes of whole files, by which files are filled."""
    rates_by_target = {
        target: [rate for _, point, rate in rows if point.get("pattern") == "write" and point.get("direct")]
        for target, rows in speeds.items()
    }
    return {target: Span.of(rates) for target, rates in rates_by_target.items() if rates}


def learned_preview(
    document: PlanDocument,
    targets: Sequence[Target],
    *,
    seed: int = PREVIEW_SEED,
    grids: Sequence[PartGrid] | None = None,
    experience: Mapping[str, Experience] | None = None,
) -> Preview:
    """Preview a plan; changes nothing. The hosts of `targets` must be fetched with them."""
    known = experience_of(targets) if experience is None else experience
    made = preview(document, targets, seed=seed, experience=known, grids=grids)
    if not made.estimate.unknown_trials and not any(made.estimate.written_before.values()):
        return made
    speeds = speeds_on(targets)
    nearest, writes = nearest_rates(made.expansion, speeds), sequential_writes(speeds)
    hosts = {str(target.host_id) for target in targets}
    more = {
        host: replace(known.get(host, NOTHING_LEARNED), nearest=nearest, sequential_writes=writes) for host in hosts
    }
    return replace(made, estimate=estimate(made.expansion, more))


# The highest IOPS of a point in a run, from which the rates of its shares of the load follow.


def maximum_of(run: UUID, target_id: UUID, part: str, key: str, **_: Any) -> tuple[float, ...]:
    """Mean IOPS of each direction over its valid trials, as pages show it, reads first; () without any."""
    rows = Result.objects.filter(run=run, point_key=key, target=target_id, invalid=False)
    rows = rows.filter(trial__part=part, trial__state=TrialState.DONE).order_by("direction")
    by_direction = rows.values_list("direction").annotate(values=ArrayAgg("iops"))
    return tuple(mean_of(values) for _, values in by_direction)
