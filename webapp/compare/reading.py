"""Results as rows for comparing: three queries, whatever is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.compare.dimensions import Row
from webapp.compare.facts import normalised
from webapp.compare.query import CompareRefused
from webapp.plans.factors import Value
from webapp.results.filters import ResultFilter
from webapp.results.metrics import Metric
from webapp.results.models import Configuration, Result
from webapp.results.selectors import conditions

MOST_RESULTS = 20_000
SPOTS_LOOKED_AT = 5_000
_COLUMNS = (
    "id", "host__slug", "target__slug", "target__model", "target__serial", "run__number", "run__version__plan__slug",
    "direction", "trial__repeat", "point_key", "leg_run__configuration_id", "leg_run__fio_version", "invalid",
    "trial__invalid_reason", "run__invalid_reason",
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """In the order they were measured in; `missing` results have no value of the metric."""

    rows: tuple[Row, ...]
    missing: int


def read_rows(asked: ResultFilter, metric: Metric) -> Rows:
    """Raises CompareRefused where there are too many."""
    found = Result.objects.filter(conditions(asked)).order_by("run__number", "trial__index", "id")
    values = list(found.values_list(metric.column, *_COLUMNS)[: MOST_RESULTS + 1])
    if len(values) > MOST_RESULTS:
        raise CompareRefused(
            "compare_too_many",
            f"More than {MOST_RESULTS:,} results fit this choice. Choose runs, hosts, drives or levels of a factor.",
        )
    points = points_of({str(one[10]): int(one[1]) for one in values})
    facts = _facts({one[11] for one in values if one[11]})
    rows = tuple(_row(one, points, facts) for one in values if one[0] is not None)
    return Rows(rows, len(values) - len(rows))


def points_of(results: Mapping[str, int]) -> dict[str, Mapping[str, Value]]:
    """The point of each key, read from one result that stands at it: `results` is key -> id."""
    return dict(Result.objects.filter(id__in=results.values()).values_list("point_key", "point"))


def _facts(digests: set[str]) -> dict[str, Mapping[str, str]]:
    found = Configuration.objects.filter(digest__in=digests).values_list("digest", "facts")
    return {digest: normalised(facts) for digest, facts in found}


def _row(one: Sequence[Any], points: Mapping[str, Mapping[str, Value]], facts: Mapping[str, Mapping[str, str]]) -> Row:
    value, id_, host, target, model, serial, run, plan, direction, repeat, key, digest, fio, invalid, *why = one
    return Row(
        id_, value, host, f"{host}/{target}", model, serial, run, plan, direction, repeat, points[key],
        digest or "", fio, (next(filter(None, why), "marked as invalid")) if invalid else "", facts.get(digest, {}),
    )  # fmt: skip


@dataclass(frozen=True)
class Spot:
    """A point that was measured at a target."""

    target: str  # host/target
    point: Mapping[str, Value]


def spots(asked: ResultFilter, most: int = SPOTS_LOOKED_AT) -> list[Spot]:
    """Each point once for each target, of the newest `most` results: what there is to choose from."""
    newest = Result.objects.filter(conditions(asked)).order_by("-measured_at", "-id")
    rows = newest.values_list("id", "host__slug", "target__slug", "point_key")[:most]
    found = {(f"{host}/{target}", key): id_ for id_, host, target, key in rows}
    points = points_of({key: id_ for (_, key), id_ in found.items()})
    return [Spot(target, points[key]) for target, key in found]
