"""Curves over queue depth, jobs, block size, and labels of imports that are numbers with a unit, such as a fill level:
workloads that differ in this factor alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.import_labels import factor_words, is_label, level_text, number_of
from webapp.bench.matching import Matched
from webapp.bench.panels import Panel
from webapp.bench.products import Product
from webapp.bench.workloads import BLOCK, DEPTH, JOBS, Workload, in_words, naming
from webapp.compare.comparison import Cell
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
        return factor_words(self.factor)

    @property
    def texts(self) -> list[str]:
        return [level_text(self.factor, level) for level in self.levels]

    @property
    def numbers(self) -> list[float | None]:
        """Places on an axis of numbers. Labels have none: an axis may be logarithmic, and shares are not."""
        if is_label(self.factor):
            return [None] * len(self.levels)
        return [number[0] if (number := _number(self.factor, level)) else None for level in self.levels]


def curves(matched: Matched, choice: str) -> tuple[Curve, ...]:
    """For each panel and factor, the curve that most products have."""
    panels = [(panel, naming(matched.in_panel(panel))) for panel in matched.panels_of(choice)]
    labels = sorted({name for one in matched.workloads.values() for name in one.point if is_label(name)})
    found = (_fullest(matched, panel, factor, names) for factor in (*AXES, *labels) for panel, names in panels)
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
    groups: dict[tuple[frozenset[tuple[str, Value]], str], list[Workload]] = {}
    for one in matched.in_panel(panel):
        if number := _number(factor, one.point.get(factor)):
            rest = frozenset(one.point.items()) - {(factor, one.point[factor])}
            groups.setdefault((rest, number[1]), []).append(one)
    return groups.values()


def _number(factor: str, level: Value) -> tuple[float, str] | None:
    """With its unit; None if the level has no place on an axis."""
    if not is_label(factor):
        return (float(level), "") if FACTORS[factor].numeric and isinstance(level, int | float) else None
    return number_of(level)


def _curve(matched: Matched, panel: Panel, factor: str, words: str, alike: Sequence[Workload]) -> Curve:
    ordered = sorted(alike, key=lambda one: _number(factor, one.point[factor]) or (0.0, ""))
    points: dict[Product, dict[Value, Cell]] = {}
    for one in ordered:
        for product in matched.products:
            if cell := matched.cell(panel, product, one.key):
                points.setdefault(product, {})[one.point[factor]] = cell
    return Curve(panel, factor, words, tuple(one.point[factor] for one in ordered), points)
