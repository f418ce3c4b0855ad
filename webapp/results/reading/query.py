"""Queries on results: filter, order, page and count.

A page starts after (or ends before) a row that is named `value~id`, the value of the sort column and the id. So page
1,000 is as fast as page 1. Results without a value in the sort column, such as a p99.9 of too few I/Os, cannot be
ordered and are left out; `ResultQuery.count_without_value` counts them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from webapp.core.errors import Refusal, read_moment, read_number
from webapp.hosts.models import Target
from webapp.hosts.selectors import NO_LABEL, group_name, hosts_called, parted
from webapp.plans.engines import ENGINE
from webapp.plans.factors import STREAM
from webapp.plans.points import target_count
from webapp.results.metrics import METRICS
from webapp.results.models import Origin, Result
from webapp.results.reading.content import POINTS, Point
from webapp.results.reading.filter import NOT_SET, UNKNOWN, Absence, Level, ResultFilter
from webapp.results.reading.rows import ResultRow, further_targets, read_rows
from webapp.runs.models import FurtherTarget, Run
from worker.recipes import DEFAULT_ENGINE

MAX_VALUE = 1e18  # of a column to sort by: more than any rate or latency, and within bigint
MAX_IDS = 1_000  # in a condition
MAX_COUNTED = 1_000  # counting more would cost more than the page itself
# key in an address -> column; each has an index (column, id)
SORTS: Mapping[str, str] = {"when": "measured_at"} | {
    key: METRICS[key].column
    for key in ("iops", "bytes_per_s", "latency_mean", "latency_p50", "latency_p95", "latency_p99", "latency_p999",
                "latency_max")
}  # fmt: skip
MAY_BE_MISSING = frozenset(SORTS.values()) - {"measured_at"}  # tools whose output was imported state only some


@dataclass(frozen=True)
class Sort:
    """`-iops`: largest first."""

    key: str = "when"
    descending: bool = True

    @property
    def column(self) -> str:
        return SORTS[self.key]

    def __str__(self) -> str:
        return f"{'-' if self.descending else ''}{self.key}"


@dataclass(frozen=True)
class Page:
    """`newer` and `older` name the first and the last row for the next request; "" at an end."""

    rows: list[ResultRow]
    newer: str
    older: str


@dataclass(frozen=True)
class ResultQuery:
    """A filter whose names have been looked up in the database, once for all queries of a page."""

    names: Q  # hosts, targets, runs, imports, directions, repeats, configurations
    factors: Q
    with_invalid: bool

    @classmethod
    def of(cls, wanted: ResultFilter) -> "ResultQuery":
        """At most six queries. PostgreSQL plans conditions on ids well, and finds the newest rows of one host or
        target by index."""
        return cls(_names(wanted), _factors(wanted.factors), wanted.invalid)

    def without_factors(self) -> "ResultQuery":
        return replace(self, factors=Q())

    @property
    def results(self) -> QuerySet[Result]:
        """Newest first; valid results only, unless the filter includes invalid ones."""
        results = Result.objects.filter(self.names & self.factors)
        return results if self.with_invalid else results.filter(invalid=False)

    def page(self, sort: Sort, *, limit: int, after: str = "", before: str = "") -> Page:
        """Raises Refusal if `after` or `before` cannot be read."""
        backwards = bool(before) and not after
        results = _sorted(self.results, sort, backwards=backwards)
        start = before if backwards else after
        if start:
            results = results.filter(_beyond(sort, *_read_row(sort, start), backwards=backwards))
        rows_and_next = read_rows(results[: limit + 1])
        more, rows = len(rows_and_next) > limit, rows_and_next[:limit]
        if backwards:
            rows.reverse()
        newer = bool(rows) and (more if backwards else bool(start))
        older = bool(rows) and (True if backwards else more)
        return Page(rows, _row_name(sort, rows[0]) if newer else "", _row_name(sort, rows[-1]) if older else "")

    def count(self, limit: int = MAX_COUNTED) -> int:
        """`limit` + 1 if there are more."""
        return self.results.order_by().values("pk")[: limit + 1].count()

    def count_without_value(self, sort: Sort, limit: int = MAX_COUNTED) -> int:
        """Results that the sort leaves out; `limit` + 1 if there are more."""
        if sort.column not in MAY_BE_MISSING:
            return 0
        missing = self.results.filter(**{f"{sort.column}__isnull": True})
        return missing.order_by().values("pk")[: limit + 1].count()

    def count_invalid_left_out(self) -> int:
        if self.with_invalid:
            return 0
        return Result.objects.filter(self.names & self.factors, invalid=True).count()


def read_sort(text: str) -> Sort:
    """Raises Refusal with the list of sort keys."""
    key = text.removeprefix("-")
    if not text:
        return Sort()
    if key not in SORTS:
        raise Refusal("sort_unknown", f"sort={text} is unknown. Use {', '.join(SORTS)}; add - for largest first.")
    return Sort(key, text.startswith("-"))


def _sorted(results: QuerySet[Result], sort: Sort, *, backwards: bool) -> QuerySet[Result]:
    sign = "-" if sort.descending is not backwards else ""
    if sort.column in MAY_BE_MISSING:
        results = results.filter(**{f"{sort.column}__isnull": False})
    return results.order_by(f"{sign}{sort.column}", f"{sign}id")


def _beyond(sort: Sort, value: object, id_: int, *, backwards: bool) -> Q:
    """Rows after (value, id) in the order. The index can answer the first condition alone."""
    way = "lt" if sort.descending is not backwards else "gt"
    column = sort.column
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | Q(**{f"id__{way}": id_}))


def _row_name(sort: Sort, row: ResultRow) -> str:
    value = getattr(row, sort.column)
    return f"{value.isoformat() if isinstance(value, datetime) else repr(value)}~{row.id}"


def _read_row(sort: Sort, text: str) -> tuple[object, int]:
    value, _, id_ = text.rpartition("~")
    try:
        return _sort_value(sort, value), read_number("id", id_)
    except (Refusal, ValueError) as error:
        raise Refusal("page_unknown", f"{text} is not a row of this table. Go back to the first page.") from error


def _sort_value(sort: Sort, text: str) -> object:
    """Raises Refusal or ValueError."""
    if sort.key == "when":
        return read_moment("when", text)
    value = float(text)
    if not 0 <= value <= MAX_VALUE:
        raise ValueError("not a value of a result")
    return value


def _names(wanted: ResultFilter) -> Q:
    plain = {"direction__in": wanted.directions, "steadiness__in": wanted.steadiness}
    condition = Q(**{lookup: values for lookup, values in plain.items() if values})
    if not wanted.references and not wanted.imports:
        condition &= Q(reference=False)
    of_runs, of_imports = _of_runs(wanted), _of_imports(wanted)
    return condition & (of_runs | of_imports) if of_runs or of_imports else condition


def _of_runs(wanted: ResultFilter) -> Q:
    """The condition for results of runs; empty if nothing is asked."""
    if wanted.facts or (wanted.imports and not wanted.runs):
        return Q(pk__in=[])
    keys = {lookup: tuple(rows.values_list("pk", flat=True)) for lookup, rows in _named(wanted).items()}
    plain = {"repeat__in": wanted.repeats, "trial__part__in": wanted.parts}
    condition = Q(**{lookup: values for lookup, values in plain.items() if values})
    for lookup, ids in keys.items():
        condition &= Q(**{lookup: ids}) | _of_trials_beside(lookup, ids, wanted)
    if wanted.configurations:
        condition &= _any(Q(stream_run__configuration__digest__startswith=digest) for digest in wanted.configurations)
    if wanted.controllers:
        condition &= Q(stream_run__configuration__controller__in=wanted.controllers)
    if wanted.layouts:
        condition &= Q(origin=None) & _any(_at("layout", layout) for layout in wanted.layouts)
    if wanted.tools:
        without = ~Q(point__has_key=ENGINE) if DEFAULT_ENGINE in wanted.tools else Q(pk__in=[])
        condition &= Q(origin=None) & (_any(_at(ENGINE, tool) for tool in wanted.tools) | without)
    if wanted.tool_versions:
        condition &= Q(origin=None) & _any(_of_engine_version(text) for text in wanted.tool_versions)
    return condition


def _of_imports(wanted: ResultFilter) -> Q:
    """The condition for imported results; empty if nothing is asked."""
    of_own = wanted.plans or wanted.parts or wanted.labels or wanted.targets or wanted.configurations
    if of_own or (wanted.runs and not wanted.imports):
        return Q(pk__in=[])
    named = {
        "imported__number__in": wanted.imports, "host__in": wanted.hosts, "drive__in": wanted.models,
        "serial__in": wanted.serials, "controller__in": wanted.controllers, "layout__in": wanted.layouts,
        "tool__in": wanted.tools, "repeat__in": wanted.repeats,
    }  # fmt: skip
    chosen = {lookup: values for lookup, values in named.items() if values}
    versions = [way for text in wanted.tool_versions for way in _ways_to_split(text)]
    condition = _any(Q(tool=tool, tool_version__in=written) for tool, written in versions) if versions else Q()
    for name, texts in wanted.facts.items():
        condition &= _any(_labelled(name, text) for text in texts)
    return of_origins(Origin.objects.filter(condition, **chosen)) if chosen or condition else Q()


def _labelled(name: str, text: str) -> Q:
    return ~Q(other__has_key=name) if text == UNKNOWN else Q(other__contains={name: text})


def of_origins(origins: QuerySet[Origin]) -> Q:
    """The condition for results of these origins. PostgreSQL finds a few ids by index; if it does not know how few a
    subquery finds, it reads all results. One query."""
    ids = list(origins.order_by().values_list("pk", flat=True)[: MAX_IDS + 1])
    return Q(origin__in=origins if len(ids) > MAX_IDS else ids)


def _of_engine_version(text: str) -> Q:
    """The condition for results of runs with this tool and version."""
    conditions = []
    for tool, versions in _ways_to_split(text):
        of_tool = ~Q(point__has_key=ENGINE) if tool == DEFAULT_ENGINE else _at(ENGINE, tool)
        conditions.append(Q(stream_run__engine_version__in=versions) & of_tool)
    return _any(conditions)


def _ways_to_split(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each tool that the text can begin with, and its version in both forms: `3.33`, and fio's `fio-3.33`."""
    words = text.split(" ")
    for count in range(1, len(words) + 1):
        tool, version = " ".join(words[:count]), " ".join(words[count:])
        yield tool, (version, f"{tool}-{version}")


