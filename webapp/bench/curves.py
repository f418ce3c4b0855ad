"""Curves over queue depth, jobs and block size: workloads that differ in this factor alone."""

from collections.abc import Iterator, Mapping
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

    @property
    def size(self) -> tuple[int, int]:
        """Products with at least two levels, and cells."""
        return sum(len(one) > 1 for one in self.points.values()), sum(map(len, self.points.values()))


def curves(matched: Matched, choice: str) -> tuple[Curve, ...]:
    """For each panel and factor, the curve that most products have."""
    found = (_fullest(matched, panel, factor) for factor in AXES for panel in matched.panels_of(choice))
    return tuple(curve for curve in found if curve and len(curve.levels) >= MIN_LEVELS)


def _fullest(matched: Matched, panel: Panel, factor: str) -> Curve | None:
    known = [_curve(matched, panel, factor, alike) for alike in _alike(matched, panel, factor)]
    usual = sorted(known, key=lambda one: one.words)
    return max(usual, key=lambda one: (one.size, _is_usual(one)), default=None)


def _is_usual(curve: Curve) -> bool:
    """Of curves of equal size, the one of 4 KiB."""
    return curve.factor != BLOCK and FACTORS[BLOCK].format(_USUAL_BLOCK) in curve.words


def _alike(matched: Matched, panel: Panel, factor: str) -> Iterator[list[Workload]]:
    """Workloads with equal points without the factor."""
    groups: dict[frozenset[tuple[str, Value]], list[Workload]] = {}
    for one in matched.in_panel(panel):
        if factor in one.point and known_dimension(factor).numeric:
            rest = frozenset((name, level) for name, level in one.point.items() if name != factor)
            groups.setdefault(rest, []).append(one)
    yield from groups.values()


def _curve(matched: Matched, panel: Panel, factor: str, alike: list[Workload]) -> Curve:
    names = [name for name in naming(matched.in_panel(panel)) if name != factor]
    ordered = sorted(alike, key=lambda one: one.number(factor))
    points: dict[Product, dict[Value, Cell]] = {}
    for one in ordered:
        for product in matched.products:
            if cell := matched.cell(panel, product, one.key):
                points.setdefault(product, {})[one.point[factor]] = cell
    levels = tuple(one.point[factor] for one in ordered)
    return Curve(panel, factor, in_words(alike[0], names), levels, points)
