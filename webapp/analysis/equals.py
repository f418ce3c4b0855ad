"""What must be equal where sides are compared: the full point of each result, and which full points are one.

A full point has the factors of a result, and beside them what else tells its values from other values of its side:
labels of imports that vary among equal factors, tests of a tool, parts of a plan, places. Explore (x = `matched`) and
Bench compare sides only at equal full points. Here is also the one rule of places, and what all points of a page share.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

from webapp.analysis.dimensions import IDENTITY, LABELS, PART
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS
from webapp.plans.points import effective, point_key
from webapp.plans.values import Value
from webapp.results.reading.content import Point
from webapp.results.reading.rows import LAYOUT_LABEL, TEST, ResultRow, parts_are_alike, places_of_several_tests
from worker.contract.workload import Sync

# Like with like: where results were measured, and what must be equal there. Drives are compared in the same host at
# the same controller, hosts and controllers with the same drives. Explore, Bench and Rankings read this rule here.

HOST, CONTROLLER, DRIVE = "host", "controller", "drive"
NOT_STATED = "not stated"
PLACES_OF_DRIVES, PLACES_OF_HOSTS = (HOST, CONTROLLER), (DRIVE,)
_DRIVES = frozenset({"model", "serial", "target"})  # dimensions whose levels are drives
_HOSTS = frozenset({HOST, CONTROLLER})
OTHER_PLACES = (
    "drives are compared only in the same host at the same controller, hosts and controllers only with the same drives"
)
Place = tuple[str, ...]


def host_of(row: ResultRow) -> str:
    """A host that an import does not state is equal only to that of the same import."""
    return row.host or f"{NOT_STATED} by {row.import_title}"


def controller_of(row: ResultRow) -> str:
    return row.controller or NOT_STATED


def drive_at(row: ResultRow) -> str:
    """Model and layout. A drive of an unknown model is only equal to itself. The number of drives at once and the
    layout of an own result are factors of its point."""
    model = row.model or f"{row.target_name}, model {NOT_STATED}"
    return ", ".join(filter(None, (model, row.facts.get(LAYOUT_LABEL, ""))))


_READ = {HOST: host_of, CONTROLLER: controller_of, DRIVE: drive_at}


def equal_places(series: Collection[str]) -> tuple[str, ...]:
    """What series by these dimensions must share; empty if they name both drives and hosts, or neither."""
    drives, hosts = (not names.isdisjoint(series) for names in (_DRIVES, _HOSTS))
    if drives == hosts:
        return ()
    return PLACES_OF_DRIVES if drives else PLACES_OF_HOSTS


def place_of(row: ResultRow, names: Iterable[str]) -> dict[str, Value]:
    """The place of a result, as parts of its point."""
    return {name: _READ[name](row) for name in names}


def places_of(rows: Iterable[ResultRow], names: Collection[str]) -> frozenset[Place]:
    """Each place once: the levels of these names."""
    return frozenset([tuple(_READ[name](row) for name in names) for row in rows]) if names else frozenset()


Side = TypeVar("Side", bound=Hashable)
PATTERN, BLOCK, JOBS, DEPTH = "pattern", "block_size", "numjobs", "iodepth"
PREFIX = "label:"  # of labels in points and addresses, because a label may have the name of a factor
TABLE = "table"  # label of a reference: the caption in its source

# Labels of imports that are facts of our own runs.
FACTS_OF_LABELS = {
    "firmware": "device.firmware", "kernel": "kernel.release", "link": "device.transport",
    "interface": "device.transport", "cache policy": "device.write_cache", "write cache": "device.write_cache",
    "file system": "file_system", "mount options": "file_system.options", "operating system": "distribution",
    "processor": "cpu.model",
}  # fmt: skip


@lru_cache(maxsize=4_096)  # asked for each label of each row
def is_specification(name: str) -> bool:
    """Whether a label of an import describes the product or the source, and not the workload."""
    return FACTS_OF_LABELS.get(name.lower(), name) in LABELS or name in IDENTITY or name in (LAYOUT_LABEL, TABLE)


# Labels of imports that are part of the workload: those that vary among tests with equal factors at one drive.
#
# The fill level of a published table is such a label. Without it, the values of all fill levels would be one mean.
# Labels that describe the product, such as its firmware, are not part of the workload: cells with several of them say
# so.


def varying_labels(rows: Iterable[ResultRow]) -> frozenset[str]:
    """Their names. A label that only some of the tests state varies too."""
    tests: dict[object, set[tuple[tuple[str, str], ...]]] = {}
    for row in rows:
        if row.imported:
            place = (row.imported, row.point_key, row.direction, row.test, drive_of(row))
            tests.setdefault(place, set()).add(tuple(sorted(_labels(row).items())))
    return frozenset(name for stated in tests.values() for name in _varying([dict(each) for each in stated]))


def labels_in(row: ResultRow, names: Collection[str]) -> dict[str, Value]:
    """The labels of a result with these names, as parts of its point."""
    if not row.imported or not names:
        return {}
    return {f"{PREFIX}{name}": text for name, text in _labels(row).items() if name in names}


def points_with_labels(rows: Iterable[ResultRow], names: Collection[str]) -> list[Point]:
    """Each point once, with the labels that are part of it."""
    points: dict[object, Point] = {}
    for row in rows:
        stated = labels_in(row, names)
        points[row.point_key, *stated.items()] = {**effective(row.point), **stated}
    return list(points.values())


def is_label(name: str) -> bool:
    """Whether this part of a point is a label and not a factor."""
    return name.startswith(PREFIX)


def drive_of(row: ResultRow) -> tuple[str, ...]:
    """What the labels of an import say about it. `target_name` may be the name of the test."""
    return row.host, row.model, row.serial, row.layout


def _labels(row: ResultRow) -> dict[str, str]:
    return {name: text for name, text in row.facts.items() if not is_specification(name)}


def _varying(stated: Collection[Mapping[str, str]]) -> set[str]:
    names = {name for each in stated for name in each}
    return {name for name in names if len({each.get(name) for each in stated}) > 1}


@dataclass(frozen=True)
class FullPoint:
    key: str
    point: Mapping[str, Value] = field(compare=False)


@dataclass(frozen=True)
class Stated(Generic[Side]):
    """The factors that a result states. A run states all of them, an import only some."""

    side: Side
    key: str  # of the whole point
    point: Mapping[str, Value] = field(compare=False)
    without: frozenset[str]  # factors that need not be equal
    complete: bool

    def full_point(self) -> FullPoint:
        rest = {name: level for name, level in self.point.items() if name not in self.without}
        return FullPoint(point_key(rest)[:16], rest)


class Equals(Generic[Side]):
    """The full points of the results of all sides."""

    def __init__(
        self,
        rows_by_side: Mapping[Side, Sequence[ResultRow]],
        *,
        without: Callable[[Side], frozenset[str]],
        place_of: Callable[[Side, ResultRow], Mapping[str, Value]],
    ) -> None:
        """`without`: the factors of a side that need not be equal. `place_of`: what must be equal besides factors."""
        rows = [row for of_side in rows_by_side.values() for row in of_side]
        self.labels = varying_labels(rows)
        self._place_of = place_of
        self._several_tests = frozenset(
            place for place, _ in places_of_several_tests(rows, lambda row: (self._factors(row), drive_of(row)))
        )
        self._by_part = any(map(parts_are_alike, rows_by_side.values()))
        self.tests = {side: {row.id: self._test(side, row) for row in rows} for side, rows in rows_by_side.items()}
        of_test = {(side, self.tests[side][row.id]): row for side, rows in rows_by_side.items() for row in rows}
        stated = {test: self._stated(test[0], row, without(test[0])) for test, row in of_test.items()}
        points = matched_points(stated.values())
        self.points = {test: points[each] for test, each in stated.items()}  # by side and test

    def _test(self, side: Side, row: ResultRow) -> Hashable:
        """All results of a side with the same test have one full point."""
        places = (*self._part(row).values(), *self._place_of(side, row).values())
        if not row.imported:
            return row.point_key, *places
        return row.imported, row.test, row.point_key, *labels_in(row, self.labels).items(), *places

    def _stated(self, side: Side, row: ResultRow, without: frozenset[str]) -> Stated[Side]:
        tests = {TEST: row.test} if self._factors(row) in self._several_tests else {}
        parts = labels_in(row, self.labels) | tests | self._part(row) | dict(self._place_of(side, row))
        key = " ".join([row.point_key, *map(str, parts.items())])
        return Stated(side, key, {**effective(row.point), **parts}, without, complete=not row.imported)

    def _part(self, row: ResultRow) -> dict[str, Value]:
        return {PART: row.part} if self._by_part and row.part else {}

    def _factors(self, row: ResultRow) -> tuple[Hashable, ...]:
        """With the same factors, several tests of a tool at one drive, such as Read and Re-read of iozone, are full
        points of their own. If only different drives have different names of tests, the names do not matter, such as
        those of fio's jobs."""
        return row.imported, row.direction, row.point_key, *labels_in(row, self.labels).items()


