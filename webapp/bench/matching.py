"""Results of products in cells of equal workloads, with the statistics of comparisons.

A chart of `compare` is a panel here (a metric, a pattern, a direction), a level on x is a workload, a series is a
product. Rates are one question, and so is each latency: its panels are corrected together, as in Explore (decision 32).
"""

import dataclasses
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from webapp.analysis.answer import Cell, Level
from webapp.analysis.cells import CellKey, Grouped, Measured, cell_of, other_levels
from webapp.analysis.claims import Pair
from webapp.analysis.conclusions import Conclusions, GroupedCells, SeriesResult, conclusions, no_ratio
from webapp.analysis.default_questions import questions_of_run
from webapp.analysis.dimensions import ABSENT_LEVEL, matched_level
from webapp.analysis.equals import JOBS, PATTERN, Equals, points_with_labels
from webapp.analysis.question import MARGIN
from webapp.analysis.table import Table
from webapp.analysis.trial_metrics import totals
from webapp.analysis.words import Sentences, form_of
from webapp.bench.alike import Mixed, Places, is_of_several, mixed_cell, part_of, share_no_place
from webapp.bench.products import Kind, Product
from webapp.bench.workloads import (
    RATE,
    Panel,
    Workload,
    chart_words,
    in_words,
    metric_of,
    naming,
    percentile_of,
    telling_apart,
)
from webapp.hosts.selectors import BESIDE
from webapp.plans.factors import FACTORS
from webapp.plans.points import differing, in_order, varying
from webapp.results.metrics import Missing
from webapp.results.reading.rows import ResultRow

# Puts the results of products into cells: a panel, a product and a workload.

Rows = Mapping[Product, Sequence[ResultRow]]


