"""Points by their keys. A key is the digest of its point (`plans.points.point_key`), so what was read once stays true:
it is kept in this process, and the database is asked only for points that are new to it."""

from collections.abc import Mapping
from sys import intern

from webapp.plans.values import Value
from webapp.results.models import Result

Point = Mapping[str, Value]
MOST_KEPT = 10_000  # of about 2 kB

_kept: dict[str, Point] = {}


def points_of(results: Mapping[str, int]) -> dict[str, Point]:
    """The point of each key, not to be changed; `results` is key -> id of a result that stands at it.

    One query if any of them is new, else none.
    """
    found = {key: point for key in results if (point := _kept.get(key)) is not None}
    if len(found) < len(results):
        new = Result.objects.filter(id__in=[id_ for key, id_ in results.items() if key not in found])
        read = {key: _interned(point) for key, point in new.order_by().values_list("point_key", "point")}
        _keep(read)
        found |= read
    return found


def _keep(read: Mapping[str, Point]) -> None:
    if len(_kept) + len(read) > MOST_KEPT:
        forget()
    _kept.update(read)


def _interned(point: Point) -> Point:
    """Names of factors, and levels that are names, are there once and not with each point."""
    return {intern(name): intern(value) if isinstance(value, str) else value for name, value in point.items()}


def forget() -> None:
    """All of them."""
    _kept.clear()
