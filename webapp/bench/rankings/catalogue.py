"""What was measured: the workloads of all valid results, and what each was measured on.

A ranking chooses its workload, its filters and what is "not measured" from this, before it reads a single result.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Protocol
from uuid import UUID

from django.db.models import Count, Max

from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN
from webapp.hosts.models import Target
from webapp.plans.engines import name_of
from webapp.plans.factors import STREAM
from webapp.plans.load import is_share
from webapp.plans.points import target_count
from webapp.results.models import Configuration, Result
from webapp.results.reading.content import POINTS, Point
from webapp.results.reading.newest import PER_CELL
from worker.contract.workload import Pattern

_PATTERNS = frozenset(Pattern)


@dataclass(frozen=True)
class Load:
    """What a drive has to do: the main factors of a workload. A queue depth or number of jobs that a result does not
    state counts as 1, because most tools without these options issue one request at a time."""

    pattern: Pattern
    block_size: int  # bytes
    iodepth: int
    numjobs: int

    @property
    def in_flight(self) -> int:
        """Requests at a time."""
        return self.iodepth * self.numjobs


def load_of(point: Point) -> Load | None:
    """None for workloads without a pattern and block size, for one stream beside others, and for several targets at
    once: their values are not those of one drive."""
    pattern, block_size = point.get(PATTERN), point.get(BLOCK)
    if pattern not in _PATTERNS or not isinstance(block_size, int) or STREAM in point or target_count(point) > 1:
        return None
    depth, jobs = point.get(DEPTH, 1), point.get(JOBS, 1)
    if not isinstance(depth, int) or not isinstance(jobs, int):
        return None
    return Load(Pattern(str(pattern)), block_size, depth, jobs)


class Origins(StrEnum):
    """Where results come from."""

    ALL = "all"
    OWN = "own"
    REFERENCES = "references"


class Described(Protocol):
    """A source or a result."""

    @property
    def host(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def layout(self) -> str: ...
    @property
    def controller(self) -> str | None: ...
    @property
    def tool(self) -> str: ...
    @property
    def reference(self) -> bool: ...
    @property
    def imported(self) -> int: ...
    @property
    def target_name(self) -> str: ...
    @property
    def serial(self) -> str: ...


def identity_of(thing: Described) -> tuple[str, ...]:
    """Equal for a drive and its results. Layouts of one drive are several."""
    place = str(thing.imported) if thing.imported else thing.target_name
    return place, thing.model, thing.serial, thing.layout


@dataclass(frozen=True)
class Source:
    """A target, or a drive of an import, with what it was measured in and by."""

    host: str
    target_name: str  # host/target; "" of an import
    model: str
    serial: str
    layout: str
    controller: str | None  # None if only the results themselves say it
    tool: str
    reference: bool = False
    imported: int = 0
    import_title: str = ""


@dataclass(frozen=True)
class Filter:
    """Values of one kind are alternatives. Empty: all."""

    models: frozenset[str] = frozenset()
    controllers: frozenset[str] = frozenset()
    layouts: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    origins: Origins = Origins.ALL

    def admits(self, thing: Described) -> bool:
        pairs = (
            (self.models, thing.model), (self.layouts, thing.layout), (self.hosts, thing.host),
            (self.tools, thing.tool), (self.controllers, thing.controller),
        )  # fmt: skip
        if any(values and value is not None and value not in values for values, value in pairs):
            return False
        return self.origins is Origins.ALL or thing.reference == (self.origins is Origins.REFERENCES)


@dataclass(frozen=True)
class Catalogue:
    loads: Mapping[str, Load]  # by point key
    sources: Mapping[str, frozenset[Source]]  # by point key
    sizes: Mapping[str, int]  # by point key: about the results that are read there
    shares: frozenset[str] = frozenset()  # point keys of shares of the load

    @cached_property
    def all_sources(self) -> frozenset[Source]:
        return frozenset().union(*self.sources.values())

    def admitted(self, filters: Filter) -> "Catalogue":
        """The part that a filter leaves."""
        admitted_sources = {key: frozenset(filter(filters.admits, sources)) for key, sources in self.sources.items()}
        return replace(self, sources=admitted_sources)._of(
            [key for key, sources in admitted_sources.items() if sources]
        )

    @property
    def of_shares(self) -> "Catalogue":
        """What was measured at shares of the load."""
        return self._of([key for key in self.loads if key in self.shares])

    def _of(self, keys: Collection[str]) -> "Catalogue":
        loads, sources = {key: self.loads[key] for key in keys}, {key: self.sources[key] for key in keys}
        return replace(self, loads=loads, sources=sources)

    @cached_property
    def counts(self) -> Mapping[Load, int]:
        """The number of drives that were measured at each load."""
        drives: dict[Load, set[tuple[str, ...]]] = {}
        for key, load in self.loads.items():
            drives.setdefault(load, set()).update(map(identity_of, self.sources[key]))
        return {load: len(identities) for load, identities in drives.items()}

    def most_alike(self, *, across_hosts: bool) -> Mapping[Load, tuple[int, int]]:
        """At each load, the most drives that one tool measured in one place under the same conditions: own ones, and
        all. A drive alone counts as none."""
        most: dict[Load, tuple[int, int]] = {}
        for key, load in self.loads.items():
            groups: dict[tuple[object, ...], set[tuple[str, ...]]] = {}
            for source in self.sources[key]:
                host = source.host or source.import_title  # as in `places.host_of`
                place = () if across_hosts else (host, source.controller)
                groups.setdefault((source.reference, source.tool, *place), set()).add(identity_of(source))
            sizes = {kind: len(drives) for kind, drives in groups.items() if len(drives) > 1}
            most_own = max((size for (is_reference, *_), size in sizes.items() if not is_reference), default=0)
            before = most.get(load, (0, 0))
            most[load] = max(before[0], most_own), max(before[1], *sizes.values(), 0)
        return most

    def keys_of(self, loads: Collection[Load]) -> list[str]:
        return [key for key, load in self.loads.items() if load in loads]


def read_catalogue() -> Catalogue:
    """Three queries, and one if this process has not seen a point before. Index `result_of_workload` answers the first
    one without reading results."""
    valid = Result.objects.filter(invalid=False).order_by()
    of_targets, of_origins = valid.exclude(target=None), valid.exclude(origin=None)
    measured = list(of_targets.values_list("point_key", "target").annotate(Count("id"), Max("id")))
    imported = list(of_origins.values_list("point_key", *_OF_ORIGIN).annotate(Count("id"), Max("id")))
    points = POINTS.get({row[0]: row[-1] for row in (*measured, *imported)})
    loads = {key: load for key, point in points.items() if (load := load_of(point))}
    sources: dict[str, set[Source]] = {}
    for key, source in (*_of_targets(measured, points), *_of_imports(imported)):
        if key in loads:
            sources.setdefault(key, set()).add(source)
    sizes: Counter[str] = Counter()
    for row in measured:
        sizes[row[0]] += min(row[-2], PER_CELL)
    for row in imported:
        sizes[row[0]] += row[-2]
    shares = frozenset(key for key in loads if is_share(points[key]))
    return Catalogue(loads, {key: frozenset(each) for key, each in sources.items()}, sizes, shares)


_OF_ORIGIN = (
    "origin__host", "origin__drive", "origin__serial", "origin__layout", "origin__controller", "origin__tool",
    "reference", "origin__imported__number", "origin__imported__title",
)  # fmt: skip


def _of_imports(rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[str, Source]]:
    for key, host, drive, serial, layout, controller, tool, reference, number, title, *_ in rows:
        yield (
            str(key),
            Source(
                host=str(host), target_name="", model=str(drive), serial=str(serial), layout=str(layout),
                controller=str(controller), tool=str(tool), reference=bool(reference), imported=int(str(number)),
                import_title=str(title),
            ),
        )  # fmt: skip


def _of_targets(
    rows: Iterable[tuple[str, UUID, int, int]], points: Mapping[str, Point]
) -> Iterator[tuple[str, Source]]:
    named = Target.objects.order_by().values_list("pk", "host__slug", "slug", "model", "serial")
    targets = {pk: names for pk, *names in named}
    made: dict[tuple[UUID, str, str], Source] = {}
    for key, pk, *_ in rows:
        host, slug, model, serial = targets[pk]
        point = points[key]
        kind = (pk, str(point.get("layout") or ""), name_of(point))
        if kind not in made:
            made[kind] = Source(
                host=host, target_name=f"{host}/{slug}", model=model, serial=serial, layout=kind[1], controller=None,
                tool=kind[2],
            )  # fmt: skip
        yield key, made[kind]


def observed_controllers() -> list[str]:
    """The controllers of all results that runs measured. One query."""
    known = Configuration.objects.exclude(controller="").order_by("controller")
    return list(known.values_list("controller", flat=True).distinct())