class Grid:
    def __init__(self, rows: Rows, ignored: Collection[str]) -> None:
        self.cells: dict[CellKey, list[ResultRow]] = {}
        self.panels: dict[str, Panel] = {}
        self.workloads: dict[str, Workload] = {}
        self.by_direction: dict[tuple[Product, str, str], list[ResultRow]] = {}  # of latencies, with or without a value
        self._rows = rows
        self._products = {str(product): product for product in rows}
        self._ignored = frozenset(ignored)
        self._places = Places(rows)
        self._equals = Equals(rows, without=lambda product: product.factors | self._ignored, place_of=self._places.of)
        workloads = {full.key: Workload(full.key, full.point) for full in self._equals.points.values()}
        self._workloads = {test: workloads[full.key] for test, full in self._equals.points.items()}

    @property
    def placed(self) -> frozenset[tuple[Product, str]]:
        """The workloads of each product, with whatever values."""
        return frozenset((product, workload.key) for (product, _), workload in self._workloads.items())

    @property
    def mixed(self) -> dict[CellKey, Mixed]:
        return {key: mixed for key in self.cells if (mixed := self._mixed_at(key))}

    @property
    def of_several(self) -> frozenset[Product]:
        return frozenset(product for product, rows in self._rows.items() if is_of_several(product, rows))

    def is_mixed(self, product: Product, rows: Sequence[ResultRow]) -> bool:
        return self.mixed_in(product, rows) is not None

    def mixed_in(self, product: Product, rows: Sequence[ResultRow]) -> Mixed | None:
        """Why these rows of a product are no number; None if they are one."""
        return mixed_cell(product, rows, self._ignored, self._places)

    def _mixed_at(self, key: CellKey) -> Mixed | None:
        return self.mixed_in(self._products[key[1]], self.cells[key])

    def are_comparable(self, key: CellKey, other: CellKey) -> bool:
        """Whether both cells exist and have a ratio."""
        both = (key, other)
        if not all(each in self.cells for each in both) or any(map(self._mixed_at, both)):
            return False
        return not no_ratio(*map(self.measured, both))

    def measured(self, key: CellKey) -> Measured:
        """A metric has its own blocks, because its resolution differs."""
        rows = self.cells[key]
        ids = frozenset(id_ for row in rows for id_ in row.ids)
        points = tuple(points_with_labels(rows, self._equals.labels))
        return dataclasses.replace(cell_of(rows, self.panels[key[0]].metric), ids=ids, points=points)

    def add(self, choice: str) -> None:
        """The cells of one metric."""
        by_workload: dict[tuple[str, str], dict[Product, list[ResultRow]]] = {}
        for product, rows in self._rows.items():
            for direction, key, alike in self._placed_rows(product, rows, choice):
                by_workload.setdefault((direction, key), {}).setdefault(product, []).extend(alike)
        for (direction, key), rows_of_products in by_workload.items():
            chart = self.workloads[key].chart
            panel = Panel(choice, metric_of(choice, chart, rows_of_products.values()), chart, direction)
            if choice != RATE:
                self.by_direction |= {
                    (product, key, direction): product_rows for product, product_rows in rows_of_products.items()
                }
            for product, product_rows in rows_of_products.items():
                if known := [row for row in product_rows if panel.metric.of(row) is not None]:
                    self.panels.setdefault(panel.key, panel)
                    self.cells[panel.key, str(product), key] = known

    def _placed_rows(
        self, product: Product, rows: Sequence[ResultRow], choice: str
    ) -> Iterator[tuple[str, str, list[ResultRow]]]:
        """Direction, key of the workload, and rows. Thousands of rows share a few workloads."""
        alike: dict[tuple[str, Hashable], list[ResultRow]] = {}
        tests = self._equals.tests[product]  # a total has the id of one of its directions
        for row in totals(rows) if choice == RATE else rows:
            direction = "mixed" if choice == RATE and BESIDE in row.direction else row.direction
            alike.setdefault((direction, tests[row.id]), []).append(row)
        for (direction, test), alike_rows in alike.items():
            workload = self._workloads[product, test]
            self.workloads[workload.key] = workload
            yield direction, workload.key, alike_rows


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
    mixed: Mapping[CellKey, Mixed]  # cells that are no number
    concluded: Mapping[str, Conclusions]  # by choice
    tables: Mapping[str, Table]  # by metric
    of_several: frozenset[Product]  # imports with several drives or layouts
    percentile: str  # of headline numbers: a key of CHOICES
    by_direction: Mapping[tuple[Product, str, str], Sequence[ResultRow]]  # of latencies: product, workload, direction
    placed: frozenset[tuple[Product, str]]  # the workloads of each product, also those without a shown value
    made: dict[CellKey, Cell] = field(default_factory=dict, compare=False)

    def why_missing(self, product: Product, workload: Workload) -> Missing:
        """Why the product has no number of a metric at a workload."""
        return Missing.NO_VALUE if (product, workload.key) in self.placed else Missing.NOT_MEASURED

    @property
    def comparisons(self) -> Mapping[str, int]:
        """The number of comparisons that are corrected together, by choice; without choices that have none."""
        counts = {choice: made.sentences + made.tested_points for choice, made in self.concluded.items()}
        return {choice: count for choice, count in counts.items() if count}

    @cached_property
    def compared(self) -> set[str]:
        """The products that have a ratio to the baseline."""
        return {product for made in self.concluded.values() for _, product, _ in made.points}

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

    def ratio(self, panel: Panel, product: Product) -> float | None:
        """The geometric mean of the ratios to the baseline."""
        result = self._result(panel, product)
        return result.ratio.value if result and result.ratio else None

    def _result(self, panel: Panel, product: Product) -> SeriesResult | None:
        return self.concluded[panel.choice].series.get((panel.key, str(product)))

    def sentences(self, panel: Panel, product: Product) -> Sentences | None:
        """The product compared with the baseline; None if they share no workload."""
        result = self._result(panel, product)
        names = [self._measured_name(panel, side, product) for side in (product, self.baseline)]
        if result is None or result.ratio is None or not all(names):
            return None
        table = self.tables[panel.metric.key].with_baseline(Level(str(self.baseline), names[1], None))
        return table.sentences(Level(panel.key, panel.name, None), Level(str(product), names[0], None))

    @cached_property
    def unnamed(self) -> set[Product]:
        """Imports with ratios of several drives, about which no sentence is said."""
        return {
            side
            for panel in self.panels
            for product in self.products
            for side in {product, self.baseline} & self.of_several
            if self.ratio(panel, product) and not self._measured_name(panel, side, product)
        }

    def _measured_name(self, panel: Panel, side: Product, product: Product) -> str:
        """The name of what was measured of one side of a comparison: of an import with several drives the one whose
        results are compared; "" if they are of several, because their mean would be of none."""
        if side not in self.of_several:
            return self.names[side]
        keys = [key for (name, other, key), _ in self.pairs if (name, other) == (panel.key, str(product))]
        part = part_of(row for key in keys for row in self.rows(panel, side, key))
        return f"{self.names[side]}: {part}" if part else ""

    def rows(self, panel: Panel, product: Product, key: str) -> Sequence[ResultRow]:
        return self.grouped.cells.get((panel.key, str(product), key), ())

    def measured_by(self, panel: Panel, key: str) -> list[Product]:
        """The products with a number."""
        return self._measured_by.get((panel.key, key), [])

    def covered_by(self, panel: Panel, key: str) -> int:
        """The number of products with a number, or with values of several drives or levels."""
        return len(self.measured_by(panel, key)) + self._mixed_by[panel.key, key]

    @cached_property
    def _measured_by(self) -> dict[tuple[str, str], list[Product]]:
        places = {str(product): place for place, product in enumerate(self.products)}
        places_by_workload: dict[tuple[str, str], list[int]] = {}
        for panel, product, key in self.measured:
            places_by_workload.setdefault((panel, key), []).append(places[product])
        return {
            workload: [self.products[place] for place in sorted(workload_places)]
            for workload, workload_places in places_by_workload.items()
        }

    @cached_property
    def _mixed_by(self) -> Counter[tuple[str, str]]:
        return Counter((panel, key) for panel, _, key in self.mixed)

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
        for panel, _, key in (*self.measured, *self.mixed):
            keys.setdefault(panel, set()).add(key)
        return {
            panel: sorted((self.workloads[key] for key in panel_keys), key=lambda workload: workload.order)
            for panel, panel_keys in keys.items()
        }


