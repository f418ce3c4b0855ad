"""Workloads: the points of results without the factors that define a product. Only equal workloads are compared."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from webapp.bench.import_labels import factor_words, label_order, level_text
from webapp.compare.opposites import Where, listed
from webapp.plans.engines import engine_of
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


def in_words(one: Workload, names: Iterable[str]) -> str:
    """`4 KiB · QD 32 · 4 jobs`. A count of 1 is left out; factors without a text of their engine have their label."""
    texts = engine_of(one.point).NAMED_BY
    named = [(name, one.point[name], texts.get(name, "")) for name in names if name in one.point]
    return " · ".join(_part(*each) for each in named if not (each[2].endswith("s") and each[1] == 1))


def _part(name: str, level: Value, text: str) -> str:
    words = level_text(name, level)
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
