"""A saved comparison of products: what its report shows, computed from its query or as it was frozen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from urllib.parse import parse_qsl

import msgspec
from django.http import QueryDict

from webapp.analysis.cells import PERCENTILES
from webapp.analysis.models import SavedComparison
from webapp.analysis.services import frozen, unfrozen
from webapp.analysis.words import in_sentence
from webapp.bench.answer import BenchAnswer
from webapp.bench.assembly import answer
from webapp.bench.per_price import PerPrice
from webapp.bench.products import Product
from webapp.bench.reading import BY_TARGETS, scopes_of_products
from webapp.bench.saved import selection_of
from webapp.bench.side_by_side import Selection, SideBySide, side_by_side
from webapp.bench.specifications import Specification
from webapp.bench.workloads import CHOICES, RATE, chart_words, factor_words
from webapp.core.answers import Question, answered
from webapp.hosts.inventory.ceilings import Bound
from webapp.results.reading.doubts import unfinished_sentences
from webapp.results.reading.newest import newest_words
from webapp.results.reading.rows import ResultRow
from webapp.screens.bench.address import with_value
from webapp.screens.bench.charts import BenchCharts, ChartTable, curve_chart, curve_table, ladder_chart, ladder_table
from webapp.screens.bench.rows import ShownCell, in_place_of_values
from webapp.screens.bench.sections import sections
from webapp.screens.ceilings import drawn, in_words
from worker.contract.packing import LAST_BUCKET_NS
from worker.contract.workload import Pattern

# Sentences about the numbers of Bench.

USUAL = (Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.READ, Pattern.WRITE)


def shared_words(comparison: SideBySide) -> str:
    """`8 of 98 workloads measured by all 3 products, 60 by at least two`"""
    products, of = (
        len(comparison.products),
        f"of {comparison.workloads:,} workload{'' if comparison.workloads == 1 else 's'}",
    )
    if products < 2:
        return "Only one product"
    if products == 2:
        return f"{comparison.shared:,} {of} shared"
    return f"{comparison.by_all:,} {of} measured by all {products} products, {comparison.shared:,} by at least two"


def warnings(comparison: SideBySide) -> Iterator[str]:
    """Beside the headline numbers."""
    names = comparison.matched.names
    if comparison.confounded and (comparison.matched.compared or not comparison.advice):  # else nothing is compared
        yield comparison.confounded
    if comparison.latency_kinds:
        yield comparison.latency_kinds
    if others := comparison.matched.other_levels:
        yield (
            f"Some values are means over several levels ({', '.join(map(factor_words, others))}), and not over the "
            "same levels as the value of the baseline. They are not compared."
        )
    if comparison.matched.overlapping:
        same = ", ".join(name for product, name in names.items() if str(product) in comparison.matched.overlapping)
        yield (
            f"No ratio to the baseline {names[comparison.matched.baseline]} where {same} has the same results: they "
            "would be compared with themselves."
        )


def notes(comparison: SideBySide) -> Iterator[str]:
    names = comparison.matched.names
    for product in comparison.empty:
        yield f"{names[product]} has no valid results."
    for product in comparison.read.cut:
        first, most = "the newest ones", "this number"
        if product.kind in BY_TARGETS:
            first, most = "the newest run of each plan, then older runs", f"{comparison.read.cells:,} test points"
        yield (
            f"{names[product]} has more than {comparison.read.limit:,} results. The page reads {first}, up to {most}. "
            "Choose single runs to compare others."
        )
    if comparison.read.has_more:
        yield newest_words()
    yield from unfinished_sentences(row for rows in comparison.read.rows.values() for row in rows)
    for product in comparison.references:
        yield f"{names[product]} is a published table: a ratio to it is not evidence of a difference."
    if comparison.single:
        yield (
            f"{comparison.single} of {len(comparison.shown_values)} values were measured once. They have no "
            "interval: how much they vary from run to run is unknown, so no difference from them is called certain."
        )
    cells = [cell for group in comparison.groups for row in group.rows for cell in row.cells if cell]
    pooled = sum(bool(cell.pooled) for cell in cells)
    if pooled:
        yield f"{pooled} values on this page are means over several targets, kernels or settings; their cells say so."
    if any(cell.assumed for cell in cells):
        yield (
            "Some imports state no queue depth or number of jobs. Their values are shown with the one workload that "
            "fits, or with queue depth 1 and one job. The cells name this workload."
        )
    if _is_beyond_histogram(comparison):
        yield "A percentile above 17 s counts as 17 s, because the histogram ends there."
    for product, unstated in comparison.unstated.items():
        yield (
            f"Some results of {names[product]} do not state these factors, so they may differ from the workload of "
            f"their row: {', '.join(unstated)}."
        )
    if comparison.completion_latency:
        yield "Latencies are completion latencies: they leave out the time of the submission."
    if without := [chart_words(pattern) for pattern in USUAL if pattern not in comparison.patterns]:
        yield f"No product has results of these patterns: {', '.join(without).lower()}."
    if comparison.matched.comparisons and comparison.single < len(comparison.shown_values):
        counts = " and ".join(
            f"{count} of {in_sentence(CHOICES[choice]) if choice != RATE else 'rates'}"
            for choice, count in comparison.matched.comparisons.items()
        )
        yield (
            f"Conclusions and colours are corrected for the number of comparisons: {counts} (Holm's method: at most "
            "5 % for any false claim about rates, and about each latency). Intervals are not corrected."
        )


def _is_beyond_histogram(comparison: SideBySide) -> bool:
    """Whether some latencies are only lower bounds."""
    percentiles = {panel.key for panel in comparison.matched.panels if panel.metric.column in PERCENTILES}
    measured = (cell for (panel, *_), cell in comparison.matched.measured.items() if panel in percentiles)
    return any(LAST_BUCKET_NS in cell.values.values() for cell in measured)


# The limits of the targets that products were measured at, for curves of bandwidth.


@dataclass(frozen=True)
class Ceilings:
    offered: bool
    shown: bool
    other: str  # the query of the page with the other choice
    bounds: tuple[Bound, ...]

    @property
    def in_words(self) -> list[str]:
        return in_words(self.bounds)


def ceilings_of(data: QueryDict, comparison: SideBySide) -> Ceilings:
    offered = any(curve.panel.metric.key == "bytes_per_s" for curve in comparison.curves)
    shown = offered and data.get("ceilings") == "on"
    other = with_value(data, ceilings="" if shown else "on")
    return Ceilings(offered, shown, other, comparison.known_ceilings.bounds if shown else ())


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    pass


class ReportColumn(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    colour: int
    is_baseline: bool
    results: int
    is_cut: bool
    # Not in numbers that were frozen earlier.
    runs: tuple[int, ...] = ()  # numbers
    imports: tuple[str, ...] = ()  # titles
    first_day: date | None = None  # in UTC; None if nothing states when it was measured
    last_day: date | None = None
    repeats: tuple[int, int] | None = None  # the fewest and the most of a shown value; None without values


class ReportRow(Struct, frozen=True, kw_only=True):
    title: str
    words: str
    unit: str
    cells: tuple[ShownCell | str, ...]  # a text in place of a value
    lower_is_better: bool = False


class ReportGroup(Struct, frozen=True, kw_only=True):
    name: str
    lower_is_better: bool
    rows: tuple[ReportRow, ...]
    more: int  # rows that are not shown


class BenchReport(Struct, frozen=True, kw_only=True):
    """Everything that the page of the report shows, so that frozen numbers need nothing else."""

    columns: tuple[ReportColumn, ...]
    shared: str
    header: tuple[Specification, ...]
    differing: tuple[Specification, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    per_price: tuple[PerPrice, ...]
    findings: tuple[tuple[str, str], ...]  # panel, sentence
    curves: tuple[ChartTable, ...]
    ladder: ChartTable | None
    slow: tuple[str, ...]  # products with a mean above the p99
    ignored: tuple[str, ...]  # factors whose levels are pooled
    metric: str
    charts: BenchCharts  # of the curves and the ladder
    answer: BenchAnswer | None = None  # None in numbers that were frozen before reports had it
    headlines: tuple[ReportRow, ...] = ()  # only in those
    groups: tuple[ReportGroup, ...] = ()
    advice: tuple[str, ...] = ()  # why products have no ratio to the baseline
    held: tuple[str, ...] = ()  # factors with the only level whose results are read

    @property
    def results(self) -> int:
        return sum(column.results for column in self.columns)


def report_to(saved: SavedComparison) -> BenchReport:
    """The frozen numbers, or the current ones. Raises Refusal."""
    return report_of(saved.query) if saved.frozen is None else unfrozen(saved.frozen, BenchReport)


def report_context(saved: SavedComparison) -> dict[str, object]:
    """For the page of the report. Raises Refusal."""
    report = report_to(saved)
    made = sections(report.answer) if report.answer else None
    return {"report": report, "sections": made, "caveats": [*report.warnings, *report.notes]}


def frozen_report(query: str) -> bytes | None:
    """None without results. Raises Refusal."""
    report = report_of(query)
    return frozen(report) if report.results else None


def report_of(query: str) -> BenchReport:
    """The current numbers, stored until what they depend on changes. Raises BenchRefused."""
    selection = selection_of(query)
    return answered(
        Question((query,), scopes_of_products(selection.products), BenchReport, lambda: _report(query, selection))
    )


def _report(query: str, selection: Selection) -> BenchReport:
    given = dict(parse_qsl(query))
    comparison = side_by_side(selection)
    names, colours = comparison.matched.names, comparison.colours
    lines = drawn(comparison.known_ceilings.bounds) if given.get("ceilings") == "on" else ()
    charts = [curve_chart(curve, names, colours, lines) for curve in comparison.curves]
    charts += [ladder_chart(comparison.ladder, names, colours)] if comparison.ladder else []
    return BenchReport(
        columns=tuple(_column(comparison, product, rows) for product, rows in comparison.read.rows.items()),
        shared=shared_words(comparison),
        header=tuple(specification for specification in comparison.header if not specification.repeats(names.values())),
        differing=comparison.differing,
        warnings=tuple(warnings(comparison)),
        notes=tuple(notes(comparison)),
        per_price=comparison.per_price,
        findings=tuple((finding.panel.name, finding.sentence) for finding in comparison.findings),
        curves=tuple(curve_table(curve, names, in_place_of_values(comparison)) for curve in comparison.curves),
        ladder=ladder_table(comparison.ladder) if comparison.ladder else None,
        slow=tuple(names[product] for product in comparison.ladder.slow) if comparison.ladder else (),
        ignored=tuple(factor_words(name) for name in sorted(comparison.selection.ignored)),
        metric=CHOICES[comparison.selection.choice],
        answer=answer(comparison),
        charts=BenchCharts(charts=tuple(charts)),
        advice=tuple(advice.why for advice in comparison.advice),
        held=tuple(f"{factor_words(name)} {level}" for name, level in comparison.selection.held),
    )


def _column(compared: SideBySide, product: Product, rows: Sequence[ResultRow]) -> ReportColumn:
    days = sorted({at.astimezone(UTC).date() for row in rows if (at := row.stated_at)})
    place = compared.products.index(product)
    shown = [cell for group in compared.groups for row in group.rows if (cell := row.cells[place])]
    repeats = [cell.cell.summary.n for cell in shown]
    return ReportColumn(
        name=compared.matched.names[product],
        kind=compared.kind_of(product),
        colour=compared.colours[product],
        is_baseline=product == compared.matched.baseline,
        results=len(rows),
        is_cut=product in compared.read.cut,
        runs=tuple(sorted({row.run for row in rows if row.run})),
        imports=tuple(sorted({row.import_title for row in rows if row.imported})),
        first_day=days[0] if days else None,
        last_day=days[-1] if days else None,
        repeats=(min(repeats), max(repeats)) if repeats else None,
    )
