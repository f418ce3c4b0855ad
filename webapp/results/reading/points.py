"""Points at which results were measured: the choices that a filter or a comparison offers."""

from collections.abc import Collection
from dataclasses import dataclass, replace

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

    def without(self, factors: Collection[str]) -> "TargetPoint":
        return replace(self, point={name: level for name, level in self.point.items() if name not in factors})


def target_points(query: ResultQuery) -> list[TargetPoint]:
    """Each point once for each target and label, of the newest MAX_RESULTS_READ results. Not for imported results: they
    have no target."""
    columns = ("id", "host__slug", "target__slug", "run__label", "point_key")
    rows = list(query.results.values_list(*columns)[:MAX_RESULTS_READ])
    points = POINTS.get({key: id_ for id_, _, _, _, key in rows})
    further = further_targets([id_ for id_, _, _, _, key in rows if target_count(points[key]) > 1])
    found = {
        (group_name(f"{host}/{slug}", [name for name, _, _ in further.get(id_, ())]), label, key)
        for id_, host, slug, label, key in rows
    }
    return [TargetPoint(name, points[key], label) for name, label, key in found]


def points_of(query: ResultQuery, limit: int = MAX_RESULTS_READ) -> list[Point]:
    """Each point once, of the newest `limit` results."""
    return list(POINTS.get(dict(query.results.values_list("point_key", "id")[:limit])).values())
