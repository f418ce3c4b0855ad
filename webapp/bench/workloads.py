"""Workloads: points of results without the factors that define a product; and the panels of metrics that show them."""

import math
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from webapp.analysis.claims import Where, listed
from webapp.analysis.dimensions import joined
from webapp.bench.alike import PLACES
from webapp.bench.specifications import is_specification
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS
from webapp.plans.points import in_order, point_key, varying
from webapp.plans.values import Value
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow
from worker.contract.workload import Pattern

# Workloads: the points of results without the factors that define a product. Only equal workloads are compared.

# Labels of imports that are part of the workload: those that vary among tests with equal factors at one drive.
#
# The fill level of a published table is such a label. Without it, the values of all fill levels would be one mean.
# Labels that describe the product, such as its firmware, are not part of the workload: cells with several of them say
# so.

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(\D*)", re.ASCII)
PREFIX = "label:"  # in points and addresses, because a label may have the name of a factor


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
    found: dict[object, Point] = {}
    for row in rows:
        stated = labels_in(row, names)
        found[row.point_key, *stated.items()] = {**row.point, **stated}
    return list(found.values())


def is_label(name: str) -> bool:
    """Whether this part of a point is a label and not a factor."""
    return name.startswith(PREFIX)


def factor_words(name: str) -> str:
    """The label of a factor; `Fill level` for `label:fill level`."""
    plain = name.removeprefix(PREFIX)
    return FACTORS[name].label if name in FACTORS else plain[:1].upper() + plain[1:]


def level_text(name: str, level: Value) -> str:
    return FACTORS[name].format(level) if name in FACTORS else str(level)


def number_of(level: Value) -> tuple[float, str] | None:
    """The number and the unit of a label: 20 and % of `20 %`. None if it is no number."""
    found = _NUMBER.fullmatch(str(level).strip())
    return (float(found[1]), found[2]) if found else None


def label_order(point: Mapping[str, Value]) -> tuple[object, ...]:
    """Sorts by the numbers of labels, then by their texts."""
    labels = sorted((name, level) for name, level in point.items() if is_label(name))
    return tuple((number_of(level) or (math.inf, ""), str(level)) for _, level in labels)


def drive_of(row: ResultRow) -> tuple[str, ...]:
    """What the labels of an import say about it. `target_name` may be the name of the test."""
    return row.host, row.model, row.serial, row.layout


def _labels(row: ResultRow) -> dict[str, str]:
    return {name: text for name, text in row.facts.items() if not is_specification(name)}


def _varying(stated: Collection[Mapping[str, str]]) -> set[str]:
    names = {name for each in stated for name in each}
    return {name for name in names if len({each.get(name) for each in stated}) > 1}


PATTERN, BLOCK, JOBS, DEPTH = "pattern", "block_size", "numjobs", "iodepth"
MAIN = (BLOCK, DEPTH, JOBS)
_PATTERNS = {
    Pattern.READ: "Sequential read",
    Pattern.WRITE: "Sequential write",
    Pattern.RANDREAD: "Random read",
    Pattern.RANDWRITE: "Random write",
    Pattern.READWRITE: "Sequential mix",
    Pattern.RANDRW: "Random mix",
    Pattern.TRIM: "Sequential trim",
    Pattern.RANDTRIM: "Random trim",
    Pattern.TRIMWRITE: "Sequential trim and write",
    Pattern.RANDTRIMWRITE: "Random trim and write",
}
_FIRST = (Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.READ, Pattern.WRITE, Pattern.RANDRW, Pattern.READWRITE)
_KNOWN = frozenset(Pattern)
_ORDER = (*_FIRST, *(pattern for pattern in Pattern if pattern not in _FIRST))


