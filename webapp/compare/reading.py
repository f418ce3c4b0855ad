"""Results as rows for comparing: five queries, whatever is asked, and one more where targets were used at once.

What many results share (a run, a target, a point, a configuration) is read once and not with each of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from webapp.compare.dimensions import Row
from webapp.compare.facts import normalised
from webapp.compare.query import CompareRefused
from webapp.hosts.models import Target
from webapp.hosts.names import group_name
from webapp.plans.points import at_once
from webapp.plans.trial_numbers import number_of
from webapp.results.filters import ResultFilter
from webapp.results.listing import Named, by_key, further_of, together
from webapp.results.metrics import Metric
from webapp.results.models import Configuration, Result
from webapp.results.points import Point, points_of
from webapp.results.selectors import conditions
from webapp.runs.models import Run

MOST_RESULTS = 20_000
SPOTS_LOOKED_AT = 5_000
# a text is looked up more quickly than a UUID
_COLUMNS = (
    "id", "point_key", Cast("run_id", TextField()), Cast("target_id", TextField()), "stream_run__configuration_id",
    "direction", "trial__repeat", "trial__index", "stream_run__fio_version", "invalid", "trial__invalid_reason",
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """In the order they were measured in; `missing` results have no value of the metric."""

    rows: tuple[Row, ...]
    missing: int


@dataclass(frozen=True)
class _Shared:
    """What results share, by its key in the database."""

    points: Mapping[str, Point]
    runs: Mapping[str, tuple[int, str, str, str]]  # number, plan, label of its host, why it is invalid
    targets: Mapping[str, tuple[str, str, str, str]]  # host, target, model and serial of its drive
    further: Mapping[int, list[Named]]  # of results of targets at once, by their ids
    facts: Mapping[str, Mapping[str, str]]


def read_rows(asked: ResultFilter, metric: Metric) -> Rows:
    """Raises CompareRefused where there are too many."""
    found = Result.objects.filter(conditions(asked)).order_by()
    values = list(found.values_list(metric.column, *_COLUMNS)[: MOST_RESULTS + 1])
    if len(values) > MOST_RESULTS:
        raise CompareRefused(
            "compare_too_many",
            f"More than {MOST_RESULTS:,} results fit this choice. Choose runs, hosts, drives or levels of a factor.",
        )
    points = points_of({str(one[2]): int(one[1]) for one in values})
    several = {key for key, point in points.items() if at_once(point) > 1}
    shared = _Shared(
        points,
        _by_key(
            Run.objects.filter(pk__in={one[3] for one in values}),
            "number",
            "version__plan__slug",
            "label",
            "invalid_reason",
        ),
        _by_key(Target.objects.filter(pk__in={one[4] for one in values}), "host__slug", "slug", "model", "serial"),
        further_of(one[1] for one in values if one[2] in several),
        _facts({one[5] for one in values if one[5]}),
    )
    values.sort(key=lambda one: (shared.runs[one[3]][0], one[8], one[1]))
    rows = tuple(_row(one, shared) for one in values if one[0] is not None)
    return Rows(rows, len(values) - len(rows))


def _by_key(found: QuerySet[Any], *columns: str) -> dict[str, tuple[Any, ...]]:
    return {str(key): values for key, values in by_key(found, *columns).items()}


def _facts(digests: set[str]) -> dict[str, Mapping[str, str]]:
    found = Configuration.objects.filter(digest__in=digests).values_list("digest", "facts")
    return {digest: normalised(facts) for digest, facts in found}


def _row(one: Sequence[Any], shared: _Shared) -> Row:
    value, id_, key, run_id, target_id, digest, direction, repeat, index, fio, invalid, why = one
    (run, plan, label, run_why), (host, *named) = shared.runs[run_id], shared.targets[target_id]
    target, model, serial = together((named[0], named[1], named[2]), shared.further.get(id_, ()))
    return Row(
        id_, value, host, f"{host}/{target}", model, serial, run, number_of(index), plan, direction, repeat,
        shared.points[key], digest or "", fio, (why or run_why or "marked as invalid") if invalid else "", label,
        shared.facts.get(digest, {}),
    )  # fmt: skip


@dataclass(frozen=True)
class Spot:
    """A point that was measured at a target."""

    target: str  # host/target
    point: Point
    label: str = ""  # of the host in its group

    def without(self, factors: Collection[str]) -> "Spot":
        return Spot(self.target, {name: level for name, level in self.point.items() if name not in factors}, self.label)


def spots(asked: ResultFilter, most: int = SPOTS_LOOKED_AT) -> list[Spot]:
    """Each point once for each target and label, of the newest `most` results."""
    newest = Result.objects.filter(conditions(asked)).order_by("-measured_at", "-id")
    rows = list(newest.values_list("id", "host__slug", "target__slug", "run__label", "point_key")[:most])
    points = points_of({key: id_ for id_, _, _, _, key in rows})
    further = further_of(id_ for id_, _, _, _, key in rows if at_once(points[key]) > 1)
    found = {
        (group_name(f"{h}/{t}", [slug for slug, _, _ in further.get(id_, ())]), label, key)
        for id_, h, t, label, key in rows
    }
    return [Spot(target, points[key], label) for target, label, key in found]


def points_there(asked: ResultFilter, most: int = SPOTS_LOOKED_AT) -> list[Point]:
    """The points of the newest `most` results: what there is to choose from."""
    newest = Result.objects.filter(conditions(asked)).order_by("-measured_at", "-id")
    return list(points_of(dict(newest.values_list("point_key", "id")[:most])).values())
