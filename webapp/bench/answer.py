"""The answer of Bench as structs: what its page, its frozen report, the API and files show; and its rows as a table."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec

from webapp.analysis.question import MARGIN
from webapp.bench.forest import RatioState, Whisker
from webapp.core.formatting import ShownAs
from webapp.core.table_files import Column, Kind, Table
from webapp.results.metrics import Missing

# Values are in the metric's stored unit: 1/s, B/s, ns. What was added after reports were frozen has a default.


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
    short: str = ""  # the name, with its middle left out if it is long
    kind: str = ""  # drive model, reference …
    colour: int = 0  # its number
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
    text: str = ""  # the mean with its unit
    spread: str = ""  # its interval; "" without one
    ratio_text: str = ""  # ×2.60 or −38 %, one form on the page
    ratio_spread: str = ""  # ×2.41 to ×2.80
    state: RatioState | None = None  # what may be said of the ratio
    why: str = ""  # it is unclear
    whisker: Whisker | None = None  # what `whisker_low` to `whisker_high` is
    whisker_low: float | None = None
    whisker_high: float | None = None


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
    words: str = ""  # on pages; of a product that was not read whole, results that were not read may have a value


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
    key: str = ""  # of the workload
    name: str = ""  # with its pattern
    labels: tuple[str, ...] = ()  # its levels of `BenchAnswer.label_columns`
    shown_as: ShownAs = "number"
    lower_is_better: bool = False


class ForestGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The workloads of one pattern on the plot. Numbers are places in `BenchAnswer.rows`."""

    name: str  # Random read
    words: str  # what they have in common, and other groups have not: 4 KiB
    metric: str
    rows: tuple[int, ...]
    shared: tuple[int, ...]  # also those that are not on the plot
    series: tuple[int, ...]  # of the first sentence
    axis: str  # the factor along which it is said; "" for one workload
    others: tuple[tuple[int, ...], ...] = ()  # series at other levels; with `series` they have all of `shared`


class RatioGrid(msgspec.Struct, frozen=True, kw_only=True):
    """All shared workloads of one pattern by two factors. Numbers are places in `BenchAnswer.rows`."""

    name: str
    across: str  # labels of the factors
    down: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]


LONG = 130  # characters of a verdict


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    lead: str  # the answer
    rest: str  # its second half
    line: tuple[str, ...]  # sentences below it
    pills: tuple[str, ...]  # what weakens it: measured once, hosts differ
    repeats: str  # 4 repeats; "" if it is a pill

    @property
    def is_long(self) -> bool:
        """Too long for the largest type."""
        return len(self.lead) + len(self.rest) > LONG


class LoadPoint(msgspec.Struct, frozen=True, kw_only=True):
    level: str  # queue depth, jobs or block size
    x: float
    y: float
    x_text: str
    y_text: str
    n: int


class LoadSeries(msgspec.Struct, frozen=True, kw_only=True):
    product: str
    points: tuple[LoadPoint, ...]


class LoadBand(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a finding states. `along`: `x` and `y` are values of an axis, `product` is x times y."""

    along: Literal["x", "y", "product"]
    low: float
    high: float
    text: str


class LoadCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Rate across and latency up, a point for each load; without latencies the rate over block size."""

    name: str  # Random read
    words: str
    has_latency: bool
    x_label: str
    y_label: str
    level_label: str
    x_shown_as: ShownAs | None  # None: block sizes
    y_shown_as: ShownAs
    series: tuple[LoadSeries, ...]
    bands: tuple[LoadBand, ...]


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
    verdict: Verdict | None = None
    margin: float = MARGIN  # differences below it count as none
    label_columns: tuple[str, ...] = ()
    forest: tuple[ForestGroup, ...] = ()
    grids: tuple[RatioGrid, ...] = ()
    loads: tuple[LoadCurve, ...] = ()
    same: tuple[str, ...] = ()  # levels and properties that all rows of the plot have


_COLUMNS = (
    Column("Pattern"), Column("Workload"), Column("Metric"), Column("Unit"), Column("Direction"), Column("Product"),
    Column("Name"), Column("Baseline", Kind.SWITCH), Column("n", Kind.INTEGER), Column("Geometric mean", Kind.NUMBER),
    Column("95 % CI low", Kind.NUMBER), Column("95 % CI high", Kind.NUMBER),
    Column("Ratio to the baseline", Kind.NUMBER), Column("Ratio 95 % CI low", Kind.NUMBER),
    Column("Ratio 95 % CI high", Kind.NUMBER), Column("Better", Kind.SWITCH), Column("Mean over"),
    Column("Factors not stated", Kind.INTEGER), Column("Matched with"), Column("Doubts"),
)  # fmt: skip


def bench_table(answer: BenchAnswer) -> Table:
    """A product without a number has a row that says why."""
    names = {product.product: product.name for product in answer.products}
    return Table(_COLUMNS, (line for row in answer.rows for line in _lines(answer.baseline, names, row)))


def _lines(baseline: str, names: Mapping[str, str], row: BenchRow) -> Iterator[Sequence[object]]:
    yield from (_row(baseline, names, row, cell) for cell in row.cells)
    without = [(mixed.product, mixed.choose) for mixed in row.mixed] + [
        (mixed.product, mixed.why) for mixed in row.missing
    ]
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