def match(
    rows: Rows, names: Mapping[Product, str], baseline: Product | None, choice: str, ignored: Collection[str] = ()
) -> Matched:
    """The rates, a percentile, and `choice`, a key of CHOICES. Factors in `ignored` are not part of a workload: their
    levels are pooled. Without a `baseline` it is the slower one of two products, so that the ratio says how much faster
    the other one is; of several products, and of runs, which have an order, the first one."""
    grid = Grid(rows, ignored)
    percentile = percentile_of(rows.values())
    for metric_choice in dict.fromkeys((RATE, percentile, choice)):
        grid.add(metric_choice)
    texts = dict(texts_of(grid.workloads.values()))
    products = [Level(str(product), names[product], None) for product in rows]
    grouped = Grouped(
        grid.cells,
        tuple(Level(panel.key, panel.name, None) for panel in grid.panels.values()),
        tuple(products),
        tuple(
            Level(workload.key, texts[workload.key], None)
            for workload in sorted(grid.workloads.values(), key=lambda workload: workload.order)
        ),
    )
    return _concluded(grid, grouped, rows, names, baseline, texts, percentile)


def has_ratio(rows: Rows, choice: str, ignored: Collection[str] = ()) -> bool:
    """Whether `match` finds a ratio between the first product and another one. It needs no statistics, and stops at the
    first pair of cells; without a common place there is none."""
    if share_no_place(Places(rows), rows):
        return False
    grid, baseline = Grid(rows, ignored), str(next(iter(rows)))
    for each in dict.fromkeys((RATE, percentile_of(rows.values()), choice)):
        grid.add(each)
        keys = [key for key in grid.cells if grid.panels[key[0]].choice == each and key[1] != baseline]
        if any(grid.are_comparable(key, (key[0], baseline, key[2])) for key in keys):
            return True
    return False


def shared_workloads(rows: Rows, ignored: Collection[str] = ()) -> int:
    """The workloads of rates that at least two products have, as Bench counts them (`SideBySide.shared`)."""
    if share_no_place(Places(rows), rows):
        return 0
    grid = Grid(rows, ignored)
    grid.add(RATE)
    counts = Counter((panel, key) for panel, _, key in grid.cells)
    return sum(count > 1 for count in counts.values())