def _named(wanted: ResultFilter) -> dict[str, QuerySet[Any]]:
    """Lookup of results -> the named hosts, targets and runs."""
    named_rows: dict[str, QuerySet[Any]] = {}
    if wanted.hosts:
        named_rows["host__in"] = hosts_called(wanted.hosts)
    if wanted.targets or wanted.models or wanted.serials:
        named_rows["target__in"] = _targets(wanted)
    if wanted.runs or wanted.plans or wanted.labels:
        labels = ["" if label == NO_LABEL else label for label in wanted.labels]
        named = {"number__in": wanted.runs, "version__plan__slug__in": wanted.plans, "label__in": labels}
        named_rows["run__in"] = Run.objects.filter(
            **{key: values for key, values in named.items() if values}
        ).order_by()
    return named_rows


def _of_trials_beside(lookup: str, ids: Collection[object], wanted: ResultFilter) -> Q:
    """The condition for results of trials that use these hosts or targets after their first target; empty without such
    trials. A named stream has a result of its own target. One query for hosts, one for targets."""
    further = {"host__in": "target__host__in", "target__in": "target__in"}.get(lookup)
    group = any(len(slugs) > 1 for _, slugs in map(parted, wanted.targets))
    if further is None or not ids or (lookup == "target__in" and group):
        return Q()
    trials = FurtherTarget.objects.filter(**{further: ids}).order_by().values_list("trial", flat=True).distinct()
    trial_ids = list(trials[: MAX_IDS + 1])
    return (
        Q(trial__in=trials if len(trial_ids) > MAX_IDS else trial_ids) & ~Q(point__has_key=STREAM) if trial_ids else Q()
    )


