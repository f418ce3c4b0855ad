"""Curves of products over queue depth, jobs, block size or a label that is a number, what they show as a whole, and the
latency percentiles of one workload.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from webapp.analysis import answer
from webapp.analysis.answer import Cell, Comparison, Conclusion, Finding, Level, RatioForm, Series
from webapp.analysis.cells import Grouped, measured
from webapp.analysis.equals import BLOCK, DEPTH, JOBS, is_label
from webapp.analysis.findings import findings
from webapp.analysis.findings.curves import Links
from webapp.analysis.question import MARGIN
from webapp.bench.matching import Matched
from webapp.bench.products import Product
from webapp.bench.workloads import P95, P99, Panel, Workload, factor_words, in_words, level_text, naming, number_of
from webapp.core.statistics import Summary, summarise
from webapp.plans.factors import FACTORS
from webapp.plans.load import LOAD
from webapp.plans.values import Value
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.rows import ResultRow
from worker.contract.workload import KIB

# The latency percentiles and the maximum of one workload, as means over the repeats.

STEPS = ("latency_p50", P95, P99, "latency_p999", "latency_max")


@dataclass(frozen=True)
class Ladder:
    """`steps` has a summary for each product; None if there are too few I/Os for a percentile."""

    key: str  # names the workload in addresses
    title: str
    steps: tuple[tuple[Metric, tuple[Summary | None, ...]], ...]
    slow: tuple[Product, ...]  # with a mean above the p99, both as means over the repeats


def mean_above_p99(row: ResultRow) -> bool:
    """Fewer than 1 % of the I/Os took most of the time. Neither p99 nor lower percentiles show them."""
    return row.latency_mean_ns is not None and row.p99_ns is not None and row.latency_mean_ns > row.p99_ns


def _is_slow(rows: Sequence[ResultRow]) -> bool:
    known = [row for row in rows if row.latency_mean_ns is not None and row.p99_ns is not None]
    means, p99s = ([metric.of(row) or 0.0 for row in known] for metric in (METRICS["latency_mean"], METRICS[P99]))
    return sum(means) > sum(p99s)


def ladders(matched: Matched) -> dict[str, str]:
    """Texts of the workloads with latencies, by key: those that at least two products have, otherwise all."""
    return {ladder_key(panel, workload): _title(matched, panel, workload) for panel, workload in _shared(matched)}


def ladder(matched: Matched, key: str, default: str) -> Ladder | None:
    """The percentiles of this workload, otherwise those of the default one."""
    known = {ladder_key(panel, workload): (panel, workload) for panel, workload in _shared(matched)}
    chosen = known.get(key) or known.get(default) or next(iter(known.values()), None)
    if chosen is None:
        return None
    panel, workload = chosen
    rows = {
        product: matched.by_direction.get((product, workload.key, panel.direction), ()) for product in matched.products
    }
    steps = tuple((METRICS[name], tuple(_summaries(METRICS[name], rows))) for name in STEPS)
    slow = tuple(product for product, product_rows in rows.items() if _is_slow(product_rows))
    return Ladder(ladder_key(panel, workload), _title(matched, panel, workload), steps, slow)


def ladder_key(panel: Panel, workload: Workload) -> str:
    return f"{workload.key}.{panel.direction}"


def _title(matched: Matched, panel: Panel, workload: Workload) -> str:
    return f"{panel.name} · {matched.texts[workload.key]}"


def _shared(matched: Matched) -> Iterator[tuple[Panel, Workload]]:
    """Workloads that at least two products have, otherwise all."""
    all_ = [
        (panel, workload) for panel in matched.panels_of(matched.percentile) for workload in matched.in_panel(panel)
    ]
    counts = [len(matched.measured_by(panel, workload.key)) for panel, workload in all_]
    least = min(2, max(counts, default=0))
    yield from (each for each, count in zip(all_, counts, strict=True) if count >= least)


def _summaries(metric: Metric, rows: Mapping[Product, Sequence[ResultRow]]) -> Iterator[Summary | None]:
    for product, product_rows in rows.items():
        valued = [row for row in product_rows if metric.of(row) is not None]
        key = ("", str(product), "")
        cells = measured(Grouped({key: valued}, (), (), ()), metric) if valued else {}
        yield summarise(list(cells[key].values.values()), cells[key].step) if cells else None


# Curves over queue depth, jobs, block size, shares of the load, and labels of imports that are numbers with a unit,
# such as a fill level: workloads that differ in this factor alone.

AXES = (DEPTH, BLOCK, JOBS, LOAD)
MIN_LEVELS = 3  # two points are in the bars already
_USUAL_BLOCK = 4 * KIB


@dataclass(frozen=True)
class Curve:
    """One chart. `points` has the cells of each product by level."""

    panel: Panel
    factor: str
    words: str  # what all its workloads have in common
    levels: tuple[Value, ...]
    keys: tuple[str, ...]  # of the workloads at these levels
    points: Mapping[Product, Mapping[Value, Cell]]
    is_shown: bool = False  # the others differ from a shown one in the levels of the rest

    @property
    def label(self) -> str:
        return factor_words(self.factor)

    @property
    def is_shared(self) -> bool:
        """Whether at least two products are on it."""
        return len(self.points) > 1

    @property
    def texts(self) -> list[str]:
        return [level_text(self.factor, level) for level in self.levels]

    @property
    def numbers(self) -> list[float | None]:
        """Places on an axis of numbers. Labels have none: an axis may be logarithmic, and shares are not."""
        if is_label(self.factor):
            return [None] * len(self.levels)
        return [number[0] if (number := _number(self.factor, level)) else None for level in self.levels]


def curves(matched: Matched, choice: str) -> Iterator[Curve]:
    """All. Of each panel and factor, the one with the most cells is shown; if several have as many, that of 4 KiB, then
    the one of the lowest concurrency: curves of high concurrency are often flat."""
    panels = [(panel, naming(matched.in_panel(panel))) for panel in matched.panels_of(choice)]
    labels = sorted({name for workload in matched.workloads.values() for name in workload.point if is_label(name)})
    for factor in (*AXES, *labels):
        for panel, names in panels:
            rest = [name for name in names if name != factor]
            alike = list(_alike(matched, panel, factor))
            long = [workloads for workloads in alike if len(workloads) >= MIN_LEVELS]
            with_one = [name for name in rest if len({workloads[0].point.get(name) for workloads in long}) > 1]
            fullest = max(alike, key=lambda workloads: _fullness(matched, panel, workloads), default=[])
            for workloads in long:
                curve = _curve(matched, panel, factor, in_words(workloads[0], rest, with_one=with_one), workloads)
                if curve.points:
                    yield replace(curve, is_shown=workloads is fullest)


def _fullness(matched: Matched, panel: Panel, alike: Sequence[Workload]) -> tuple[int, int, bool]:
    """The number of products with at least two levels, the number of cells, and whether the block size is the usual
    one."""
    counts = Counter(product for workload in alike for product in matched.measured_by(panel, workload.key))
    several = sum(count > 1 for count in counts.values())
    return several, counts.total(), alike[0].point.get(BLOCK) == _USUAL_BLOCK


def _alike(matched: Matched, panel: Panel, factor: str) -> Iterable[list[Workload]]:
    """Groups of workloads that differ in this factor only, in the order of block size and concurrency."""
    groups: dict[tuple[frozenset[tuple[str, Value]], str], list[Workload]] = {}
    for workload in matched.in_panel(panel):
        if number := _number(factor, workload.point.get(factor)):
            rest = frozenset(workload.point.items()) - {(factor, workload.point[factor])}
            groups.setdefault((rest, number[1]), []).append(workload)
    return groups.values()


def _number(factor: str, level: Value) -> tuple[float, str] | None:
    """With its unit; None if the level has no place on an axis."""
    if not is_label(factor):
        return (float(level), "") if FACTORS[factor].numeric and isinstance(level, int | float) else None
    return number_of(level)


def _curve(matched: Matched, panel: Panel, factor: str, words: str, alike: Sequence[Workload]) -> Curve:
    ordered = sorted(alike, key=lambda workload: _number(factor, workload.point[factor]) or (0.0, ""))
    points: dict[Product, dict[Value, Cell]] = {}
    for workload in ordered:
        for product in matched.products:
            if cell := matched.cell(panel, product, workload.key):
                points.setdefault(product, {})[workload.point[factor]] = cell
    levels, keys = tuple(workload.point[factor] for workload in ordered), tuple(workload.key for workload in ordered)
    return Curve(panel, factor, words, levels, keys, points)


def seen_in(curve: Curve, matched: Matched, links: Links) -> tuple[Finding, ...]:
    """What the curve shows as a whole: where products level off, stop at one limit, or change places. `links`: the
    known ceilings of each product."""
    names = matched.names
    sizes = frozenset[object](matched.workloads[key].point.get(BLOCK) for key in curve.keys)
    places = {level: place for place, level in enumerate(curve.levels)}
    series = tuple(
        Series(
            key=str(product), name=names[product], is_baseline=False,
            cells=tuple(structs.replace(cell, level=places[level]) for level, cell in cells.items() if not cell.doubts),
            sentence="", conclusion=Conclusion.NONE, headline="",
            against_baseline=None, points=0, order="",
        )
        for product, cells in curve.points.items()
    )  # fmt: skip
    metric, panel = curve.panel.metric, answer.Panel(key="", name=curve.words, scaling=(), series=series)
    levels = tuple(map(Level, map(str, curve.levels), curve.texts, curve.numbers))
    return findings(
        Comparison(
            metric=metric.key, metric_label=metric.label, shown_as=metric.shown_as, unit=metric.unit,
            lower_is_better=metric.lower_is_better, x=curve.factor, x_label=curve.label, x_numeric=True,
            series_by=("product",), series_label="", panel_label="", levels=levels, panels=(panel,), baseline="",
            ratio_as=RatioForm.RATIO, margin=MARGIN, verdict="", single_factor=True, differs=(), warnings=(), notes=(),
            results=0,
        ),
        metric, block_sizes={curve.words: sizes}, links=links,
    )  # fmt: skip