def matched_points(stated: Iterable[Stated[Side]]) -> dict[Stated[Side], FullPoint]:
    """The full point of each.

    An incomplete one belongs to the full point of other sides that agrees in all factors that it states, unless its own
    side, or another one with an equal result, states that point more fully. Of several, it belongs to the one with one
    request in flight. If there is none, or still several, it is a full point itself.
    """
    made: dict[tuple[str, frozenset[str]], FullPoint] = {}  # sides share most of them
    given: dict[Stated[Side], FullPoint] = {}
    for each in stated:
        shared = each.key, each.without
        if shared not in made:
            made[shared] = each.full_point()
        given[each] = made[shared]
    stated_by: dict[str, set[Hashable]] = {}
    for each, full in given.items():
        stated_by.setdefault(full.key, set()).add(each.side)
    points: dict[Stated[Side], FullPoint] = {}
    by_main: dict[tuple[Value, Value], dict[str, FullPoint]] = {}
    ordered = sorted(given.items(), key=lambda pair: (not pair[0].complete, -len(pair[1].point), pair[1].key))
    for each, full in ordered:
        others = by_main.setdefault((full.point.get(PATTERN), full.point.get(BLOCK)), {})
        fits = () if each.complete else tuple(_fitting(full, others.values(), stated_by))
        if len(fits) > 1:  # a value that may belong to any of them says nothing about each
            fits = _one_request(full, fits)
        points[each] = fits[0] if fits else full
        if not fits:
            others[full.key] = full
    return points