def _targets(wanted: ResultFilter) -> QuerySet[Target]:
    named = {"model__in": wanted.models, "serial__in": wanted.serials}
    targets = Target.objects.filter(**{lookup: values for lookup, values in named.items() if values}).order_by()
    names = map(parted, wanted.targets)  # a result of several targets at once belongs to the first of them
    called = [Q(host__in=hosts_called([host]), slug=slugs[0]) for host, slugs in names]
    return targets.filter(_any(called)) if called else targets


def _factors(factors: Mapping[str, tuple[Level, ...]]) -> Q:
    # one index lookup for all factors with a single level
    single = {name: levels[0] for name, levels in factors.items() if len(levels) == 1 and levels[0] is not NOT_SET}
    condition = Q(point__contains=single) if single else Q()
    for name, levels in factors.items():
        if name not in single:
            condition &= _any(_at(name, level) for level in levels)
    return condition


def _at(name: str, level: Level) -> Q:
    """The GIN index on points answers `@>`; it cannot find points without a factor."""
    return ~Q(point__has_key=name) if isinstance(level, Absence) else Q(point__contains={name: level})


def _any(conditions: Iterable[Q]) -> Q:
    either = Q(pk__in=[])
    for condition in conditions:
        either |= condition
    return either


# Points at which results were measured: the choices that a filter or a comparison offers.

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