@dataclass(frozen=True)
class Workload:
    """`key` names it in addresses."""

    key: str
    point: Mapping[str, Value]

    def number(self, factor: str) -> float:
        """A level that is a number; 1 if the point does not state it."""
        level = self.point.get(factor, 1)
        return float(level) if isinstance(level, int | float) else 1.0

    @cached_property
    def place(self) -> frozenset[tuple[str, Value]]:
        """What must be equal besides the factors: the host, the drive …"""
        return frozenset((name, level) for name, level in self.point.items() if name in PLACES)

    @property
    def concurrency(self) -> float:
        """Requests in flight: jobs times queue depth."""
        return self.number(JOBS) * self.number(DEPTH)

    @property
    def chart(self) -> str:
        """The level that selects the group of rows: the pattern, for fio."""
        return str(self.point.get(engine_of(self.point).CHART_BY, ""))

    @cached_property
    def order(self) -> tuple[object, ...]:
        return (self.number(BLOCK), self.concurrency, self.number(JOBS), label_order(self.point), self.key)


@dataclass(frozen=True)
class Stated:
    """The factors that a result states. A run states all of them, an import only some."""

    product: Hashable
    key: str  # of the whole point
    point: Mapping[str, Value] = field(compare=False)
    without: frozenset[str]  # factors that are not part of the workload
    complete: bool

    def workload(self) -> Workload:
        rest = {name: level for name, level in self.point.items() if name not in self.without}
        return Workload(point_key(rest)[:16], rest)


def matched_workloads(stated: Iterable[Stated]) -> dict[Stated, tuple[Workload, ...]]:
    """The workloads of each.

    An incomplete one belongs to the workload of other products that agrees in all factors that it states, unless its
    own product, or another one with an equal result, states that workload more fully. Of several, it belongs to the one
    with one request in flight. If there is none, or still several, it is a workload itself.
    """
    made: dict[tuple[str, frozenset[str]], Workload] = {}  # products share most of them
    given: dict[Stated, Workload] = {}
    for one in stated:
        shared = one.key, one.without
        if shared not in made:
            made[shared] = one.workload()
        given[one] = made[shared]
    stated_by: dict[str, set[Hashable]] = {}
    for one, own in given.items():
        stated_by.setdefault(own.key, set()).add(one.product)
    found: dict[Stated, tuple[Workload, ...]] = {}
    by_main: dict[tuple[Value, Value], dict[str, Workload]] = {}
    ordered = sorted(given.items(), key=lambda pair: (not pair[0].complete, -len(pair[1].point), pair[1].key))
    for one, own in ordered:
        others = by_main.setdefault(_main(own), {})
        fits = () if one.complete else tuple(_fitting(own, others.values(), stated_by))
        if len(fits) > 1:  # a value that may belong to any of them says nothing about each
            fits = _one_request(own, fits)
        found[one] = fits or (own,)
        if not fits:
            others[own.key] = own
    return found


def _fitting(own: Workload, others: Iterable[Workload], stated_by: Mapping[str, set[Hashable]]) -> Iterator[Workload]:
    for other in others:
        if own.key == other.key or (
            own.point.items() <= other.point.items() and stated_by[own.key].isdisjoint(stated_by[other.key])
        ):
            yield other


def _one_request(own: Workload, fits: Iterable[Workload]) -> tuple[Workload, ...]:
    """The workload with queue depth 1 and one job, if these are not stated: most tools without these options issue one
    request at a time."""
    found = tuple(one for one in fits if all(one.number(name) == 1 for name in (DEPTH, JOBS) if name not in own.point))
    return found if len(found) == 1 else ()


def assumed(one: Workload, stated: Mapping[str, Value]) -> Iterator[str]:
    """Queue depth and jobs of the matched workload, as far as the result does not state them."""
    for name in (DEPTH, JOBS):
        if name in one.point and name not in stated:
            yield in_words(one, [name]) or "1 job"


def _main(one: Workload) -> tuple[Value, Value]:
    return one.point.get(PATTERN), one.point.get(BLOCK)


def in_words(one: Workload, names: Iterable[str], *, with_one: Collection[str] = ()) -> str:
    """`4 KiB · QD 32 · 4 jobs`. A count of 1 is left out, unless it is in `with_one`; factors without a text of their
    engine have their label."""
    texts = engine_of(one.point).NAMED_BY
    named = [(name, one.point[name], texts.get(name, "")) for name in names if name in one.point]
    return " · ".join(_part(*each) for each in named if each[0] in with_one or not _is_one(*each[1:]))


