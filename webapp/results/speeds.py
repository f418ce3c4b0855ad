"""Write speeds of earlier results, from which the bytes written by a plan are estimated."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from webapp.hosts.models import Target
from webapp.plans.expand import Expansion
from webapp.plans.expected import Earlier, Expected, Speeds, written_expected
from webapp.plans.points import target_count
from webapp.plans.streams import names_of
from webapp.results.models import Result
from webapp.results.reading.content import POINTS, Point

LATEST = 2_000  # newest results that are read, of the targets and of similar targets


def expected_writes(
    expansion: Expansion, written_before: Mapping[str, int], targets: Sequence[Target]
) -> list[tuple[Target, Expected]]:
    """For the targets with an estimate, by name. Queries the database only if a time limit ends trials that write."""
    writing = (stream for trial, _ in expansion.distinct for stream in trial.streams if stream.workload.writes)
    open_ended = {stream.target_id for stream in writing if stream.workload.moved_bytes is None}
    wanted = [target for target in targets if str(target.pk) in open_ended]
    found = written_expected(expansion, written_before, _earlier_writes(wanted)) if wanted else {}
    told = ((target, found[str(target.pk)]) for target in wanted if str(target.pk) in found)
    return sorted(told, key=lambda row: str(row[0]))


def _earlier_writes(targets: Sequence[Target]) -> dict[str, Earlier]:
    """By target id, from valid results. At most five queries."""
    own = _speeds({target.pk: target.pk for target in targets})
    models = {target.model for target in targets if target.model}
    others = Target.objects.filter(model__in=models).exclude(pk__in=[target.pk for target in targets]) if models else ()
    alike = _speeds({other.pk: (other.model, other.kind) for other in others})
    return {
        str(target.pk): Earlier(own.get(target.pk, Speeds()), alike.get((target.model, target.kind), Speeds()))
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
    found: dict[object, list[tuple[Point, float]]] = {}
    for target, key, _, rate in rows:
        if target_count(points[key]) == 1 and len(names_of(points[key])) < 2:
            found.setdefault(groups[target], []).append((points[key], rate))
    return {group: Speeds.of(measured) for group, measured in found.items()}
