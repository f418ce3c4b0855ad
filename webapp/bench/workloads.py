"""Workloads: points of results without the factors that define a product; and the panels of metrics that show them."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from webapp.analysis.claims import Where, listed
from webapp.analysis.dimensions import joined
from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN, PREFIX, FullPoint, is_label
from webapp.bench.alike import PLACES
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS
from webapp.plans.points import in_order, varying
from webapp.plans.values import Value
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.rows import ResultRow
from worker.contract.workload import Pattern

# Workloads: the points of results without the factors that define a product. Only equal workloads are compared.

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(\D*)", re.ASCII)


def factor_words(name: str) -> str:
    """The label of a factor; the label of an import as a person typed it."""
    if is_label(name):
        return name.removeprefix(PREFIX)
    return FACTORS[name].label if name in FACTORS else name[:1].upper() + name[1:]


def level_text(name: str, level: Value) -> str:
    return FACTORS[name].format(level) if name in FACTORS else str(level)


def number_of(level: Value) -> tuple[float, str] | None:
    """The number and the unit of a label: 20 and % of `20 %`. None if it is no number."""
    match = _NUMBER.fullmatch(str(level).strip())
    return (float(match[1]), match[2]) if match else None


def label_order(point: Mapping[str, Value]) -> tuple[object, ...]:
    """Sorts by the numbers of labels, then by their texts."""
    labels = sorted((name, level) for name, level in point.items() if is_label(name))
    return tuple((number_of(level) or (math.inf, ""), str(level)) for _, level in labels)


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
class Workload(FullPoint):
    """`key` names it in addresses."""

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
        """By the levels of all factors and places, so that it is the same on each page."""
        levels = tuple(
            (name, float(level) if isinstance(level, int | float) else math.inf, str(level))
            for name, level in sorted(self.point.items())
        )
        return (self.number(BLOCK), self.concurrency, self.number(JOBS), label_order(self.point), levels)


def assumed(workload: Workload, stated: Mapping[str, Value]) -> Iterator[str]:
    """Queue depth and jobs of the matched workload, as far as the result does not state them."""
    for name in (DEPTH, JOBS):
        if name in workload.point and name not in stated:
            yield in_words(workload, [name]) or "1 job"


def in_words(workload: Workload, names: Iterable[str], *, with_one: Collection[str] = ()) -> str:
    """`4 KiB · QD 32 · 4 jobs`. A count of 1 is left out, unless it is in `with_one`; factors without a text of their
    engine have their label."""
    texts = engine_of(workload.point).NAMED_BY
    named = [(name, workload.point[name], texts.get(name, "")) for name in names if name in workload.point]
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
            levels, further = {workload.number(name) for workload in mine}, {workload.number(name) for workload in rest}
            if not any(min(levels) <= level <= max(levels) for level in further):
                ends = [
                    next(workload for workload in mine if workload.number(name) == end)
                    for end in (min(levels), max(levels))
                ]
                return " to ".join(dict.fromkeys(in_words(workload, [name]) or "1 job" for workload in ends))
        return listed([texts[workload.key] for workload in sorted(mine, key=lambda workload: workload.order)])

    return where


def naming(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """The factors that tell workloads of one group apart: the main ones first, then all others that vary."""
    points = [workload.point for workload in workloads]
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


def metric_of(choice: str, chart: str, rows_of_products: Collection[Sequence[ResultRow]]) -> Metric:
    """The metric of one workload; `rows_of_products` has the rows of each product. A random pattern has IOPS, unless
    more products state its bandwidth: two metrics are never mixed in a row."""
    if choice != RATE:
        return METRICS[choice]
    if not is_random(chart):
        return _BANDWIDTH
    return max((_IOPS, _BANDWIDTH), key=lambda metric: sum(_has(metric, rows) for rows in rows_of_products))


def percentile_of(rows_of_products: Collection[Sequence[ResultRow]]) -> str:
    """The percentile of headline numbers: p99, unless more products state p95."""
    return max((P99, P95), key=lambda choice: sum(_has(METRICS[choice], rows) for rows in rows_of_products))


def _has(metric: Metric, rows: Sequence[ResultRow]) -> bool:
    return any(metric.of(row) is not None for row in rows)
