"""Products of the page with their addresses, and rows of bars for pages with few numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from django.http import QueryDict

from webapp.analysis.answer import Cell
from webapp.analysis.words import unclear
from webapp.bench.answer import BenchAnswer, BenchMissing
from webapp.bench.assembly import short_names
from webapp.bench.missing import why_no_plan, why_not_alone
from webapp.bench.products import Product
from webapp.bench.side_by_side import Row, Shown, SideBySide
from webapp.bench.workloads import Workload
from webapp.core.formatting import significant
from webapp.results.metrics import METRICS, Metric, Missing
from webapp.screens.arming import usable_targets
from webapp.screens.bench.address import product_address, with_value, without
from webapp.screens.bench.tracks import Lacking
from worker.contract.packing import BEYOND, LAST_BUCKET_NS

# The columns of the page Bench.


@dataclass(frozen=True)
class Column:
    """One product in the header."""

    product: Product
    kind: str
    name: str
    short: str
    colour: int
    address: str  # of its own page, "" without one
    is_baseline: bool
    as_baseline: str  # queries of the page
    removed: str
    missing: int  # workloads that it lacks
    why_no_plan: str  # "" if a plan can measure what the product lacks
    results: int
    is_cut: bool  # it has more results


def columns_of(data: QueryDict, comparison: SideBySide) -> list[Column]:
    usable, short = list(usable_targets()), short_names([*comparison.matched.names.values()])
    return [
        Column(
            product=product,
            kind=comparison.kind_of(product),
            name=comparison.matched.names[product],
            short=short[comparison.matched.names[product]],
            colour=comparison.colours[product],
            address=product_address(product),
            is_baseline=product == comparison.matched.baseline,
            as_baseline=with_value(data, baseline=str(product)),
            removed=without(data, product),
            missing=len(comparison.missing[product]),
            why_no_plan=why_no_plan(product, comparison.read.rows[product], usable),
            results=len(comparison.read.rows[product]),
            is_cut=product in comparison.read.cut,
        )
        for product in comparison.products
    ]


def lacking_of(
    comparison: SideBySide, answer: BenchAnswer, columns: Sequence[Column]
) -> dict[tuple[int, str], Lacking]:
    """What stands beside a missing number, by the place of its row and the product."""
    no_plan = {str(column.product): column.why_no_plan for column in columns}
    missing = {
        str(product): {workload.key: workload for workload in workloads}
        for product, workloads in comparison.missing.items()
    }
    return {
        (place, lack.product): _lacking(lack, row.key, missing[lack.product].get(row.key), no_plan[lack.product])
        for place, row in enumerate(answer.rows)
        for lack in row.missing
    }


def _lacking(missing: BenchMissing, key: str, workload: Workload | None, no_plan: str) -> Lacking:
    if missing.why is Missing.NO_VALUE:
        return Lacking("", "Its results of this workload do not have this value.")
    if workload is None:
        return Lacking("", "It has no results at this host and controller, or of this drive.")
    why = no_plan or why_not_alone(workload)
    return Lacking("" if why else f"{key} {missing.product}", why)


_IOPS = METRICS["iops"].label
_SCALES = {
    "iops": ((1e6, f"M{_IOPS}"), (1e4, f"k{_IOPS}"), (0.0, _IOPS)),
    "bytes_per_s": ((1e6, "MB/s"), (1e3, "kB/s"), (0.0, "B/s")),
    "latency": ((1e7, "ms"), (1e4, "µs"), (0.0, "ns")),
}
_FACTORS = {f"M{_IOPS}": 1e6, f"k{_IOPS}": 1e3, "MB/s": 1e6, "kB/s": 1e3, "ms": 1e6, "µs": 1e3}


# Rows of bars: one workload, one cell for each product. All numbers of a row have one unit, and in a table of headlines
# all rows of one metric.


@dataclass(frozen=True)
class Bar:
    """In percent of the row's largest value, as texts: the page has hundreds of them."""

    width: str
    interval: str  # path of the error bar, "" without an interval


@dataclass(frozen=True)
class ShownCell:
    value: str
    interval: str  # "" without repeats
    n: int
    runs: int
    ratio: str  # "" for the baseline, and without one
    ratio_interval: str
    mark: str  # better | worse | muted
    why: str  # why the ratio is neither better nor worse
    doubts: tuple[str, ...]
    pooled: str
    unstated: int  # factors that an import does not state
    assumed: str  # the queue depth and jobs among them
    reference: bool
    colour: int
    bar: Bar
    part: str = ""  # the drive or layout of an import with several


class Absent(NamedTuple):
    """In place of a value. Not a dataclass, so that a stored answer tells it from a cell."""

    words: str
    why: str = ""  # "" if a plan can measure it
    plan: str = ""  # the workload and the product, for the button Plan; "" without one
    product: str = ""  # its name


