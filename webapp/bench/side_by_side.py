"""The content of the page Bench."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.curves import Curve, curves
from webapp.bench.headlines import Headline, headlines
from webapp.bench.ladder import Ladder, ladder, ladder_key, ladders
from webapp.bench.matching import P99, RATE, Matched, Panel, match
from webapp.bench.missing import missing
from webapp.bench.pooled import pooled
from webapp.bench.products import Kind, Product
from webapp.bench.reading import Read, read_results
from webapp.bench.specifications import Specification, differing, header
from webapp.bench.workloads import Workload
from webapp.compare.comparison import Cell
from webapp.compare.dimensions import known_dimension
from webapp.plans.factors import FACTORS
from webapp.plans.varying import in_order
from webapp.results.reading.rows import ResultRow


@dataclass(frozen=True)
class Asked:
    """What the address says."""

    products: tuple[Product, ...]
    baseline: Product
    choice: str = RATE  # key of matching.CHOICES: the metric of bars and curves
    ladder: str = ""  # key of a workload
    ignored: frozenset[str] = frozenset()  # factors in which matched workloads may differ


@dataclass(frozen=True)
class Shown:
    """One cell of a row: what one product measured."""

    cell: Cell
    pooled: str  # 2 targets, 3 kernels
    runs: int  # and imports
    unstated: int  # factors of the workload that an import does not state
    reference: bool


@dataclass(frozen=True)
class Row:
    """One workload. `cells` has None for a product that was not measured."""

    title: str
    panel: Panel
    workload: Workload
    cells: tuple[Shown | None, ...]


@dataclass(frozen=True)
class Group:
    """The rows of one panel that at least two products have."""

    panel: Panel
    rows: tuple[Row, ...]
    alone: int  # workloads that one product has alone


@dataclass(frozen=True)
class Finding:
    panel: Panel
    sentence: str


@dataclass(frozen=True)
class OwnLevels:
    """A factor whose levels no two products share, which therefore prevents matches."""

    factor: str
    label: str
    levels: tuple[str, ...]  # texts, by product


@dataclass(frozen=True)
class SideBySide:
    asked: Asked
    read: Read
    matched: Matched
    header: tuple[Specification, ...]
    differing: tuple[Specification, ...]
    headlines: tuple[Row, ...]
    groups: tuple[Group, ...]
    curves: tuple[Curve, ...]
    ladder: Ladder | None
    ladders: Mapping[str, str]
    findings: tuple[Finding, ...]
    missing: Mapping[Product, int]
    shared: int  # workloads that at least two products have
    workloads: int
    apart: tuple[OwnLevels, ...]  # if nothing is shared: why

    @property
    def products(self) -> tuple[Product, ...]:
        return self.asked.products

    @property
    def empty(self) -> tuple[Product, ...]:
        return tuple(product for product, rows in self.read.rows.items() if not rows)

    @property
    def references(self) -> tuple[Product, ...]:
        """Published tables."""
        return tuple(product for product, rows in self.read.rows.items() if any(row.reference for row in rows))

    @property
    def single(self) -> int:
        """Cells that were measured once."""
        return sum(cell.summary.n == 1 for cell in self.matched.cells.values())


def side_by_side(asked: Asked) -> SideBySide:
    read = read_results(asked.products)
    names = {product: _name(product, rows) for product, rows in read.rows.items()}
    choices = tuple(dict.fromkeys((RATE, P99, asked.choice)))
    matched = match(read.rows, names, asked.baseline, choices, asked.ignored)
    groups = tuple(_groups(matched, asked.choice))
    chosen = headlines(matched)
    shared = sum(len(group.rows) for group in groups)
    return SideBySide(
        asked=asked,
        read=read,
        matched=matched,
        header=header(read.rows),
        differing=differing(read.rows),
        headlines=tuple(_row(matched, one.panel, one.workload, one.title) for one in chosen),
        groups=groups,
        curves=curves(matched, asked.choice),
        ladder=ladder(matched, asked.ladder, _default_ladder(chosen)),
        ladders=ladders(matched),
        findings=tuple(_findings(matched, asked.choice)),
        missing={product: len(missing(matched, product)) for product in asked.products},
        shared=shared,
        workloads=sum(len(matched.in_panel(panel)) for panel in matched.panels_of(asked.choice)),
        apart=() if shared or len(asked.products) < 2 else tuple(_apart(read.rows)),
    )


def _name(product: Product, rows: Sequence[ResultRow]) -> str:
    if product.kind is Kind.SERIAL and rows:
        return f"{rows[0].model} {product.value}".strip()
    if product.kind is Kind.IMPORT and rows:
        return f"{rows[0].import_title}: {product.part}" if product.part else rows[0].import_title
    if product.kind in (Kind.RUN, Kind.CONFIGURATION, Kind.IMPORT):
        return f"{product.label} {product.value}"
    return product.value


def _row(matched: Matched, panel: Panel, one: Workload, title: str) -> Row:
    cells = tuple(_shown(matched, panel, product, one) for product in matched.products)
    return Row(title, panel, one, cells)


def _shown(matched: Matched, panel: Panel, product: Product, one: Workload) -> Shown | None:
    cell = matched.cell(panel, product, one.key)
    if cell is None:
        return None
    rows = matched.rows(panel, product, one.key)
    imported = [len(one.point) - len(row.point) for row in rows if row.imported]
    return Shown(
        cell=cell,
        pooled=pooled(rows),
        runs=len({row.source for row in rows}),
        unstated=max(imported, default=0),
        reference=any(row.reference for row in rows),
    )


def _groups(matched: Matched, choice: str) -> Iterator[Group]:
    least = min(2, len(matched.products))
    for panel in matched.panels_of(choice):
        all_ = matched.in_panel(panel)
        shared = [one for one in all_ if len(matched.measured_by(panel, one.key)) >= least]
        rows = tuple(_row(matched, panel, one, matched.texts[one.key]) for one in shared)
        yield Group(panel, rows, len(all_) - len(shared))


def _default_ladder(chosen: Sequence[Headline]) -> str:
    """The workload of the first headline of a latency."""
    latencies = [one for one in chosen if one.panel.choice == P99]
    return ladder_key(latencies[0].panel, latencies[0].workload) if latencies else ""


def _findings(matched: Matched, choice: str) -> Iterator[Finding]:
    """Sentences about all workloads of a pattern that both products have."""
    for shown in dict.fromkeys((choice, RATE, P99)):
        for panel in matched.panels_of(shown):
            for product in matched.products:
                series = matched.series.get((panel.key, product))
                if series and series.sentence and series.against_baseline:
                    yield Finding(panel, series.sentence)


def _apart(found: Mapping[Product, Sequence[ResultRow]]) -> Iterator[OwnLevels]:
    """Factors of workloads with levels that differ completely between two of the products."""
    points = [list({row.point_key: row.point for row in rows}.values()) for rows in found.values()]
    names = {name for each in points for point in each for name in point}
    for name in in_order(names):
        levels = [{repr(point.get(name)): point.get(name) for point in each} for each in points]
        if not set.intersection(*(set(each) for each in levels)):
            dimension = known_dimension(name)
            yield OwnLevels(name, dimension.label, tuple(_levels(name, list(each.values())) for each in levels))


def _levels(name: str, levels: Sequence[object]) -> str:
    texts = ["not set" if level is None else FACTORS[name].format(level) for level in levels]
    return ", ".join(sorted(texts))
