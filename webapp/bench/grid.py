"""Puts the results of products into cells: a panel, a product and a workload."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from webapp.bench.import_labels import drive_of, labels_in, varying_labels
from webapp.bench.panels import RATE, Panel, metric_of
from webapp.bench.products import Product
from webapp.bench.workloads import Stated, Workload, matched_workloads
from webapp.compare.grouping import CellKey
from webapp.compare.mixes import totals
from webapp.hosts.names import BESIDE
from webapp.results.reading.rows import TEST, ResultRow, places_of_several_tests

Rows = Mapping[Product, Sequence[ResultRow]]
Test = Hashable  # of an import, or all results of a point


class Grid:
    def __init__(self, found: Rows, ignored: Collection[str]) -> None:
        self.cells: dict[CellKey, list[ResultRow]] = {}
        self.panels: dict[str, Panel] = {}
        self.workloads: dict[str, Workload] = {}
        self.by_direction: dict[tuple[Product, str, str], list[ResultRow]] = {}  # of latencies, with or without a value
        self._found = found
        self._ignored = frozenset(ignored)
        rows = [row for own in found.values() for row in own]
        self.labels = varying_labels(rows)
        self._several_tests = self._find_several_tests(rows)
        places = {(product, self._test(row)): row for product, own in found.items() for row in own}
        stated = {place: self._stated(place[0], row) for place, row in places.items()}
        matched = matched_workloads(stated.values())
        self._workloads = {place: matched[one] for place, one in stated.items()}

    @property
    def placed(self) -> frozenset[tuple[Product, str]]:
        """The workloads of each product, with whatever values."""
        return frozenset((place[0], one.key) for place, found in self._workloads.items() for one in found)

    def add(self, choice: str) -> None:
        """The cells of one metric."""
        by_workload: dict[tuple[str, str], dict[Product, list[ResultRow]]] = {}
        for product, rows in self._found.items():
            for direction, key, own in self._placed_rows(product, rows, choice):
                by_workload.setdefault((direction, key), {}).setdefault(product, []).extend(own)
        for (direction, key), found in by_workload.items():
            chart = self.workloads[key].chart
            panel = Panel(choice, metric_of(choice, chart, found.values()), chart, direction)
            if choice != RATE:
                self.by_direction |= {(product, key, direction): own for product, own in found.items()}
            for product, own in found.items():
                if known := [row for row in own if panel.metric.of(row) is not None]:
                    self.panels.setdefault(panel.key, panel)
                    self.cells[panel.key, str(product), key] = known

    def _placed_rows(
        self, product: Product, rows: Sequence[ResultRow], choice: str
    ) -> Iterator[tuple[str, str, list[ResultRow]]]:
        """Direction, key of the workload, and rows. Thousands of rows share a few workloads."""
        alike: dict[tuple[str, Test], list[ResultRow]] = {}
        for row in totals(rows) if choice == RATE else rows:
            direction = "mixed" if choice == RATE and BESIDE in row.direction else row.direction
            alike.setdefault((direction, self._test(row)), []).append(row)
        for (direction, test), own in alike.items():
            for one in self._workloads[product, test]:
                self.workloads[one.key] = one
                yield direction, one.key, own

    def _find_several_tests(self, rows: Iterable[ResultRow]) -> frozenset[tuple[Hashable, ...]]:
        """Places of imports that hold several tests of a tool with equal factors at one drive, such as Read and Re-read
        of iozone. Each of these tests is a workload. If only different drives have different names, the names do not
        matter, such as those of fio's jobs."""
        return frozenset(
            place for place, _ in places_of_several_tests(rows, lambda row: (self._place(row), drive_of(row)))
        )

    def _stated(self, product: Product, row: ResultRow) -> Stated:
        labels = labels_in(row, self.labels)
        tests = {TEST: row.test} if self._place(row) in self._several_tests else {}
        key = " ".join([row.point_key, *map(str, (labels | tests).items())])
        point = {**row.point, **labels, **tests}
        return Stated(product, key, point, product.factors | self._ignored, complete=not row.imported)

    def _place(self, row: ResultRow) -> tuple[Hashable, ...]:
        return row.imported, row.direction, row.point_key, *labels_in(row, self.labels).items()

    def _test(self, row: ResultRow) -> Test:
        if not row.imported:
            return row.point_key  # the same text for all results of a point, which is a fast key
        return row.imported, row.test, row.point_key, *labels_in(row, self.labels).items()
