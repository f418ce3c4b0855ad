"""Puts the answer of Bench together: each part is computed once, here, such as the load curve."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from msgspec import structs

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN, same_for_all
from webapp.analysis.findings.curves import Noise
from webapp.analysis.words import unclear
from webapp.bench.alike import PLACES
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
    LoadBand,
    LoadCurve,
    LoadPoint,
    LoadSeries,
    RatioGrid,
)
from webapp.bench.curves import Curve
from webapp.bench.forest import (
    MOST,
    chosen,
    grid,
    judgement,
    levels_of,
    noises,
    series_of,
    varying_factors,
)
from webapp.bench.matching import Matched
from webapp.bench.products import Product
from webapp.bench.reading import scopes_of_products
from webapp.bench.saved import query_of
from webapp.bench.side_by_side import Group, Row, Selection, Shown, SideBySide, side_by_side
from webapp.bench.verdict import verdict
from webapp.bench.workloads import MAIN, RATE, Panel, Workload, factor_words, in_words, level_text
from webapp.core.answers import Question, answered
from webapp.plans.load import LOAD
from webapp.results.metrics import METRICS, Missing

# Load curves: what each product reaches, and at what latency, from one load to the next.
#
# Without latencies, the rate over block size: IOPS stop at small blocks and bandwidth at large ones.

LOADS = (LOAD, DEPTH, JOBS)  # open loops first: a closed loop hides how long clients would wait
MIN_POINTS = 3
_LIMITS = (FindingKind.CEILING, FindingKind.SATURATION)


def load_curves(comparison: SideBySide) -> list[LoadCurve]:
    """One for each pattern; all of the kind of the first one."""
    made = list(_of_patterns(comparison))
    return [curve for curve in made if curve.has_latency == made[0].has_latency]


def _of_patterns(comparison: SideBySide) -> Iterator[LoadCurve]:
    least = min(2, len(comparison.products))
    for panel in comparison.matched.panels_of(RATE):
        panel_curves = [
            curve for curve in comparison.rate_curves if curve.panel == panel and len(curve.points) >= least
        ]
        with_latency = filter(None, (_with_latency(comparison, curve) for curve in _loads(panel_curves)))
        made = next(with_latency, None) or _over_blocks(comparison, panel_curves)
        if made:
            yield made


def _loads(curves: Iterable[Curve]) -> list[Curve]:
    """The shown curve over shares of the load, then that over queue depth, then that over jobs."""
    return sorted(
        (curve for curve in curves if curve.is_shown and curve.factor in LOADS),
        key=lambda curve: LOADS.index(curve.factor),
    )


def _with_latency(comparison: SideBySide, curve: Curve) -> LoadCurve | None:
    matched, rate = comparison.matched, curve.panel.metric
    latency = next((panel for panel in matched.panels_of(matched.percentile) if _same_group(panel, curve.panel)), None)
    if latency is None:
        return None
    series = [
        LoadSeries(product=str(product), points=tuple(_points(matched, curve, latency, product)))
        for product in curve.points
    ]
    if max((len(line.points) for line in series), default=0) < MIN_POINTS:
        return None
    return LoadCurve(
        name=curve.panel.name, words=_words(matched, curve), has_latency=True, x_label=rate.label,
        y_label=latency.metric.label, level_label=curve.label, x_shown_as=rate.shown_as,
        y_shown_as=latency.metric.shown_as,
        series=tuple(line for line in series if line.points), bands=tuple(_bands(comparison, curve, "x")),
    )  # fmt: skip


def _words(matched: Matched, curve: Curve) -> str:
    """`4 KiB · 2 jobs`"""
    return in_words(matched.workloads[curve.keys[0]], [name for name in MAIN if name != curve.factor])


def _same_group(first: Panel, second: Panel) -> bool:
    return (first.chart, first.direction) == (second.chart, second.direction)


def _points(matched: Matched, curve: Curve, latency: Panel, product: Product) -> Iterator[LoadPoint]:
    for level, text, key in zip(curve.levels, curve.texts, curve.keys, strict=True):
        rate, wait = curve.points[product].get(level), matched.cell(latency, product, key)
        if rate and wait and wait.summary.mean > 0:
            yield LoadPoint(
                level=text, x=rate.summary.mean, y=wait.summary.mean, x_text=rate.text, y_text=wait.text,
                n=rate.summary.n,
            )  # fmt: skip


def _over_blocks(comparison: SideBySide, curves: Sequence[Curve]) -> LoadCurve | None:
    """At the highest load that most products have, because limits show there."""
    blocks = [curve for curve in curves if curve.factor == BLOCK]
    if not blocks:
        return None
    most = max(len(curve.points) for curve in blocks)
    curve = [curve for curve in blocks if len(curve.points) == most][-1]
    metric = curve.panel.metric
    series = tuple(
        LoadSeries(
            product=str(product),
            points=tuple(
                LoadPoint(
                    level=text, x=float(number or 0), y=cell.summary.mean, x_text=text, y_text=cell.text,
                    n=cell.summary.n,
                )
                for level, text, number in zip(curve.levels, curve.texts, curve.numbers, strict=True)
                if (cell := cells.get(level)) and cell.summary.mean > 0
            ),
        )
        for product, cells in curve.points.items()
    )  # fmt: skip
    return LoadCurve(
        name=curve.panel.name, words=_words(comparison.matched, curve), has_latency=False,
        x_label=factor_words(BLOCK), y_label=metric.label, level_label=factor_words(BLOCK), x_shown_as=None,
        y_shown_as=metric.shown_as, series=series,
        bands=tuple(_bands(comparison, curve, "y")),
    )  # fmt: skip


def _bands(comparison: SideBySide, curve: Curve, along: Literal["x", "y"]) -> Iterator[LoadBand]:
    for other, finding in comparison.seen:
        if other is curve and finding.kind in _LIMITS and finding.value and finding.marks:
            yield _band(curve, finding, along)


def _band(curve: Curve, finding: Finding, along: Literal["x", "y"]) -> LoadBand:
    """As wide as the values at the limit. Along block sizes, a limit at the large ones is of bandwidth."""
    products = list(curve.points)
    by_place = [list(curve.points[product].items()) for product in products]
    levels = {level: place for place, level in enumerate(curve.levels)}
    is_bandwidth = curve.factor == BLOCK and curve.panel.metric.key == "iops" and finding.marks[0].first > 0
    values = [
        cell.summary.mean * (float(number) if is_bandwidth and isinstance(number := level, int | float) else 1.0)
        for mark in finding.marks
        for level, cell in by_place[mark.series]
        if mark.first <= levels[level] <= mark.last
    ]
    metric = METRICS["bytes_per_s"] if is_bandwidth else curve.panel.metric
    words = "shared limit" if finding.kind is FindingKind.CEILING else "limit"
    return LoadBand(
        along="product" if is_bandwidth else along,
        low=min(values),
        high=max(values),
        text=f"{words} {metric.format(finding.value)}",
    )


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
        """They vary inside a group. The places are never left out: rows that differ in them would look alike."""
        groups = [[row.workload for row in group.rows] for group in self.groups]
        names = dict.fromkeys(name for workloads in groups for name in varying_factors(workloads))
        main = [name for name in MAIN if name in names]
        places = [name for name in sorted(PLACES) if any(len(levels_of(workloads, name)) > 1 for workloads in groups)]
        return (*(*main, *(name for name in names if name not in MAIN))[:MOST_LABELS], *places)

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
            shared = [row.workload for row in group.rows]
            axis, (first, *others) = series_of(workloads, shared)
            group_common = self._common([group])
            yield ForestGroup(
                name=group.panel.name,
                words=in_words(
                    workloads[0], [name for name in MAIN if name in group_common - common - set(self.label_factors)]
                ),
                metric=group.panel.metric.key,
                rows=self._in_rows(group, workloads),
                shared=self._in_rows(group, shared),
                series=self._in_rows(group, first),
                axis=axis,
                others=tuple(self._in_rows(group, each) for each in others),
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
