"""Workloads: the points of results without the factors that define a product. Only equal workloads are compared."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS
from webapp.plans.points import point_key
from webapp.plans.values import Value
from webapp.plans.varying import in_order, varying
from worker.contract.workload import Pattern

PATTERN, BLOCK, JOBS, DEPTH = "pattern", "block_size", "numjobs", "iodepth"
MAIN = (BLOCK, DEPTH, JOBS)
_PATTERNS = {
    Pattern.READ: "Sequential read",
    Pattern.WRITE: "Sequential write",
    Pattern.RANDREAD: "Random read",
    Pattern.RANDWRITE: "Random write",
    Pattern.READWRITE: "Sequential mix",
    Pattern.RANDRW: "Random mix",
}
_ORDER = (Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.READ, Pattern.WRITE, Pattern.RANDRW, Pattern.READWRITE)


@dataclass(frozen=True)
class Workload:
    """`key` names it in addresses."""

    key: str
    point: Mapping[str, Value]

    def number(self, factor: str) -> float:
        """A level that is a number; 1 if the point does not state it."""
        level = self.point.get(factor, 1)
        return float(level) if isinstance(level, int | float) else 1.0

    @property
    def concurrency(self) -> float:
        """Requests in flight: jobs times queue depth."""
        return self.number(JOBS) * self.number(DEPTH)

    @property
    def chart(self) -> str:
        """Workloads with different levels of this are in different groups: the pattern, for fio."""
        return str(self.point.get(engine_of(self.point).CHART_BY, ""))

    @cached_property
    def order(self) -> tuple[object, ...]:
        return (self.number(BLOCK), self.concurrency, self.number(JOBS), self.key)


def workload(point: Mapping[str, Value], without: Collection[str]) -> Workload:
    rest = {name: level for name, level in point.items() if name not in without}
    return Workload(point_key(rest)[:16], rest)


def in_words(one: Workload, names: Iterable[str]) -> str:
    """`4 KiB · QD 32 · 4 jobs`. A count of 1 is left out; factors without a text of their engine have their label."""
    texts = engine_of(one.point).NAMED_BY
    named = [(name, one.point[name], texts.get(name, "")) for name in names if name in one.point]
    return " · ".join(_part(*each) for each in named if not (each[2].endswith("s") and each[1] == 1))


def _part(name: str, level: Value, text: str) -> str:
    factor = FACTORS.get(name)
    words = factor.format(level) if factor else str(level)
    return text.format(words) if text else f"{factor.label if factor else name} {words}"


def naming(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """The factors that tell workloads of one group apart: the main ones first, then all others that vary."""
    points = [one.point for one in workloads]
    others = [name for name in varying(points) if name not in (*MAIN, PATTERN)]
    return (*MAIN, *in_order(others))


def chart_words(chart: str) -> str:
    """`Random read` for `randread`."""
    return _PATTERNS[Pattern(chart)] if chart in set(Pattern) else chart or "No pattern stated"


def chart_order(chart: str) -> int:
    return _ORDER.index(Pattern(chart)) if chart in set(Pattern) else len(_ORDER)


def is_random(chart: str) -> bool:
    return chart in set(Pattern) and Pattern(chart).random
