"""Results of products in cells of equal workloads, with the statistics of comparisons.

A chart of `compare` is a panel here (a metric, a pattern, a direction), a level on x is a workload, a series is a
product. All panels of a page are corrected together.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec.structs import replace

from webapp.bench.grid import Grid, Rows
from webapp.bench.import_labels import points_with_labels
from webapp.bench.panels import RATE, Panel, percentile_of
from webapp.bench.products import Product
from webapp.bench.workloads import JOBS, Workload, chart_words, in_words, naming, telling_apart
from webapp.compare.blocks import Measured, measured, other_levels, with_ids
from webapp.compare.comparison import Cell, Level
from webapp.compare.conclusions import Conclusions, conclusions
from webapp.compare.contrasts import Pair
from webapp.compare.grouping import CellKey, Grouped
from webapp.compare.query import MARGIN
from webapp.compare.sentences import form_of
from webapp.compare.table import Table
from webapp.plans.varying import differing, in_order
from webapp.results.reading.rows import ResultRow


@dataclass(frozen=True)
class Matched:
    """All cells. Their intervals and texts are computed when a page shows them."""

    products: tuple[Product, ...]
    names: Mapping[Product, str]
    baseline: Product
    panels: tuple[Panel, ...]
    workloads: Mapping[str, Workload]
    texts: Mapping[str, str]  # of workloads
    grouped: Grouped
    measured: Mapping[CellKey, Measured]
    concluded: Conclusions
    tables: Mapping[str, Table]  # by metric
    percentile: str  # of headline numbers: a key of CHOICES
    by_direction: Mapping[tuple[Product, str, str], Sequence[ResultRow]]  # of latencies: product, workload, direction
    placed: frozenset[tuple[Product, str]]  # the workloads of each product, also those without a shown value
    made: dict[CellKey, Cell] = field(default_factory=dict, compare=False)

    @property
    def comparisons(self) -> int:
        """The number of comparisons that are corrected together."""
        return self.concluded.sentences + self.concluded.tested_points

    def panels_of(self, choice: str) -> list[Panel]:
        return [panel for panel in self.panels if panel.choice == choice]

    def mean(self, panel: Panel, product: Product, key: str) -> float:
        return self.measured[panel.key, str(product), key].mean

    def cell(self, panel: Panel, product: Product, key: str) -> Cell | None:
        place = (panel.key, str(product), key)
        if place not in self.measured:
            return None
        if place not in self.made:
            self.made[place] = self.tables[panel.metric.key].cell(place, 0)
        return self.made[place]

    def sentence(self, panel: Panel, product: Product) -> str:
        """The product compared with the baseline; "" if they share no workload."""
        found = self.concluded.series.get((panel.key, str(product)))
        if found is None or found.ratio is None:
            return ""
        levels = Level(panel.key, panel.name, None), Level(str(product), self.names[product], None)
        return self.tables[panel.metric.key].sentences(*levels).page

    def rows(self, panel: Panel, product: Product, key: str) -> Sequence[ResultRow]:
        return self.grouped.cells.get((panel.key, str(product), key), ())

    def measured_by(self, panel: Panel, key: str) -> list[Product]:
        return self._measured_by.get((panel.key, key), [])

    @cached_property
    def _measured_by(self) -> dict[tuple[str, str], list[Product]]:
        places = {str(product): place for place, product in enumerate(self.products)}
        found: dict[tuple[str, str], list[int]] = {}
        for panel, product, key in self.measured:
            found.setdefault((panel, key), []).append(places[product])
        return {workload: [self.products[place] for place in sorted(own)] for workload, own in found.items()}

    @property
    def pairs(self) -> Iterator[tuple[CellKey, Pair]]:
        """The cells of the other products, each with that of the baseline at the same workload."""
        for (panel, product, key), cell in self.measured.items():
            other = self.measured.get((panel, str(self.baseline), key))
            if other is not None and product != str(self.baseline):
                yield (panel, product, key), (cell, other)

    @property
    def other_levels(self) -> list[str]:
        """The factors, labels or the target of which a product and the baseline have means over different levels."""
        return other_levels(pair for _, pair in self.pairs if pair[0].independent(pair[1]))

    @property
    def overlapping(self) -> set[str]:
        """The products that have results in common with the baseline."""
        return {product for (_, product, _), pair in self.pairs if not pair[0].independent(pair[1])}

    def in_panel(self, panel: Panel) -> list[Workload]:
        """In the order of block size and concurrency."""
        return self._by_panel.get(panel.key, [])

    @cached_property
    def _by_panel(self) -> dict[str, list[Workload]]:
        keys: dict[str, set[str]] = {}
        for panel, _, key in self.measured:
            keys.setdefault(panel, set()).add(key)
        return {
            panel: sorted((self.workloads[key] for key in own), key=lambda one: one.order)
            for panel, own in keys.items()
        }


def match(
    found: Rows, names: Mapping[Product, str], baseline: Product, choice: str, ignored: Collection[str] = ()
) -> Matched:
    """The rates, a percentile, and `choice`, a key of CHOICES. Factors in `ignored` are not part of a workload: their
    levels are pooled."""
    found = {product: [_without_repeats(row) for row in rows] for product, rows in found.items()}
    grid = Grid(found, ignored)
    percentile = percentile_of(found.values())
    for each in dict.fromkeys((RATE, percentile, choice)):
        grid.add(each)
    texts = dict(_texts(grid.workloads.values()))
    products = [Level(str(product), names[product], None) for product in found]
    grouped = Grouped(
        grid.cells,
        tuple(Level(panel.key, panel.name, None) for panel in grid.panels.values()),
        tuple(products),
        tuple(
            Level(one.key, texts[one.key], None) for one in sorted(grid.workloads.values(), key=lambda one: one.order)
        ),
    )
    return _concluded(grid, grouped, tuple(found), names, baseline, texts, percentile)


def _without_repeats(row: ResultRow) -> ResultRow:
    """Count the figures of a published table as one value, so that nothing is claimed from their spread."""
    return replace(row, repeat=1) if row.reference else row


def _texts(workloads: Collection[Workload]) -> Iterator[tuple[str, str]]:
    """Workloads of one pattern are told apart by the factors that vary among them."""
    charts: dict[str, list[Workload]] = {}
    for one in workloads:
        charts.setdefault(one.chart, []).append(one)
    for alike in charts.values():
        names = naming(alike)
        same: dict[str, list[Workload]] = {}
        for one in alike:
            same.setdefault(in_words(one, names) or _otherwise(one), []).append(one)
        for text, own in same.items():
            yield from ((one.key, _told_apart(text, one, own)) for one in own)


def _otherwise(one: Workload) -> str:
    """Words for a workload without a block size."""
    return "1 job" if JOBS in one.point else chart_words(one.chart)


def _told_apart(text: str, one: Workload, others: Sequence[Workload]) -> str:
    """Workloads with equal texts also get the factors in which they differ."""
    names = in_order(differing([other.point for other in others])) if len(others) > 1 else []
    return " · ".join(filter(None, (text, in_words(one, names))))


def _concluded(
    grid: Grid,
    grouped: Grouped,
    products: tuple[Product, ...],
    names: Mapping[Product, str],
    baseline: Product,
    texts: Mapping[str, str],
    percentile: str,
) -> Matched:
    cells = dict(_measured(grid, grouped))
    found = conclusions(grouped, cells, str(baseline), MARGIN)
    form = form_of([one.ratio.value for one in found.points.values()])
    tables = {
        metric.key: Table(
            metric=metric, x="pattern", baseline=Level(str(baseline), names[baseline], None), grouped=grouped,
            cells=cells, found=found, form=form, margin=MARGIN, where=telling_apart(grid.workloads, texts),
        )
        for metric in {panel.metric for panel in grid.panels.values()}
    }  # fmt: skip
    return Matched(
        products=products,
        names=names,
        baseline=baseline,
        panels=tuple(sorted(grid.panels.values(), key=lambda panel: panel.order)),
        workloads=grid.workloads,
        texts=texts,
        grouped=grouped,
        measured=cells,
        concluded=found,
        tables=tables,
        percentile=percentile,
        by_direction=grid.by_direction,
        placed=grid.placed,
    )


def _measured(grid: Grid, grouped: Grouped) -> Iterator[tuple[CellKey, Measured]]:
    """A metric has its own blocks, because its resolution differs."""
    for metric in {panel.metric for panel in grid.panels.values()}:
        own = {key: rows for key, rows in grid.cells.items() if grid.panels[key[0]].metric == metric}
        part = Grouped(own, grouped.panels, grouped.series, grouped.x)
        for key, cell in with_ids(measured(part, metric), part).items():
            yield key, dataclasses.replace(cell, points=tuple(points_with_labels(own[key], grid.labels)))
