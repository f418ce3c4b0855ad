"""Puts the answer of Bench together: each part is computed once, here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import structs

from webapp.analysis.equals import PATTERN
from webapp.analysis.findings.curves import Noise
from webapp.analysis.same_for_all import same_for_all
from webapp.analysis.words import unclear
from webapp.bench.answer import (
    BenchAdvice,
    BenchAnswer,
    BenchCell,
    BenchMissing,
    BenchMixed,
    BenchPrice,
    BenchProduct,
    BenchRow,
    ForestGroup,
    RatioGrid,
)
from webapp.bench.forest import (
    MOST,
    chosen,
    grid,
    judgement,
    main_series,
    noises,
    varying_factors,
)
from webapp.bench.load import load_curves
from webapp.bench.products import Product
from webapp.bench.reading import scopes_of_products
from webapp.bench.saved import query_of
from webapp.bench.side_by_side import Group, Row, Selection, Shown, SideBySide, side_by_side
from webapp.bench.verdict import verdict
from webapp.bench.workloads import MAIN, Workload, factor_words, in_words, level_text
from webapp.core.answers import Question, answered
from webapp.results.metrics import Missing

MOST_LABELS = 3  # columns of levels
FEW_GROUPS, FEWER_ROWS = 2, 4  # the groups after the first ones have fewer rows on the plot
FEW_PRODUCTS, SHORT_OF_FEW, SHORT_OF_MANY = 3, (17, 14), (9, 9)  # characters of a name before and after its middle


def bench_answer(selection: Selection) -> BenchAnswer:
    """Stored until what it depends on changes."""
    texts, scopes = (query_of(selection), selection.ladder), scopes_of_products(selection.products)
    return answered(Question(texts, scopes, BenchAnswer, lambda: answer(side_by_side(selection))))


def answer(comparison: SideBySide) -> BenchAnswer:
    """What the page, its reports, the API and files show."""
    parts = _Parts(comparison)
    matched = comparison.matched
    made = BenchAnswer(
        baseline=str(matched.baseline),
        products=tuple(_product(comparison, product) for product in comparison.products),
        workloads=comparison.workloads,
        shared=comparison.shared,
        by_all=comparison.by_all,
        confounded=comparison.confounded,
        latency_kinds=comparison.latency_kinds,
        headlines=tuple(parts.row(row, row.title, ()) for row in comparison.headlines),
        rows=parts.rows,
        conclusions=tuple(f"{finding.panel.name}: {finding.sentence}" for finding in comparison.findings),
        advice=tuple(
            BenchAdvice(why=advice.why, compare=advice.words, query=query_of(advice.nearest) if advice.nearest else "")
            for advice in comparison.advice
        ),
        label_columns=tuple(map(factor_words, parts.label_factors)),
        forest=tuple(parts.forest),
        grids=tuple(parts.grids),
        loads=tuple(load_curves(comparison)),
        same=tuple(parts.same),
    )
    return structs.replace(made, verdict=verdict(comparison, made))


@dataclass(frozen=True)
class _Parts:
    """Rows, and where they stand."""

    comparison: SideBySide

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Those with a shared workload."""
        return tuple(group for group in self.comparison.groups if group.rows)

    @cached_property
    def places(self) -> dict[tuple[str, str], int]:
        """The place of each row, by panel and workload."""
        keys = ((row.panel.key, row.workload.key) for group in self.groups for row in group.rows)
        return {key: place for place, key in enumerate(keys)}

    @cached_property
    def chosen(self) -> tuple[list[Workload], ...]:
        """The workloads of each group that are on the plot."""
        most = [MOST if place < FEW_GROUPS else FEWER_ROWS for place in range(len(self.groups))]
        return tuple(
            chosen([row.workload for row in group.rows], room) for group, room in zip(self.groups, most, strict=True)
        )

    @cached_property
    def label_factors(self) -> tuple[str, ...]:
        """They vary inside a group."""
        names = dict.fromkeys(
            name for group in self.groups for name in varying_factors([row.workload for row in group.rows])
        )
        main = [name for name in MAIN if name in names]
        return (*main, *(name for name in names if name not in MAIN))[:MOST_LABELS]

    @cached_property
    def noises(self) -> Mapping[tuple[str, Product], Noise]:
        return noises(self.comparison.all_curves)

    @cached_property
    def rows(self) -> tuple[BenchRow, ...]:
        return tuple(
            self.row(row, row.panel.name, self._labels(row.workload)) for group in self.groups for row in group.rows
        )

    def _labels(self, workload: Workload) -> tuple[str, ...]:
        return tuple(
            level_text(name, workload.point[name]) if name in workload.point else "" for name in self.label_factors
        )

    @property
    def forest(self) -> Iterator[ForestGroup]:
        common = self._common(self.groups)
        for group, workloads in zip(self.groups, self.chosen, strict=True):
            axis, series = main_series(workloads)
            group_common = self._common([group])
            yield ForestGroup(
                name=group.panel.name,
                words=in_words(
                    workloads[0], [name for name in MAIN if name in group_common - common - set(self.label_factors)]
                ),
                metric=group.panel.metric.key,
                rows=self._in_rows(group, workloads),
                shared=self._in_rows(group, [row.workload for row in group.rows]),
                series=self._in_rows(group, series),
                axis=axis,
            )

    def _in_rows(self, group: Group, workloads: Sequence[Workload]) -> tuple[int, ...]:
        return tuple(self.places[group.panel.key, workload.key] for workload in workloads)

    @staticmethod
    def _common(groups: Sequence[Group]) -> frozenset[str]:
        """The factors with one level in all rows."""
        workloads = [row.workload for group in groups for row in group.rows]
        stated = {name for workload in workloads for name in workload.point}
        return frozenset(stated - set(varying_factors(workloads)))

    @property
    def grids(self) -> Iterator[RatioGrid]:
        for group in self.groups:
            made = grid([row.workload for row in group.rows])
            if made:
                yield RatioGrid(
                    name=group.panel.name,
                    across=factor_words(made.across),
                    down=factor_words(made.down),
                    columns=tuple(level_text(made.across, level) for level in made.columns),
                    rows=tuple(
                        (
                            level_text(made.down, level),
                            tuple(
                                self.places[group.panel.key, workload.key] if workload else None
                                for workload in workloads
                            ),
                        )
                        for level, workloads in made.rows
                    ),
                )

    @property
    def same(self) -> Iterator[str]:
        """`4 KiB`, `libaio`, `direct`, `60 s`, `storage1`"""
        workloads = [row.workload for group in self.groups for row in group.rows]
        yield from same_for_all([workload.point for workload in workloads], named=(PATTERN,))
        for fact in self.comparison.header:
            if not fact.differs and all(len(values) == 1 for values in fact.values):
                yield fact.values[0][0] if fact.label in ("Host", "Controller") else f"{fact.label} {fact.values[0][0]}"

    def row(self, row: Row, title: str, labels: tuple[str, ...]) -> BenchRow:
        comparison, matched, panel = self.comparison, self.comparison.matched, row.panel
        return BenchRow(
            title=title,
            workload=matched.texts[row.workload.key],
            metric=panel.metric.key,
            unit=panel.metric.unit,
            direction=panel.direction,
            cells=tuple(
                self._cell(panel.key, product, shown)
                for product, shown in zip(comparison.products, row.cells, strict=True)
                if shown
            ),
            mixed=tuple(
                BenchMixed(product=str(product), choose=mixed.text)
                for product, mixed in zip(comparison.products, row.mixed, strict=True)
                if mixed
            ),
            missing=tuple(
                self._missing(product, row.workload)
                for product, shown, mixed in zip(comparison.products, row.cells, row.mixed, strict=True)
                if not (shown or mixed)
            ),
            key=row.workload.key,
            name=f"{panel.name} {matched.texts[row.workload.key]}",
            labels=labels,
            shown_as=panel.metric.shown_as,
            lower_is_better=panel.metric.lower_is_better,
        )

    def _missing(self, product: Product, workload: Workload) -> BenchMissing:
        comparison, why = self.comparison, self.comparison.matched.why_missing(product, workload)
        words = str(why)
        if why is Missing.NOT_MEASURED and workload not in comparison.missing[product]:
            words = "nothing alike"  # it has no results at this host and controller, or of this drive
        elif why is Missing.NOT_MEASURED and product in comparison.read.cut:
            words = f"not in the {len(comparison.read.rows[product]):,} results read"
        return BenchMissing(product=str(product), why=why, words=words)

    def _cell(self, panel: str, product: Product, shown: Shown) -> BenchCell:
        summary, against = shown.cell.summary, shown.cell.against_baseline
        judged = (
            judgement(
                against, self.noises.get((panel, product)), self.noises.get((panel, self.comparison.matched.baseline))
            )
            if against
            else None
        )
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
            text=shown.cell.text,
            spread="" if summary.low is None else shown.cell.spread_text,
            ratio_text=against.text if against else "",
            ratio_spread=against.interval_text if against else "",
            state=judged.state if judged else None,
            why=unclear(against) if against and against.better is None else "",
            whisker=judged.whisker if judged else None,
            whisker_low=judged.low if judged else None,
            whisker_high=judged.high if judged else None,
        )


def _product(comparison: SideBySide, product: Product) -> BenchProduct:
    price, name = comparison.prices.get(product), comparison.matched.names[product]
    return BenchProduct(
        product=str(product),
        name=name,
        results=len(comparison.read.rows[product]),
        cut=product in comparison.read.cut,
        lacking=len(comparison.missing[product]),
        price=BenchPrice(amount=float(price.amount), currency=price.currency, priced_on=price.priced_on)
        if price
        else None,
        short=short_names([*comparison.matched.names.values()])[name],
        kind=comparison.kind_of(product),
        colour=comparison.colours[product],
    )


def short_names(names: Sequence[str]) -> dict[str, str]:
    """By the whole name. Without the middle, because names of one family often differ at their end; whole if two would
    become equal."""
    start, end = SHORT_OF_FEW if len(names) <= FEW_PRODUCTS else SHORT_OF_MANY
    short = {
        name: name if len(name) <= start + end + 3 else f"{name[:start].rstrip()} … {name[-end:].lstrip()}"
        for name in names
    }
    return {name: text if [*short.values()].count(text) == 1 else name for name, text in short.items()}