def _fitting(
    full: FullPoint, others: Iterable[FullPoint], stated_by: Mapping[str, set[Hashable]]
) -> Iterator[FullPoint]:
    for other in others:
        if full.key == other.key or (
            full.point.items() <= other.point.items() and stated_by[full.key].isdisjoint(stated_by[other.key])
        ):
            yield other


def _one_request(full: FullPoint, fits: Iterable[FullPoint]) -> tuple[FullPoint, ...]:
    """The point with queue depth 1 and one job, if these are not stated: most tools without these options issue one
    request at a time."""
    unstated = [name for name in (DEPTH, JOBS) if name not in full.point]
    of_one = tuple(other for other in fits if all(other.point.get(name, 1) == 1 for name in unstated))
    return of_one if len(of_one) == 1 else ()


# The conditions that all compared points share. A page states them once, and not in each label.

_STATED = (PATTERN, BLOCK, DEPTH, JOBS, "ioengine", "direct", "sync", "size", "runtime", "prefill")
_WORDS: Mapping[str, Mapping[Value, str]] = {
    "direct": {True: "direct", False: "buffered"},
    "sync": {Sync.NONE.value: ""},
    "prefill": {True: "written first", False: ""},
}


def same_for_all(points: Sequence[Mapping[str, Value]], named: Collection[str] = ()) -> Iterator[str]:
    """`4 KiB`, `QD 32`, `libaio`, `direct`, `60 s`: the main factors that all points state with one level, without
    those in `named`. A count of 1 job is not said."""
    first, *others = points or [{}]
    names = [name for name in _STATED if name in first and name not in named]
    shared = [name for name in names if all(point.get(name) == first[name] for point in others)]
    yield from filter(None, [_words(name, first[name], first) for name in shared])


def _words(name: str, level: Value, point: Mapping[str, Value]) -> str:
    if level in _WORDS.get(name, {}):
        return _WORDS[name][level]
    text = engine_of(point).NAMED_BY.get(name, "{}" if name == "runtime" else f"{FACTORS[name].label} {{}}")
    return "" if text.endswith("s") and level == 1 else text.format(FACTORS[name].format(level))
