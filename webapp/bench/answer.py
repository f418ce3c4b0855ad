"""The rows of Bench as a table for files: a row for each product at each workload, in stored units."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import msgspec

from webapp.bench.matching import Matched
from webapp.bench.products import Product
from webapp.bench.saved import query_of
from webapp.bench.side_by_side import Row, Shown, SideBySide
from webapp.bench.workloads import Panel
from webapp.core.table_files import Column, Kind, Table
from webapp.results.metrics import Missing

# The numbers of Bench as structs, for the API. Values are in the metric's stored unit: 1/s, B/s, ns.


class BenchPrice(msgspec.Struct, frozen=True, kw_only=True):
    amount: float  # of one drive or controller
    currency: str  # ISO 4217
    priced_on: date


class BenchProduct(msgspec.Struct, frozen=True, kw_only=True):
    product: str  # as in the address
    name: str
    results: int  # that were read
    cut: bool  # it has more results; the others may contain workloads that are lacking here
    lacking: int  # workloads that another product has
    price: BenchPrice | None  # of its drive model or controller, as a person entered it


class BenchCell(msgspec.Struct, frozen=True, kw_only=True):
    product: str
    mean: float
    low: float | None  # of the 95 % confidence interval
    high: float | None
    n: int
    ratio: float | None  # to the baseline
    ratio_low: float | None
    ratio_high: float | None
    better: bool | None  # than the baseline; null if that may be chance
    part: str  # the drive or layout that an import of several has this value of; "" otherwise
    pooled: str  # 3 kernels: the mean covers all of them
    unstated: int  # factors that an import does not state
    assumed: str  # the queue depth and jobs among them: QD 1, 1 job
    doubts: tuple[str, ...]


class BenchMixed(msgspec.Struct, frozen=True, kw_only=True):
    """Values of several drives, layouts or levels that nobody chose. Their mean is no number of the product."""

    product: str
    choose: str


class BenchAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """Why products have no ratio."""

    why: str
    compare: str  # the nearest comparison that has one, in words; "" if there is none
    query: str  # its address: the query of Bench


class BenchMissing(msgspec.Struct, frozen=True, kw_only=True):
    product: str
    why: Missing


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workload. Each product has a cell, or is in `mixed` or in `missing`."""

    title: str
    workload: str
    metric: str
    unit: str
    direction: str
    cells: tuple[BenchCell, ...]
    mixed: tuple[BenchMixed, ...]
    missing: tuple[BenchMissing, ...]


class BenchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    baseline: str
    products: tuple[BenchProduct, ...]
    workloads: int
    shared: int  # workloads that at least two products have
    by_all: int  # workloads that all products have
    confounded: str  # a warning if hosts differ
    latency_kinds: str  # a warning if completion and total latency are mixed: they are not compared
    headlines: tuple[BenchRow, ...]
    rows: tuple[BenchRow, ...]
    conclusions: tuple[str, ...]
    advice: tuple[BenchAdvice, ...]


def answer(found: SideBySide) -> BenchAnswer:
    matched = found.matched
    return BenchAnswer(
        baseline=str(found.asked.baseline),
        products=tuple(_product(found, product) for product in found.products),
        workloads=found.workloads,
        shared=found.shared,
        by_all=found.by_all,
        confounded=found.confounded,
        latency_kinds=found.latency_kinds,
        headlines=tuple(_answer_row(matched, row, row.title) for row in found.headlines),
        rows=tuple(_answer_row(matched, row, row.panel.name) for group in found.groups for row in group.rows),
        conclusions=tuple(f"{one.panel.name}: {one.sentence}" for one in found.findings),
        advice=tuple(
            BenchAdvice(why=one.why, compare=one.words, query=query_of(one.nearest) if one.nearest else "")
            for one in found.advice
        ),
    )


def _product(found: SideBySide, product: Product) -> BenchProduct:
    price = found.prices.get(product)
    return BenchProduct(
        product=str(product),
        name=found.matched.names[product],
        results=len(found.read.rows[product]),
        cut=product in found.read.cut,
        lacking=len(found.missing[product]),
        price=BenchPrice(amount=float(price.amount), currency=price.currency, priced_on=price.priced_on)
        if price
        else None,
    )


def _answer_row(matched: Matched, row: Row, title: str) -> BenchRow:
    panel: Panel = row.panel
    cells = zip(matched.products, row.cells, strict=True)
    return BenchRow(
        title=title,
        workload=matched.texts[row.workload.key],
        metric=panel.metric.key,
        unit=panel.metric.unit,
        direction=panel.direction,
        cells=tuple(_cell(product, shown) for product, shown in cells if shown),
        mixed=tuple(
            BenchMixed(product=str(product), choose=mixed.text)
            for product, mixed in zip(matched.products, row.mixed, strict=True)
            if mixed
        ),
        missing=tuple(
            BenchMissing(product=str(product), why=matched.why_missing(product, row.workload))
            for product, shown, mixed in zip(matched.products, row.cells, row.mixed, strict=True)
            if not (shown or mixed)
        ),
    )


def _cell(product: Product, shown: Shown) -> BenchCell:
    summary, against = shown.cell.summary, shown.cell.against_baseline
    return BenchCell(
        product=str(product),
        mean=summary.mean,
        low=summary.low,
        high=summary.high,
        n=summary.n,
        ratio=against.ratio.value if against else None,
        ratio_low=against.ratio.low if against else None,
        ratio_high=against.ratio.high if against else None,
        better=against.better if against else None,
        part=shown.part,
        pooled=shown.pooled,
        unstated=len(shown.unstated),
        assumed=shown.assumed,
        doubts=shown.doubts,
    )


_COLUMNS = (
    Column("Pattern"), Column("Workload"), Column("Metric"), Column("Unit"), Column("Direction"), Column("Product"),
    Column("Name"), Column("Baseline", Kind.SWITCH), Column("n", Kind.INTEGER), Column("Geometric mean", Kind.NUMBER),
    Column("95 % CI low", Kind.NUMBER), Column("95 % CI high", Kind.NUMBER),
    Column("Ratio to the baseline", Kind.NUMBER), Column("Ratio 95 % CI low", Kind.NUMBER),
    Column("Ratio 95 % CI high", Kind.NUMBER), Column("Better", Kind.SWITCH), Column("Mean over"),
    Column("Factors not stated", Kind.INTEGER), Column("Matched with"), Column("Doubts"),
)  # fmt: skip


def bench_table(found: BenchAnswer) -> Table:
    """A product without a number has a row that says why."""
    names = {one.product: one.name for one in found.products}
    return Table(_COLUMNS, (line for row in found.rows for line in _lines(found.baseline, names, row)))


def _lines(baseline: str, names: Mapping[str, str], row: BenchRow) -> Iterator[Sequence[object]]:
    yield from (_row(baseline, names, row, cell) for cell in row.cells)
    without = [(one.product, one.choose) for one in row.mixed] + [(one.product, one.why) for one in row.missing]
    for product, why in without:
        place = (row.title, row.workload, row.metric, row.unit, row.direction, product, names[product])
        yield (*place, product == baseline, *(None,) * 11, why)


def _row(baseline: str, names: Mapping[str, str], row: BenchRow, cell: BenchCell) -> Sequence[object]:
    return (
        row.title, row.workload, row.metric, row.unit, row.direction, cell.product, names[cell.product],
        cell.product == baseline, cell.n, cell.mean, cell.low, cell.high, cell.ratio, cell.ratio_low,
        cell.ratio_high, cell.better, cell.pooled or None, cell.unstated, cell.assumed or None,
        "; ".join(cell.doubts) or None,
    )  # fmt: skip
