"""Results of products in cells of equal workloads, with the statistics of comparisons.

A chart of `compare` is a panel here (a metric, a pattern, a direction), a level on x is a workload, a series is a
product. All panels of a page are corrected together.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from msgspec.structs import replace

from webapp.bench.products import Product
from webapp.bench.workloads import (
    Stated,
    Workload,
    chart_order,
    chart_words,
    in_words,
    is_random,
    matched_workloads,
    naming,
    telling_apart,
)
from webapp.compare.blocks import Measured, measured
from webapp.compare.comparison import Cell, Level
from webapp.compare.conclusions import Conclusions, conclusions
from webapp.compare.grouping import CellKey, Grouped
from webapp.compare.mixes import totals
from webapp.compare.query import MARGIN
from webapp.compare.sentences import form_of
from webapp.compare.table import Table
from webapp.hosts.names import BESIDE
from webapp.plans.varying import differing, in_order
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.rows import TEST, ResultRow, places_of_several_tests

RATE = "rate"  # IOPS of random patterns, bandwidth of the others
P99 = "latency_p99"
CHOICES = {
    RATE: "IOPS and bandwidth", "latency_mean": "Mean latency", "latency_p50": "Median latency", P99: "p99 latency",
    "latency_p999": "p99.9 latency", "latency_max": "Maximum latency",
}  # fmt: skip

Rows = Mapping[Product, Sequence[ResultRow]]


@dataclass(frozen=True)
class Panel:
    """One metric of the workloads of one pattern. `choice` is a key of CHOICES."""

    choice: str
    metric: Metric
    chart: str
    direction: str

    @cached_property
    def key(self) -> str:
        return f"{self.choice}|{self.chart}|{self.direction}"

    @property
    def name(self) -> str:
        """`Random read`, `Random mix, reads`."""
        mixed = self.direction in ("read", "write") and self.direction not in self.chart
        return f"{chart_words(self.chart)}{f', {self.direction}s' if mixed else ''}"

    @property
    def order(self) -> tuple[int, str, str]:
        return chart_order(self.chart), self.chart, self.direction


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
    made: dict[CellKey, Cell] = field(default_factory=dict, compare=False)

    @property
    def comparisons(self) -> int:
        """The number of comparisons that are corrected together."""
        return self.concluded.sentences + self.concluded.tested_points

    def panels_of(self, choice: str) -> list[Panel]:
        return [panel for panel in self.panels if panel.choice == choice]

    def mean(self, panel: Panel, product: Product, key: str) -> float:
        return fmean(self.measured[panel.key, str(product), key].values.values())

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
        return self.tables[panel.metric.key].sentences(*levels)[0]

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
    found: Rows, names: Mapping[Product, str], baseline: Product, choices: Sequence[str], ignored: Collection[str] = ()
) -> Matched:
    """`choices` are keys of CHOICES. Factors in `ignored` are not part of a workload: their levels are pooled."""
    found = {product: [_without_repeats(row) for row in rows] for product, rows in found.items()}
    grid = _Grid(found, ignored)
    for product, rows in found.items():
        for choice in choices:
            grid.add(product, rows, choice)
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
    return _concluded(grid, grouped, tuple(found), names, baseline, texts)


def _without_repeats(row: ResultRow) -> ResultRow:
    """Count the figures of a published table as one value, so that nothing is claimed from their spread."""
    return replace(row, repeat=1) if row.reference else row


def _place(row: ResultRow) -> tuple[int, str, str]:
    return row.imported, row.point_key, row.direction


def _test(row: ResultRow) -> tuple[str, int, str]:
    return row.point_key, row.imported, row.test


def _several_tests(rows: Iterable[ResultRow]) -> frozenset[tuple[int, str, str]]:
    """Places of imports that hold several tests of a tool with equal factors at one drive, such as Read and Re-read of
    iozone. Each of these tests is a workload. If only different drives have different names, the names do not matter,
    such as those of fio's jobs."""
    return frozenset(place for place, _ in places_of_several_tests(rows, lambda row: (_place(row), _drive(row))))


