"""The one reader of results: plain rows with the names of run, plan, host, targets and configuration, or of the import.

Rows are structs, because thousands of model instances take longer to create than to read. Runs, targets, points and
configurations are shared by many results, so each of them is read once, not once for each result.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from django.db.models import BigIntegerField, Func, QuerySet, TextField
from django.db.models.functions import Cast

from webapp.hosts.models import Target
from webapp.hosts.selectors import BESIDE, group_name
from webapp.plans.engines import name_of
from webapp.plans.factors import STREAM
from webapp.plans.points import number_of, on_kind, target_count
from webapp.results.models import Origin, Result
from webapp.results.reading.content import CONTROLLER_FACT, FACTS, POINTS, Facts, Point, facts_key
from webapp.runs.models import FurtherTarget, Run
from worker.contract.workload import TargetKind

MODEL_FACT = "device.model"
LAYOUT_LABEL = "layout"
Place = TypeVar("Place", bound=Hashable)
TEST = "test"  # beside the factors of a point, where an import has several tests with equal factors


class ResultRow(msgspec.Struct, frozen=True, gc=False):
    """One result: one direction of a finished trial, or of a test by another tool (`imported`), whose labels then stand
    in host, target, model and serial. Numbers have the names and units of `models.Result`."""

    id: int
    direction: str  # of a total over directions: read + write
    measured_at: datetime
    kernel_lines: int
    invalid: bool
    ios: int | None
    bytes: int | None
    runtime_ms: int | None
    iops: float | None
    bytes_per_s: float | None
    latency_kind: str
    latency_min_ns: float | None
    latency_mean_ns: float | None
    latency_max_ns: float | None
    latency_stddev_ns: float | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    metrics: Mapping[str, float]  # of the engine's own
    steadiness: str  # contract.steadiness.Verdict, "" without samples
    steadiness_numbers: Mapping[str, float]
    settings_changed: bool  # by something else, during the measurement
    device_share: float | None  # bytes that the devices counted / bytes of the engine
    repeat: int
    engine_version: str
    point_key: str
    configuration: str  # digest, "" if none was observed
    trial_id: str  # "" for an import
    trial: int  # number in its run or import
    why_invalid: str  # "" for a valid result
    run: int  # number, 0 for an import
    plan: str  # slug
    plan_title: str
    label: str  # of the host in its group, "" for a run without a group
    host: str
    target: str  # several at once: first + second; likewise model and serial
    target_name: str  # host/target; of an import with the serial, because drives of one model are several targets
    model: str  # of the drive, "" if unknown
    serial: str
    point: Point
    facts: Facts  # of the configuration, or of the stream in it; without device names; of an import, its labels
    tool: str  # that measured: an engine, or the tool whose output was imported
    run_state: str = ""  # "" for an import
    part: str = ""  # of the plan, its name
    imported: int = 0  # number of the import
    import_title: str = ""
    reference: bool = False  # a published table
    test: str = ""  # its name in the tool whose output was imported
    time_known: bool = True  # else `measured_at` is the time of the import
    summed_ids: tuple[int, ...] = ()  # of a total over directions: the ids of the other results

    @property
    def stated_at(self) -> datetime | None:
        """When it was measured; the first day of a published table; None if the files of an import do not state it."""
        return self.measured_at if self.time_known or self.reference else None

    @property
    def ids(self) -> tuple[int, ...]:
        return (self.id, *self.summed_ids)

    @property
    def stream(self) -> str:
        """The name of the stream that it is of, "" for a result of all streams of its trial."""
        return str(self.point.get(STREAM, ""))

    @property
    def stream_direction(self) -> str:
        return stream_direction(self.point, self.direction)

    @property
    def source(self) -> int:
        """The number of the run, or of the import with a minus sign."""
        return self.run or -self.imported

    @property
    def source_name(self) -> str:
        """The number of the run, or "import 3"."""
        return f"import {self.imported}" if self.imported else str(self.run)

    @property
    def tool_and_version(self) -> str:
        return name_with_version(self.tool, self.engine_version)

    @property
    def controller(self) -> str:
        """Its model, "" if unknown."""
        return self.facts.get(CONTROLLER_FACT, "")

    @property
    def layout(self) -> str:
        """As the plan says it, or the label of an import; "" for neither."""
        return str(self.point.get("layout") or "") or self.facts.get(LAYOUT_LABEL, "")

    @property
    def target_kind(self) -> str:
        """Of what the stream used, "" if unknown."""
        return "" if self.imported else self.facts.get("target.kind", "")

    @property
    def shown_point(self) -> Point:
        """As pages state it: without factors that affect only directories, if it is known to be another kind."""
        return on_kind(self.point, TargetKind(self.target_kind)) if self.target_kind else self.point

    @property
    def drive_state(self) -> str:
        """What the drive held before the stream started, as far as the worker knew; "" if unknown."""
        return self.facts.get("drive_state", "")


def name_with_version(tool: str, version: str) -> str:
    """`fio 3.33`: fio reports its version as fio-3.33."""
    return f"{tool} {version.removeprefix(f'{tool}-')}".strip()


def stream_direction(point: Point, direction: str) -> str:
    """The stream and the direction: `writer: write`, or `write`."""
    return f"{point[STREAM]}: {direction}" if STREAM in point else direction


_OWN = ResultRow.__struct_fields__[: ResultRow.__struct_fields__.index("repeat")]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = "(extract(epoch FROM %(expressions)s) * 1000000)::bigint"
# Times and JSON as numbers and texts: Django takes four times as long to make values of them as `_converted`.
_CONVERTED: Mapping[str, Func] = {
    "measured_at": Func("measured_at", template=_MICROSECONDS, output_field=BigIntegerField()),
    "metrics": Cast("metrics", TextField()),
    "steadiness_numbers": Cast("steadiness_numbers", TextField()),
}
_MEASURED_AT, _METRICS, _STEADINESS_NUMBERS = map(_OWN.index, _CONVERTED)
_COLUMNS: tuple[str | Func, ...] = (
    *(_CONVERTED.get(name, name) for name in _OWN),
    "point_key", "origin_id", "repeat", "stream_run__engine_version", "stream_run__configuration_id",
    "stream_run__stream",
    # A text is a faster dictionary key than a UUID.
    Cast("trial_id", TextField()), "trial__index", "trial__invalid_reason", "trial__part",
    Cast("run_id", TextField()), Cast("target_id", TextField()),
)  # fmt: skip
_POINT_KEY, _ORIGIN, _DIGEST, _STREAM, _RUN, _TARGET = -12, -11, -8, -7, -2, -1
_INVALID = _OWN.index("invalid")

TargetNames = tuple[str, str, str]  # slug, model and serial


@dataclass(frozen=True, slots=True)
class _Shared:
    """What results share, by its key in the database."""

    points: Mapping[str, Point]
    facts: Mapping[str, Facts]
    runs: Mapping[str, tuple[Any, ...]]
    targets: Mapping[str, tuple[Any, ...]]
    further: Mapping[int, list[TargetNames]]
    origins: Mapping[int, Origin]


def read_rows(results: QuerySet[Result], *, with_facts: bool = True) -> list[ResultRow]:
    """Rows in the order of the query. Three queries, plus one each for new points, new configurations, results of
    several targets at once, and imports. Without facts, `facts`, `controller` and `drive_state` of rows that a run
    measured are empty."""
    values = list(results.values_list(*_COLUMNS))
    points = POINTS.get({row[_POINT_KEY]: row[0] for row in values})
    runs = Run.objects.filter(pk__in={row[_RUN] for row in values if row[_RUN]})
    targets = Target.objects.filter(pk__in={row[_TARGET] for row in values if row[_TARGET]})
    several = {key for key, point in points.items() if target_count(point) > 1}
    shared = _Shared(
        points,
        FACTS.get({key: key for row in values if (key := _facts_key(row, points))}) if with_facts else {},
        _by_key(runs, "number", "version__plan__slug", "version__plan__title", "label", "invalid_reason", "state"),
        _by_key(targets, "host__slug", "slug", "model", "serial"),
        further_targets([row[0] for row in values if row[_POINT_KEY] in several]),
        _origins({row[_ORIGIN] for row in values if row[_ORIGIN]}),
    )
    return [_of_import(row, shared) if row[_ORIGIN] else _of_run(row, shared) for row in values]


def _of_run(row: tuple[Any, ...], shared: _Shared) -> ResultRow:
    point_key, _, repeat, version, digest, _, trial_id, index, trial_reason, part, run_id, target_id = row[_POINT_KEY:]
    *run, run_reason, state = shared.runs[run_id]
    host, *first = shared.targets[target_id]
    further = shared.further.get(row[0])
    target, model, serial = joined_names([(first[0], first[1], first[2]), *further]) if further else first
    why = (trial_reason or run_reason or "marked as invalid") if row[_INVALID] else ""
    point, facts = shared.points[point_key], shared.facts.get(_facts_key(row, shared.points), {})
    values: tuple[Any, ...] = (
        *_converted(row), repeat, version, point_key, digest or "", trial_id, number_of(index), why, *run, host,
        target, f"{host}/{target}", model, serial, point, facts, name_of(point), state, part,
    )  # fmt: skip
    return ResultRow(*values)


def _facts_key(row: tuple[Any, ...], points: Mapping[str, Point]) -> str:
    """A named stream may have a target and a layout of its own."""
    return facts_key(row[_DIGEST] or "", row[_STREAM]) if STREAM in points[row[_POINT_KEY]] else row[_DIGEST] or ""


def _of_import(row: tuple[Any, ...], shared: _Shared) -> ResultRow:
    point_key, origin = row[_POINT_KEY], shared.origins[row[_ORIGIN]]
    imported = origin.imported
    what = origin.drive or origin.layout or origin.name or imported.title
    target_name = f"{origin.host or str(imported)}/{' '.join(filter(None, (what, origin.serial)))}"
    facts = origin.other | {CONTROLLER_FACT: origin.controller, LAYOUT_LABEL: origin.layout, MODEL_FACT: origin.drive}
    values: tuple[Any, ...] = (
        *_converted(row), origin.repeat, origin.tool_version, point_key, "", "", origin.number,
        "marked as invalid" if row[_INVALID] else "", 0, "", "", "", origin.host,
        what, target_name, origin.drive, origin.serial, shared.points[point_key],
        {name: text for name, text in facts.items() if text}, origin.tool, "", "",
        imported.number, imported.title, imported.slug is not None, origin.name,
        origin.time_known,
    )  # fmt: skip
    return ResultRow(*values)


def _converted(row: tuple[Any, ...]) -> list[Any]:
    """The values of `_OWN`."""
    values = list(row[:_POINT_KEY])
    values[_MEASURED_AT] = _EPOCH + timedelta(microseconds=values[_MEASURED_AT])
    values[_METRICS] = _numbers(values[_METRICS])
    values[_STEADINESS_NUMBERS] = _numbers(values[_STEADINESS_NUMBERS])
    return values


@lru_cache(maxsize=256)  # many results have none
def _numbers(text: str) -> Mapping[str, float]:
    numbers: Mapping[str, float] = msgspec.json.decode(text)
    return numbers


def _origins(ids: Collection[int]) -> dict[int, Origin]:
    if not ids:
        return {}
    origins = Origin.objects.filter(pk__in=ids).select_related("imported").defer("series")
    return {origin.pk: origin for origin in origins}


def _by_key(rows: QuerySet[Any], *columns: str) -> dict[str, tuple[Any, ...]]:
    return {str(key): tuple(values) for key, *values in rows.order_by().values_list("pk", *columns)}


def further_targets(result_ids: Collection[int]) -> dict[int, list[TargetNames]]:
    """The targets after the first one, by result id, in the order of streams. One query, or none without results."""
    names_by_result: dict[int, list[TargetNames]] = {}
    if result_ids:
        further = FurtherTarget.objects.filter(trial__results__in=result_ids).order_by("stream")
        columns = ("trial__host__slug", "target__host__slug", "target__slug", "target__model", "target__serial")
        for id_, first, host, slug, model, serial in further.values_list("trial__results__id", *columns):
            names_by_result.setdefault(id_, []).append((slug if host == first else f"{host}/{slug}", model, serial))
    return names_by_result


def joined_names(targets: Iterable[TargetNames]) -> TargetNames:
    """The names of several targets as one; a model or serial that several targets share is listed once."""
    slugs, models, serials = zip(*targets, strict=True)
    return group_name(slugs[0], slugs[1:]), _each_once(models), _each_once(serials)


def _each_once(names: Iterable[str]) -> str:
    return BESIDE.join(dict.fromkeys(name for name in names if name))


def places_of_several_tests(rows: Iterable[ResultRow], place_of: Callable[[ResultRow], Place]) -> frozenset[Place]:
    """The places in which one import has several tests of a tool, such as Read and Re-read of iozone."""
    names: dict[tuple[Place, int], set[str]] = {}
    for row in rows:
        if row.imported:
            names.setdefault((place_of(row), row.imported), set()).add(row.test)
    return frozenset(place for (place, _), tests in names.items() if len(tests) > 1)


def parts_are_alike(rows: Iterable[ResultRow]) -> bool:
    """Whether a run has several parts of its plan with equal points on one target: each is then a place of its own.
    Parts of different runs may have different names and are compared."""
    places = {(row.source, row.target_name, row.point_key, row.part) for row in rows}
    return len({place[:3] for place in places}) < len(places)


def has_several_targets(rows: Iterable[ResultRow]) -> bool:
    """Whether several targets have results at one point."""
    targets: dict[str, str] = {}
    return any(targets.setdefault(row.point_key, row.target_name) != row.target_name for row in rows)


def read_histograms(result_ids: Iterable[int]) -> dict[int, bytes]:
    """Packed latency histograms by result id (`contract.packing`)."""
    histograms = Result.objects.filter(id__in=result_ids).order_by().values_list("id", "latency")
    return {id_: bytes(packed) for id_, packed in histograms}