@dataclass(frozen=True)
class ShownRow:
    title: str
    words: str  # the workload
    name: str  # pattern and workload
    unit: str
    lower_is_better: bool
    cells: tuple[ShownCell | Absent, ...]


NOWHERE: Mapping[Product, str] = MappingProxyType({})


def unit_of(metric: Metric, values: Sequence[float]) -> tuple[float, str]:
    """The factor and the name of the unit in which all values of a row are shown."""
    most = max(values, default=0.0)
    unit = next((unit for least, unit in _SCALES.get(metric.shown_as, ()) if most >= least), metric.unit)
    return _FACTORS.get(unit, 1.0), unit


def value_text(value: float, factor: float, metric: Metric) -> str:
    """fio's last bucket holds everything above 17 s."""
    beyond = metric.shown_as == "latency" and round(value) == LAST_BUCKET_NS
    return BEYOND if beyond else significant(value / factor)


def shown_headlines(comparison: SideBySide) -> tuple[ShownRow, ...]:
    return tuple(
        shown_row(comparison, row, comparison.matched.texts[row.workload.key], beside=comparison.headlines)
        for row in comparison.headlines
    )


def shown_row(
    comparison: SideBySide,
    row: Row,
    words: str,
    no_plan: Mapping[Product, str] = NOWHERE,
    beside: Sequence[Row] = (),
) -> ShownRow:
    """`no_plan`: why no plan can measure what a product lacks, "" if one can; without it no plan is offered. `beside`:
    rows of the same table."""
    cells = [shown.cell for shown in row.cells if shown]
    alike = [row, *(each for each in beside if each.panel.metric == row.panel.metric)]
    factor, unit = unit_of(
        row.panel.metric, [shown.cell.summary.mean for each in alike for shown in each.cells if shown]
    )
    most = max((cell.summary.high or cell.summary.mean for cell in cells), default=0.0)
    return ShownRow(
        title=row.title,
        words=words,
        name=f"{row.panel.name} {words}",
        unit=unit,
        lower_is_better=row.panel.metric.lower_is_better,
        cells=tuple(
            _cell(shown, row.panel.metric, factor, most, comparison.colours[product])
            if shown
            else Absent(mixed.text)
            if mixed
            else _absent(comparison, product, row, no_plan)
            for product, shown, mixed in zip(comparison.products, row.cells, row.mixed, strict=True)
        ),
    )


def _absent(comparison: SideBySide, product: Product, row: Row, no_plan: Mapping[Product, str]) -> Absent:
    if comparison.matched.why_missing(product, row.workload) is Missing.NO_VALUE:
        return Absent(Missing.NO_VALUE, "Its results of this workload do not have this value.")
    if row.workload not in comparison.missing[product]:
        return Absent("nothing alike", "It has no results at this host and controller, or of this drive.")
    words = in_place_of_values(comparison)[product]
    why = no_plan.get(product, "") or why_not_alone(row.workload)
    plan = f"{row.workload.key} {product}" if product in no_plan and not why else ""
    return Absent(words, why, plan, comparison.matched.names[product])


def in_place_of_values(comparison: SideBySide) -> dict[Product, str]:
    """Words where a product has no result: of a cut one, results that were not read may have a value."""
    read = comparison.read
    return {
        product: f"not in the {len(rows):,} results read" if product in read.cut else Missing.NOT_MEASURED
        for product, rows in read.rows.items()
    }


def _cell(shown: Shown, metric: Metric, factor: float, most: float, colour: int) -> ShownCell:
    summary, against = shown.cell.summary, shown.cell.against_baseline
    known = summary.low is not None and summary.high is not None
    return ShownCell(
        value=value_text(summary.mean, factor, metric),
        interval=f"{significant((summary.low or 0) / factor)} to {significant((summary.high or 0) / factor)}"
        if known
        else "",
        n=summary.n,
        runs=shown.runs,
        ratio=against.text if against else "",
        ratio_interval=against.interval_text if against else "",
        mark=_mark(shown.cell),
        why=unclear(against) if against and against.better is None else "",
        doubts=shown.doubts,
        pooled=shown.pooled,
        part=shown.part,
        unstated=len(shown.unstated),
        assumed=shown.assumed,
        reference=shown.reference,
        colour=colour,
        bar=_bar(shown.cell, most),
    )


def _mark(cell: Cell) -> str:
    against = cell.against_baseline
    return "muted" if against is None or against.better is None else "better" if against.better else "worse"


def _bar(cell: Cell, most: float) -> Bar:
    summary, scale = cell.summary, 100 / most if most > 0 else 0.0
    if summary.low is None or summary.high is None:
        return Bar(f"{scale * summary.mean:.1f}", "")
    low, high = f"{scale * summary.low:.1f}", f"{scale * summary.high:.1f}"
    return Bar(f"{scale * summary.mean:.1f}", f"M{low} 4H{high}M{low} 1V7M{high} 1V7")