def _drive(row: ResultRow) -> tuple[str, ...]:
    """What the labels of an import say about it. `target_name` may be the name of the test."""
    return row.host, row.model, row.serial, row.layout


class _Grid:
    """Puts rows into cells."""

    def __init__(self, found: Rows, ignored: Collection[str]) -> None:
        self.cells: dict[CellKey, list[ResultRow]] = {}
        self.panels: dict[str, Panel] = {}
        self.workloads: dict[str, Workload] = {}
        self._ignored = frozenset(ignored)
        self._several_tests = _several_tests(row for rows in found.values() for row in rows)
        places = {(product, *_test(row)): row for product, rows in found.items() for row in rows}
        stated = {place: self._stated(place[0], row) for place, row in places.items()}
        matched = matched_workloads(stated.values())
        self._places = {place: matched[one] for place, one in stated.items()}

    def _stated(self, product: Product, row: ResultRow) -> Stated:
        key, point = row.point_key, row.point
        if _place(row) in self._several_tests:
            key, point = f"{key} {row.test}", {**point, TEST: row.test}
        return Stated(product, key, point, product.factors | self._ignored, complete=not row.imported)

    def add(self, product: Product, rows: Sequence[ResultRow], choice: str) -> None:
        alike: dict[tuple[str, str, int, str], list[ResultRow]] = {}  # thousands of rows share a few cells
        for row in totals(rows) if choice == RATE else rows:
            alike.setdefault((row.direction, *_test(row)), []).append(row)
        for own in alike.values():
            for panel, key in self._cells_of(product, own[0], choice):
                if known := [row for row in own if panel.metric.of(row) is not None]:
                    self.panels.setdefault(panel.key, panel)
                    self.cells.setdefault(key, []).extend(known)

    def _cells_of(self, product: Product, row: ResultRow, choice: str) -> Iterator[tuple[Panel, CellKey]]:
        for one in self._places[product, *_test(row)]:
            panel = _panel(choice, one.chart, row.direction)
            self.workloads[one.key] = one
            yield panel, (panel.key, str(product), one.key)


def _panel(choice: str, chart: str, direction: str) -> Panel:
    if choice != RATE:
        return Panel(choice, METRICS[choice], chart, direction)
    metric = METRICS["iops" if is_random(chart) else "bytes_per_s"]
    return Panel(choice, metric, chart, "mixed" if BESIDE in direction else direction)


def _texts(workloads: Collection[Workload]) -> Iterator[tuple[str, str]]:
    """Workloads of one pattern are told apart by the factors that vary among them."""
    charts: dict[str, list[Workload]] = {}
    for one in workloads:
        charts.setdefault(one.chart, []).append(one)
    for alike in charts.values():
        names = naming(alike)
        same: dict[str, list[Workload]] = {}
        for one in alike:
            same.setdefault(in_words(one, names) or chart_words(one.chart), []).append(one)
        for text, own in same.items():
            yield from ((one.key, _told_apart(text, one, own)) for one in own)


def _told_apart(text: str, one: Workload, others: Sequence[Workload]) -> str:
    """Workloads with equal texts also get the factors in which they differ."""
    names = in_order(differing([other.point for other in others])) if len(others) > 1 else []
    return " · ".join(filter(None, (text, in_words(one, names))))


def _concluded(
    grid: _Grid,
    grouped: Grouped,
    products: tuple[Product, ...],
    names: Mapping[Product, str],
    baseline: Product,
    texts: Mapping[str, str],
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
    )


def _measured(grid: _Grid, grouped: Grouped) -> Iterator[tuple[CellKey, Measured]]:
    """A metric has its own blocks, because its resolution differs."""
    for metric in {panel.metric for panel in grid.panels.values()}:
        own = {key: rows for key, rows in grid.cells.items() if grid.panels[key[0]].metric == metric}
        yield from measured(Grouped(own, grouped.panels, grouped.series, grouped.x), metric).items()
