"""A saved comparison of products: what its report shows, computed from its query or as it was frozen."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import parse_qsl

import msgspec

from webapp.analysis.models import SavedComparison
from webapp.analysis.services import frozen, unfrozen
from webapp.bench.per_price import PerPrice
from webapp.bench.saved import asked_by
from webapp.bench.side_by_side import Row, SideBySide, side_by_side
from webapp.bench.specifications import Specification
from webapp.bench.workloads import CHOICES, factor_words
from webapp.screens.bench.ceilings import shown_bounds
from webapp.screens.bench.charts import ChartTable, curve_chart, curve_table, ladder_chart, ladder_table
from webapp.screens.bench.payloads import BenchCharts
from webapp.screens.bench.rows import Column, ShownCell, absent_words, shown_row
from webapp.screens.bench.words import notes, shared_words, warnings
from webapp.screens.ceilings import drawn

ROWS_SHOWN = 12  # of each group, unless the query asks for all


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    pass


class ReportColumn(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    colour: int
    is_baseline: bool
    results: int
    is_cut: bool


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
    headlines: tuple[ReportRow, ...]
    per_price: tuple[PerPrice, ...]
    findings: tuple[tuple[str, str], ...]  # panel, sentence
    groups: tuple[ReportGroup, ...]
    curves: tuple[ChartTable, ...]
    ladder: ChartTable | None
    slow: tuple[str, ...]  # products with a mean above the p99
    ignored: tuple[str, ...]  # factors whose levels are pooled
    metric: str
    charts: BenchCharts  # of the curves and the ladder

    @property
    def results(self) -> int:
        return sum(column.results for column in self.columns)


def report_to(saved: SavedComparison) -> BenchReport:
    """The frozen numbers, or the current ones. Raises Refusal."""
    return report_of(saved.query) if saved.frozen is None else unfrozen(saved.frozen, BenchReport)


def frozen_report(query: str) -> bytes | None:
    """None without results. Raises Refusal."""
    report = report_of(query)
    return frozen(report) if report.results else None


def report_of(query: str) -> BenchReport:
    """The current numbers. Raises BenchRefused."""
    given = dict(parse_qsl(query))
    found = side_by_side(replace(asked_by(query), most_rows=None if given.get("all") else ROWS_SHOWN))
    names, colours = found.matched.names, found.colours
    lines = drawn(shown_bounds(found)) if given.get("ceilings") == "on" else ()
    charts = [curve_chart(curve, names, colours, lines) for curve in found.curves]
    charts += [ladder_chart(found.ladder, names, colours)] if found.ladder else []
    return BenchReport(
        columns=tuple(_columns(found)),
        shared=shared_words(found),
        header=tuple(one for one in found.header if not one.repeats(names.values())),
        differing=found.differing,
        warnings=tuple(warnings(found)),
        notes=tuple(notes(found)),
        headlines=tuple(_row(found, row, found.matched.texts[row.workload.key]) for row in found.headlines),
        per_price=found.per_price,
        findings=tuple((one.panel.name, one.sentence) for one in found.findings),
        groups=tuple(_groups(found)),
        curves=tuple(curve_table(curve, names) for curve in found.curves),
        ladder=ladder_table(found.ladder) if found.ladder else None,
        slow=tuple(names[product] for product in found.ladder.slow) if found.ladder else (),
        ignored=tuple(factor_words(name) for name in sorted(found.asked.ignored)),
        metric=CHOICES[found.asked.choice],
        charts=BenchCharts(charts=tuple(charts)),
    )


def _columns(found: SideBySide) -> Sequence[ReportColumn]:
    return [
        ReportColumn(
            name=found.matched.names[product],
            kind=found.kind_of(product),
            colour=found.colours[product],
            is_baseline=product == found.asked.baseline,
            results=len(rows),
            is_cut=product in found.read.cut,
        )
        for product, rows in found.read.rows.items()
    ]


def _groups(found: SideBySide) -> Sequence[ReportGroup]:
    return [
        ReportGroup(
            name=group.panel.name,
            lower_is_better=group.panel.metric.lower_is_better,
            rows=tuple(_row(found, row, row.title) for row in group.rows),
            more=group.shared - len(group.rows),
        )
        for group in found.groups
        if group.rows
    ]


def _row(found: SideBySide, row: Row, words: str) -> ReportRow:
    measured = found.matched.placed
    absent = [
        "no value" if (product, row.workload.key) in measured else absent_words(found.read, product)
        for product in found.products
    ]
    shown = shown_row(row, words, list(found.colours.values()), absent)
    cells = tuple(cell for cell in shown.cells if not isinstance(cell, Column))
    return ReportRow(
        title=row.title, words=words, unit=shown.unit, cells=cells, lower_is_better=shown.lower_is_better
    )  # fmt: skip