def texts_of(workloads: Collection[Workload]) -> Iterator[tuple[str, str]]:
    """Workloads of one pattern are told apart by the factors that vary among them."""
    charts: dict[str, list[Workload]] = {}
    for workload in workloads:
        charts.setdefault(workload.chart, []).append(workload)
    for alike in charts.values():
        names = naming(alike)
        same: dict[str, list[Workload]] = {}
        for workload in alike:
            same.setdefault(in_words(workload, names) or _otherwise(workload), []).append(workload)
        for text, namesakes in same.items():
            yield from ((workload.key, _told_apart(text, workload, namesakes)) for workload in namesakes)


def _otherwise(workload: Workload) -> str:
    """Words for a workload without a block size."""
    return "1 job" if JOBS in workload.point else chart_words(workload.chart)


def _told_apart(text: str, workload: Workload, others: Sequence[Workload]) -> str:
    """Workloads with equal texts also get the factors in which they differ."""
    names = in_order(differing([other.point for other in others])) if len(others) > 1 else []
    return " · ".join(filter(None, (text, in_words(workload, names))))


def _concluded(
    grid: Grid,
    grouped: Grouped,
    rows: Rows,
    names: Mapping[Product, str],
    baseline: Product | None,
    texts: Mapping[str, str],
    percentile: str,
) -> Matched:
    products, mixed = tuple(rows), grid.mixed
    cells = {key: grid.measured(key) for key in grid.cells if key not in mixed}
    baseline = baseline or _default_baseline(
        products, [key for key, p in grid.panels.items() if p.choice == RATE], cells
    )
    baselines = dict.fromkeys((panel.key for panel in grouped.panels), Level(str(baseline), names[baseline], None))
    parted = _parted(grid.workloads)
    questions = max(1, len(questions_of_run([row for product_rows in rows.values() for row in product_rows])))
    concluded = {
        choice: conclusions(
            GroupedCells(_of_choice(grid, grouped, choice), cells, baselines, parted), MARGIN, questions=questions
        )
        for choice in dict.fromkeys(panel.choice for panel in grid.panels.values())
    }
    form = form_of([point.ratio.value for made in concluded.values() for point in made.points.values()])
    tables = {
        panel.metric.key: Table(
            metric=panel.metric, x="pattern", baselines=baselines, grouped=grouped, cells=cells,
            conclusions=concluded[panel.choice], form=form, margin=MARGIN, where=telling_apart(grid.workloads, texts),
        )
        for panel in grid.panels.values()
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
        mixed=mixed,
        of_several=grid.of_several,
        concluded=concluded,
        tables=tables,
        percentile=percentile,
        by_direction={place: rows for place, rows in grid.by_direction.items() if not grid.is_mixed(place[0], rows)},
        placed=grid.placed,
    )


def _parted(workloads: Mapping[str, Workload]) -> dict[str, Level]:
    """The levels that x = `matched` has in Explore: a difference may depend on each of their factors."""
    names = tuple(name for name in varying([workload.point for workload in workloads.values()]) if name in FACTORS)
    factors = tuple(name for name in names if name != PATTERN)
    return {
        key: matched_level(factors, tuple(workload.point.get(name, ABSENT_LEVEL) for name in factors))
        for key, workload in workloads.items()
    }


def _of_choice(grid: Grid, grouped: Grouped, choice: str) -> Grouped:
    """The panels of one question."""
    return dataclasses.replace(
        grouped, panels=tuple(panel for panel in grouped.panels if grid.panels[panel.key].choice == choice)
    )


def _default_baseline(
    products: Sequence[Product], rates: Collection[str], cells: Mapping[CellKey, Measured]
) -> Product:
    """The product that is slower by more than the margin at more workloads; `rates`: keys of the panels of rates."""
    if len(products) != 2 or any(product.kind is Kind.RUN for product in products):
        return products[0]
    first, second = map(str, products)
    pairs = [
        (cell.mean, other.mean)
        for (panel, name, key), cell in cells.items()
        if name == first and panel in rates and (other := cells.get((panel, second, key)))
    ]
    leads = [sum(a > b * (1 + MARGIN) for a, b in sides) for sides in (pairs, [(b, a) for a, b in pairs])]
    return products[0] if leads[1] >= leads[0] else products[1]
