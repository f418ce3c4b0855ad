"""Curves over queue depth, jobs and block size: workloads that differ in this factor alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.matching import Matched, Panel
from webapp.bench.products import Product
from webapp.bench.workloads import BLOCK, DEPTH, JOBS, Workload, in_words, naming
from webapp.compare.comparison import Cell
from webapp.compare.dimensions import known_dimension, label_of
from webapp.plans.factors import FACTORS
from webapp.plans.values import Value
from worker.contract.workload import KIB

AXES = (DEPTH, BLOCK, JOBS)
MIN_LEVELS = 3  # two points are in the bars already
_USUAL_BLOCK = 4 * KIB


@dataclass(frozen=True)
class Curve:
    """One chart. `points` has the cells of each product by level."""

    panel: Panel
    factor: str
    words: str  # what all its workloads have in common
    levels: tuple[Value, ...]
    points: Mapping[Product, Mapping[Value, Cell]]

    @property
    def label(self) -> str:
        return label_of(self.factor)

    @property
    def texts(self) -> list[str]:
        return [FACTORS[self.factor].format(level) for level in self.levels]


def curves(matched: Matched, choice: str) -> tuple[Curve, ...]:
    """For each panel and factor, the curve that most products have."""
    panels = [(panel, naming(matched.in_panel(panel))) for panel in matched.panels_of(choice)]
    found = (_fullest(matched, panel, factor, names) for factor in AXES for panel, names in panels)
    return tuple(curve for curve in found if curve and len(curve.levels) >= MIN_LEVELS)


def _fullest(matched: Matched, panel: Panel, factor: str, names: Sequence[str]) -> Curve | None:
    """The curve with the most cells; if several have as many, that of 4 KiB, then the one of the lowest concurrency:
    curves of high concurrency are often flat."""
    if len({one.point.get(factor) for one in matched.in_panel(panel)}) < MIN_LEVELS:
        return None
    groups = _alike(matched, panel, factor)
    fullest = max(
        groups,
        key=lambda alike: (_size(matched, panel, alike), alike[0].point.get(BLOCK) == _USUAL_BLOCK),
        default=None,
    )
    rest = [name for name in names if name != factor]
    return _curve(matched, panel, factor, in_words(fullest[0], rest), fullest) if fullest else None


def _size(matched: Matched, panel: Panel, alike: Sequence[Workload]) -> tuple[int, int]:
    """The number of products with at least two levels, and the number of cells."""
    counts = Counter(product for one in alike for product in matched.measured_by(panel, one.key))
    return sum(count > 1 for count in counts.values()), counts.total()


def _alike(matched: Matched, panel: Panel, factor: str) -> Iterable[list[Workload]]:
    """Groups of workloads that differ in this factor only, in the order of block size and concurrency."""
    groups: dict[frozenset[tuple[str, Value]], list[Workload]] = {}
    if known_dimension(factor).numeric:
        for one in matched.in_panel(panel):
            if factor in one.point:
                rest = frozenset(one.point.items()) - {(factor, one.point[factor])}
                groups.setdefault(rest, []).append(one)
    return groups.values()


def _curve(matched: Matched, panel: Panel, factor: str, words: str, alike: Sequence[Workload]) -> Curve:
    ordered = sorted(alike, key=lambda one: one.number(factor))
    points: dict[Product, dict[Value, Cell]] = {}
    for one in ordered:
        for product in matched.products:
            if cell := matched.cell(panel, product, one.key):
                points.setdefault(product, {})[one.point[factor]] = cell
    return Curve(panel, factor, words, tuple(one.point[factor] for one in ordered), points)