def _is_one(level: Value, text: str) -> bool:
    return text.endswith("s") and level == 1


def _part(name: str, level: Value, text: str) -> str:
    words = level_text(name, level)
    text = text.removesuffix("s") if _is_one(level, text) else text
    return text.format(words) if text else f"{factor_words(name)} {words}"


def telling_apart(workloads: Mapping[str, Workload], texts: Mapping[str, str]) -> Where:
    """`4 KiB to 64 KiB` if one factor tells these workloads from the others, else a list."""

    def where(keys: Collection[str], others: Collection[str]) -> str:
        mine, rest = [workloads[key] for key in keys], [workloads[key] for key in others]
        for name in MAIN:
            levels, further = {one.number(name) for one in mine}, {one.number(name) for one in rest}
            if not any(min(levels) <= level <= max(levels) for level in further):
                ends = [next(one for one in mine if one.number(name) == end) for end in (min(levels), max(levels))]
                return " to ".join(dict.fromkeys(in_words(one, [name]) or "1 job" for one in ends))
        return listed([texts[one.key] for one in sorted(mine, key=lambda one: one.order)])

    return where


def naming(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """The factors that tell workloads of one group apart: the main ones first, then all others that vary."""
    points = [one.point for one in workloads]
    others = [name for name in varying(points) if name not in (*MAIN, PATTERN)]
    return (*MAIN, *in_order(others))


def chart_words(chart: str) -> str:
    """`Random read` for `randread`."""
    return _PATTERNS[Pattern(chart)] if chart in _KNOWN else chart or "No pattern stated"


def chart_order(chart: str) -> int:
    return _ORDER.index(Pattern(chart)) if chart in _KNOWN else len(_ORDER)


def is_random(chart: str) -> bool:
    return chart in _KNOWN and Pattern(chart).random


RATE = "rate"  # IOPS of random patterns, bandwidth of the others
P95, P99 = "latency_p95", "latency_p99"
CHOICES = {
    RATE: "IOPS and bandwidth", "latency_mean": "Mean latency", "latency_p50": "Median latency", P95: "p95 latency",
    P99: "p99 latency", "latency_p999": "p99.9 latency", "latency_max": "Maximum latency",
}  # fmt: skip
_IOPS, _BANDWIDTH = METRICS["iops"], METRICS["bytes_per_s"]


@dataclass(frozen=True)
class Panel:
    """`choice` is a key of CHOICES."""

    choice: str
    metric: Metric
    chart: str
    direction: str

    @cached_property
    def key(self) -> str:
        return joined((self.choice, self.metric.key, self.chart, self.direction), "|")

    @property
    def name(self) -> str:
        """`Random read`, `Random mix, reads`, `Random read, bandwidth`."""
        mixed = self.direction in ("read", "write") and self.direction not in self.chart
        parts = (chart_words(self.chart), f"{self.direction}s" if mixed else "", "bandwidth" if self._is_other else "")
        return ", ".join(filter(None, parts))

    @property
    def order(self) -> tuple[int, str, str, bool]:
        return chart_order(self.chart), self.chart, self.direction, self._is_other

    @property
    def _is_other(self) -> bool:
        """Bandwidth of a random pattern, because some products state no IOPS."""
        return self.choice == RATE and is_random(self.chart) and self.metric == _BANDWIDTH


def metric_of(choice: str, chart: str, found: Collection[Sequence[ResultRow]]) -> Metric:
    """The metric of one workload; `found` has the rows of each product. A random pattern has IOPS, unless more products
    state its bandwidth: two metrics are never mixed in a row."""
    if choice != RATE:
        return METRICS[choice]
    if not is_random(chart):
        return _BANDWIDTH
    return max((_IOPS, _BANDWIDTH), key=lambda metric: sum(_has(metric, rows) for rows in found))


def percentile_of(found: Collection[Sequence[ResultRow]]) -> str:
    """The percentile of headline numbers: p99, unless more products state p95."""
    return max((P99, P95), key=lambda choice: sum(_has(METRICS[choice], rows) for rows in found))


def _has(metric: Metric, rows: Sequence[ResultRow]) -> bool:
    return any(metric.of(row) is not None for row in rows)
