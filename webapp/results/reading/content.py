"""Points and configuration facts by their digests, kept in this process.

A digest names its content (`plans.points.point_key`, `models.Configuration`), so a value that was read once stays
valid. The database is asked only for digests that are new to this process.
"""

from collections.abc import Callable, Collection, Mapping
from sys import intern
from typing import Generic, TypeVar

from webapp.plans.values import Value
from webapp.results.models import Configuration, Result
from webapp.results.reading.facts import Facts, without_device_names

Point = Mapping[str, Value]
MAX_POINTS = 10_000  # of about 2 kB
MAX_FACTS = 1_000  # of about 10 kB

Key = TypeVar("Key")
Content = TypeVar("Content")


class DigestCache(Generic[Key, Content]):
    """`read` takes keys by which the database finds the content quickly, and returns it by digest."""

    def __init__(self, max_kept: int, read: Callable[[Collection[Key]], Mapping[str, Content]]) -> None:
        self._max_kept, self._read = max_kept, read
        self._kept: dict[str, Content] = {}

    def get(self, wanted: Mapping[str, Key]) -> dict[str, Content]:
        """Content by digest, not to be changed; `wanted` is digest -> key. One query if a digest is new, else none."""
        found = {digest: known for digest in wanted if (known := self._kept.get(digest)) is not None}
        if len(found) < len(wanted):
            new = self._read([key for digest, key in wanted.items() if digest not in found])
            if len(self._kept) + len(new) > self._max_kept:
                self._kept.clear()
            self._kept.update(new)
            found.update(new)
        return found

    def clear(self) -> None:
        self._kept.clear()


def _read_points(result_ids: Collection[int]) -> dict[str, Point]:
    found = Result.objects.filter(id__in=result_ids).order_by().values_list("point_key", "point")
    return {key: _interned(point) for key, point in found}


def _interned(point: Point) -> Point:
    """Share the strings of factor names and levels between points."""
    return {intern(name): intern(value) if isinstance(value, str) else value for name, value in point.items()}


def _read_facts(digests: Collection[str]) -> dict[str, Facts]:
    found = Configuration.objects.filter(digest__in=digests).values_list("digest", "facts")
    return {digest: without_device_names(facts) for digest, facts in found}


POINTS: DigestCache[int, Point] = DigestCache(MAX_POINTS, _read_points)  # key: id of any result at the point
FACTS: DigestCache[str, Facts] = DigestCache(MAX_FACTS, _read_facts)  # key: the digest itself


def clear() -> None:
    POINTS.clear()
    FACTS.clear()
