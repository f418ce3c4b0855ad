"""Points at which results were measured: the choices that a filter or a comparison offers."""

from dataclasses import dataclass

from webapp.hosts.selectors import group_name
from webapp.plans.points import target_count
from webapp.results.reading.content import POINTS, Point
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import further_targets

MAX_RESULTS_READ = 5_000


@dataclass(frozen=True)
class TargetPoint:
    """A point that was measured on a target."""

    target_name: str  # host/target
    point: Point
    label: str = ""  # of the host in its group
    part: str = ""  # of the plan


def target_points(query: ResultQuery) -> list[TargetPoint]:
    """Each point once for each target, label and part, of the newest MAX_RESULTS_READ results. Not for imported
    results: they have no target."""
    columns = ("id", "host__slug", "target__slug", "run__label", "trial__part", "point_key")
    rows = list(query.results.values_list(*columns)[:MAX_RESULTS_READ])
    points = POINTS.get({key: id_ for id_, *_, key in rows})
    further = further_targets([id_ for id_, *_, key in rows if target_count(points[key]) > 1])
    names = dict.fromkeys(
        (group_name(f"{host}/{slug}", [name for name, _, _ in further.get(id_, ())]), label, part, key)
        for id_, host, slug, label, part, key in rows
    )
    return [TargetPoint(name, points[key], label, part) for name, label, part, key in names]


def points_of(query: ResultQuery, limit: int = MAX_RESULTS_READ) -> list[Point]:
    """Each point once, of the newest `limit` results."""
    return list(POINTS.get(dict(query.results.values_list("point_key", "id")[:limit])).values())
