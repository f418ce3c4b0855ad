"""The content of the page Bench, for what its address asks: headline numbers, rows, curves and sentences."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from webapp.analysis.answer import Cell, Conclusion, FindingKind, once, rank
from webapp.analysis.answer import Finding as Seen
from webapp.analysis.cells import Kinds, mixed_kinds
from webapp.analysis.dimensions import PART
from webapp.analysis.equals import PREFIX, is_label, labels_in
from webapp.analysis.findings.curves import Links
from webapp.analysis.known_ceilings import KnownCeilings, known_ceilings
from webapp.analysis.models import Price
from webapp.bench.alike import PLACES, Mixed, level_of, mixed_import, part_of
from webapp.bench.curves import (
    Curve,
    Ladder,
    curves,
    ladder,
    ladder_key,
    ladders,
    mean_above_p99,
    seen_in,
)
from webapp.bench.headlines import Headline, headlines
from webapp.bench.matching import Matched, has_ratio, match, texts_of
from webapp.bench.missing import missing
from webapp.bench.nearest import OwnLevels, Unlike, own_levels
from webapp.bench.per_price import PerPrice, has_several_controllers, has_several_drives, per_price, prices_of
from webapp.bench.products import BenchRefused, Kind, Product, read_products
from webapp.bench.reading import Read, read_results
from webapp.bench.specifications import Facts, Specification, confounded, differing, facts_of, header, pooled
from webapp.bench.workloads import CHOICES, RATE, Panel, Workload, assumed, factor_words
from webapp.pictures.elements import colours_of
from webapp.plans.factors import FACTORS
from webapp.plans.points import in_order
from webapp.results.reading.rows import TEST, ResultRow

# The content of the page Bench.

MAX_TRIED, MIN_TRIED = 12, 3  # comparisons that are tried for an offer: of a page, and of each product

# Conclusions: each product against the baseline, over all workloads of a pattern that both share.


@dataclass(frozen=True)
class Finding:
    panel: Panel
    sentence: str
    rank: tuple[int, float] = (list(Conclusion).index(Conclusion.EQUAL), 0.0)


_BETWEEN = (FindingKind.CEILING, FindingKind.CROSSING)  # of products, not of one of them
# Not said here: a value is out of line if the other loads of its product are not, and these are in other charts.
_OF_LOADS = (FindingKind.OUTLIER, FindingKind.GAP)


def _place(seen: Seen) -> tuple[int, float]:
    """What products have in common stands beside certain differences, after the large ones; what was measured once, and
    what one of them shows, beside those that are equal."""
    if seen.kind not in _BETWEEN:
        return list(Conclusion).index(Conclusion.EQUAL), 0.0
    if seen.single:
        return list(Conclusion).index(Conclusion.EQUAL), -1.0
    return list(Conclusion).index(Conclusion.DIFFERENT), 0.0


def findings(matched: Matched, choice: str) -> Iterator[Finding]:
    for shown in dict.fromkeys((choice, RATE, matched.percentile)):
        for panel in matched.panels_of(shown):
            for product in matched.products:
                if sentences := matched.sentences(panel, product):
                    words = " ".join((sentences.page, *_assumptions(matched, panel, product)))
                    yield Finding(panel, words, rank(sentences.conclusion, matched.ratio(panel, product)))


def _assumptions(matched: Matched, panel: Panel, product: Product) -> Iterator[str]:
    """`Assumed of Old tests: QD 1, 1 job.` if an import states neither."""
    sides = (product, matched.baseline)
    shared = [
        workload
        for workload in matched.in_panel(panel)
        if all((panel.key, str(side), workload.key) in matched.measured for side in sides)
    ]
    for side in sides:
        rows = (
            (workload, row) for workload in shared for row in matched.rows(panel, side, workload.key) if row.imported
        )
        texts = dict.fromkeys(text for workload, row in rows for text in assumed(workload, row.point))
        if texts:
            yield f"Assumed of {matched.names[side]}: {', '.join(texts)}."


Held = tuple[tuple[str, str], ...]  # factors with their level, as in the address


@dataclass(frozen=True)
class Selection:
    """What the address says."""

    products: tuple[Product, ...]
    baseline: Product | None = None  # None: chosen by `match`
    choice: str = RATE  # key of matching.CHOICES: the metric of bars and curves
    ladder: str = ""  # key of a workload
    ignored: frozenset[str] = frozenset()  # factors in which matched workloads may differ
    held: Held = ()  # only results at these levels, set by a plan or observed

    @property
    def in_no_workload(self) -> frozenset[str]:
        """Factors that are not part of a workload."""
        return self.ignored | {factor for factor, _ in self.held}


@dataclass(frozen=True)
class Shown:
    """One cell of a row: what one product measured."""

    cell: Cell
    part: str  # the drive or layout of an import with several
    pooled: str  # 2 targets, 3 kernels
    runs: int  # and imports
    unstated: tuple[str, ...]  # labels of the factors of the workload that an import does not state
    assumed: str  # the queue depth and jobs among them: QD 1, 1 job
    reference: bool
    results: int
    slow: int  # of these, whose mean latency is above their p99

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons not to trust the value. That it was measured once is shown as n."""
        often = f" in {self.slow} of {self.results} results" if self.slow < self.results else ""
        slow = [f"mean above p99{often}: a few I/Os took very long"] if self.slow else []
        return (*(doubt for doubt in self.cell.doubts if not doubt.startswith("n = 1")), *slow)


@dataclass(frozen=True)
class Row:
    """One workload. `cells` has None for a product that has no number: it was not measured, or its cell is `mixed`."""

    title: str
    panel: Panel
    workload: Workload
    cells: tuple[Shown | None, ...]
    mixed: tuple[Mixed | None, ...]


@dataclass(frozen=True)
class Group:
    """The workloads of one panel that at least two products have."""

    panel: Panel
    rows: tuple[Row, ...]
    shared: int
    by_all: int  # workloads that all products have
    alone: int  # workloads that one product has alone


@dataclass(frozen=True)
class Advice:
    """Why a product has no ratio to the baseline, and the nearest comparison that gives one."""

    why: str  # a sentence
    words: str = ""  # of the link; "" if nothing in the data is alike
    nearest: Selection | None = None


@dataclass(frozen=True)
class SideBySide:
    """Each part is computed when a page asks for it."""

    selection: Selection
    read: Read
    matched: Matched

    @property
    def products(self) -> tuple[Product, ...]:
        return self.selection.products

    @property
    def empty(self) -> tuple[Product, ...]:
        return tuple(product for product, rows in self.read.rows.items() if not rows)

    @property
    def references(self) -> tuple[Product, ...]:
        """Published tables."""
        return tuple(product for product, rows in self.read.rows.items() if any(row.reference for row in rows))

    def kind_of(self, product: Product) -> str:
        """`Drive model`, `Reference`, `Import: Old tests` of a part, whose name does not contain the import."""
        kind = "Reference" if product in self.references else product.label
        rows = self.read.rows[product]
        is_short = product.part and self.matched.names[product] == product.part
        return f"{kind}: {rows[0].import_title}" if rows and is_short else kind

    @property
    def shown_values(self) -> list[Cell]:
        """Those of the table of all shared workloads."""
        return [shown.cell for group in self.groups for row in group.rows for shown in row.cells if shown]

    @property
    def single(self) -> int:
        """Shown values that were measured once."""
        return sum(cell.summary.n == 1 for cell in self.shown_values)

    @cached_property
    def facts(self) -> tuple[Facts, ...]:
        return tuple(facts_of(rows) for rows in self.read.rows.values())

    @cached_property
    def colours(self) -> dict[Product, int]:
        """A part of an import has the colour of the drive with this name."""
        names = {product: product.part or name for product, name in self.matched.names.items()}
        colours = colours_of(names.values())
        return {product: colours[name] for product, name in names.items()}

    @cached_property
    def header(self) -> tuple[Specification, ...]:
        return header(self.facts)

    @cached_property
    def differing(self) -> tuple[Specification, ...]:
        return differing(self.facts)

    @property
    def confounded(self) -> str:
        return confounded(self.matched.names, self.facts)

    @property
    def latency_kinds(self) -> str:
        """A warning if products have different kinds of latency."""
        kinds: dict[str, Kinds] = {}
        for (_, product, _), cell in self.matched.measured.items():
            kinds[product] = kinds.get(product, frozenset()) | cell.kinds
        names = self.matched.names
        return mixed_kinds({names[product]: kinds.get(str(product), frozenset()) for product in self.products})

    @property
    def completion_latency(self) -> bool:
        """Whether all latencies leave out the time of the submission."""
        kinds = {kind for cell in self.matched.measured.values() for kind in cell.kinds}
        return kinds == {"clat"}

    @cached_property
    def patterns(self) -> frozenset[str]:
        """Those of all workloads."""
        return frozenset(panel.chart for panel in self.matched.panels)

    @cached_property
    def headlines(self) -> tuple[Row, ...]:
        return tuple(
            _row(self.matched, headline.panel, headline.workload, headline.title) for headline in self._headlines
        )

    @cached_property
    def prices(self) -> dict[Product, Price]:
        return prices_of(self.read.rows)

    @cached_property
    def per_price(self) -> tuple[PerPrice, ...]:
        rates = [row for row in self.headlines if row.panel.metric.key == "iops"]
        iops = [(row.title, self.matched.texts[row.workload.key], self._of_one_price(row)) for row in rates]
        return per_price(self.read.rows, self.prices, iops)

    def _of_one_price(self, row: Row) -> list[float | None]:
        """The means of the products; None for several drives at once, or controllers in several hosts, whose price is
        not that of one."""
        means: list[float | None] = []
        for product, shown in zip(self.products, row.cells, strict=True):
            rows = self.matched.rows(row.panel, product, row.workload.key)
            has_several = has_several_controllers if product.kind is Kind.CONTROLLER else has_several_drives
            is_whole = not any(map(has_several, rows))
            means.append(shown.cell.summary.mean if shown and is_whole else None)
        return means

    @cached_property
    def _headlines(self) -> tuple[Headline, ...]:
        return headlines(self.matched)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        return tuple(_groups(self.matched, self.selection.choice))

    @cached_property
    def all_curves(self) -> tuple[Curve, ...]:
        """Also those that differ from a shown one in the levels of the other factors."""
        return tuple(curves(self.matched, self.selection.choice))

    @property
    def curves(self) -> tuple[Curve, ...]:
        return tuple(curve for curve in self.all_curves if curve.is_shown)

    @cached_property
    def rate_curves(self) -> tuple[Curve, ...]:
        return self.all_curves if self.selection.choice == RATE else tuple(curves(self.matched, RATE))

    @cached_property
    def ladder(self) -> Ladder | None:
        return ladder(self.matched, self.selection.ladder, _default_ladder(self._headlines))

    @cached_property
    def ladders(self) -> dict[str, str]:
        return ladders(self.matched)

    @cached_property
    def seen(self) -> tuple[tuple[Curve, Seen], ...]:
        """What curves show as a whole: those of the chosen metric, and those of rates."""
        every = (*self.all_curves, *(() if self.selection.choice == RATE else self.rate_curves))
        return tuple((curve, finding) for curve in every for finding in seen_in(curve, self.matched, self._links))

    @cached_property
    def known_ceilings(self) -> KnownCeilings:
        return known_ceilings([row for rows in self.read.rows.values() for row in rows])

    @cached_property
    def _links(self) -> Links:
        """The known ceilings of each product."""
        return {str(product): self.known_ceilings.common(rows) for product, rows in self.read.rows.items()}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        shown = {id(curve) for curve in self.all_curves if curve.is_shown}
        seen = (
            Finding(curve.panel, once(finding).sentence, _place(finding))
            for curve, finding in self.seen
            if (id(curve) in shown or finding.kind in _BETWEEN) and finding.kind not in _OF_LOADS
        )
        return tuple(sorted((*findings(self.matched, self.selection.choice), *seen), key=lambda finding: finding.rank))

    @cached_property
    def missing(self) -> dict[Product, list[Workload]]:
        return {product: missing(self.matched, product) for product in self.products}

    @property
    def unstated(self) -> dict[Product, tuple[str, ...]]:
        """The factors that an import does not state of the workloads beside which its values are shown."""
        rows = [row for group in self.groups for row in group.rows]
        stated = {
            product: [name for row in rows if (cell := row.cells[place]) for name in cell.unstated]
            for place, product in enumerate(self.products)
        }
        return {product: tuple(sorted({*names})) for product, names in stated.items() if names}

    @cached_property
    def shared(self) -> int:
        """Workloads that at least two products have."""
        return sum(group.shared for group in self.groups)

    @property
    def by_all(self) -> int:
        """Workloads that all products have."""
        return sum(group.by_all for group in self.groups)

    @property
    def workloads(self) -> int:
        return sum(group.shared + group.alone for group in self.groups)

    @cached_property
    def apart(self) -> tuple[OwnLevels, ...]:
        """The factors that prevent matches, if no workload is shared."""
        if self.shared or len(self.products) < 2:
            return ()
        return tuple(own_levels(self.read.rows, self.selection.ignored))

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """For each product with results that has no ratio to the baseline, and for those with cells that are no number:
        why, and the nearest comparison that gives a ratio."""
        baseline, mixed = self.matched.baseline, self._mixed
        others = [product for product in self.products if product not in (baseline, *self.empty)]
        compared = self.matched.compared | self.matched.overlapping
        pairs = [(baseline, other) for other in others if str(other) not in compared and baseline not in self.empty]
        products_of_pairs = {product for pair in pairs for product in pair}
        of_mixed = [
            (product, *(other for other in (baseline, *others) if other != product))[:2]
            for product in mixed
            if product not in products_of_pairs
        ]
        most = max(MIN_TRIED, MAX_TRIED // max(len(pairs) + len(of_mixed), 1))
        return tuple(self._advice(pair, most) for pair in (*pairs, *of_mixed))

    def _advice(self, products: tuple[Product, ...], most: int) -> Advice:
        rows = {product: self.read.rows[product] for product in products}
        apart = (
            [levels.factor for levels in own_levels(rows, self.selection.ignored) if levels.ignorable]
            if len(rows) > 1
            else []
        )
        names, mixed = (
            self.matched.names,
            {product: self._mixed[product] for product in products if product in self._mixed},
        )
        is_pair = len(self.products) == len(products)
        pair = Unlike(products, names, rows, mixed, tuple(apart or self.matched.other_levels), beside=not is_pair)
        for candidate in islice(pair.candidates(), most):
            selection = replace(
                self.selection,
                products=candidate.products,
                baseline=None,
                ignored=self.selection.ignored | candidate.ignored,
                held=(*self.selection.held, *candidate.held),
            )
            is_offered = (
                self._is_other_pair_offered(selection)
                if candidate.products != products
                else _has_ratio(replace(self.read, rows=rows), selection)
            )
            if is_offered:
                return Advice(pair.why, candidate.words, selection)
        return Advice(pair.why)

    def _is_other_pair_offered(self, selection: Selection) -> bool:
        """Several products of the page may be offered the same pair. Its results are read once, in either order."""
        key = frozenset(selection.products)
        if key not in self._tried:
            self._tried[key] = _has_ratio(read_results(selection.products), selection)
        return self._tried[key]

    @cached_property
    def _tried(self) -> dict[frozenset[Product], bool]:
        return {}

    @cached_property
    def _mixed(self) -> dict[Product, Mixed]:
        """The first such cell of each product; or all cells of an import of which no sentence is said, because its
        workloads are of several drives."""
        first: dict[str, Mixed] = {}
        for (_, name, _), mixed in self.matched.mixed.items():
            first.setdefault(name, mixed)
        for product in self.matched.unnamed:
            if (whole := mixed_import(product, self.read.rows[product])) and str(product) not in first:
                first[str(product)] = whole
        return {product: first[str(product)] for product in self.products if str(product) in first}


def side_by_side(selection: Selection) -> SideBySide:
    return matched_of(selection, _at_held_levels(read_results(selection.products), selection))


def matched_of(selection: Selection, read: Read) -> SideBySide:
    names = _short({product: _name(product, rows) for product, rows in read.rows.items()})
    return SideBySide(
        selection, read, match(read.rows, names, selection.baseline, selection.choice, selection.in_no_workload)
    )


def _has_ratio(read: Read, selection: Selection) -> bool:
    return has_ratio(_at_held_levels(read, selection).rows, selection.choice, selection.in_no_workload)


def _at_held_levels(read: Read, selection: Selection) -> Read:
    if not selection.held:
        return read
    rows = {
        product: tuple(row for row in product_rows if _is_held(row, selection.held))
        for product, product_rows in read.rows.items()
    }
    return replace(read, rows=rows)


def _is_held(row: ResultRow, levels: Held) -> bool:
    return all(level_of(row, factor) == level for factor, level in levels)


def _short(names: Mapping[Product, str]) -> dict[Product, str]:
    """A part of an import by its own name, if no other product of the page has this name: sentences repeat names."""
    counts = Counter(product.part or name for product, name in names.items())
    alone = len(names) == 1
    return {
        product: product.part
        if name.endswith(f": {product.part}") and counts[product.part] == 1 and not alone
        else name
        for product, name in names.items()
    }


def _name(product: Product, rows: Sequence[ResultRow]) -> str:
    if product.kind is Kind.SERIAL and rows:
        return f"{rows[0].model} {product.value}".strip()
    if product.kind is Kind.IMPORT and rows:
        return f"{rows[0].import_title}: {product.part}" if product.part else rows[0].import_title
    if product.kind in (Kind.RUN, Kind.CONFIGURATION, Kind.IMPORT):
        return f"{product.label} {product.value}"
    return product.value


def _row(matched: Matched, panel: Panel, workload: Workload, title: str) -> Row:
    cells = tuple(_shown(matched, panel, product, workload) for product in matched.products)
    mixed = tuple(matched.mixed.get((panel.key, str(product), workload.key)) for product in matched.products)
    return Row(title, panel, workload, cells, mixed)


def _shown(matched: Matched, panel: Panel, product: Product, workload: Workload) -> Shown | None:
    cell = matched.cell(panel, product, workload.key)
    if cell is None:
        return None
    rows = matched.rows(panel, product, workload.key)
    imported = [row for row in rows if row.imported]
    return Shown(
        cell=cell,
        part=part_of(rows) if product in matched.of_several else "",
        pooled=pooled(rows),
        runs=len({row.source for row in rows}),
        unstated=max((_unstated(workload, row) for row in imported), default=(), key=len),
        assumed=", ".join(dict.fromkeys(text for row in imported for text in assumed(workload, row.point))),
        reference=any(row.reference for row in rows),
        results=len(rows),
        slow=sum(map(mean_above_p99, rows)) if panel.metric.shown_as == "latency" else 0,
    )


def _unstated(workload: Workload, row: ResultRow) -> tuple[str, ...]:
    """Factors and labels of the workload that a result does not state."""
    labels = labels_in(row, {name.removeprefix(PREFIX) for name in workload.point if is_label(name)})
    return tuple(
        map(factor_words, in_order(workload.point.keys() - row.point.keys() - labels.keys() - PLACES - {TEST, PART}))
    )


def _groups(matched: Matched, choice: str) -> Iterator[Group]:
    least = min(2, len(matched.products))
    for panel in matched.panels_of(choice):
        counts = [(workload, matched.covered_by(panel, workload.key)) for workload in matched.in_panel(panel)]
        shared = [workload for workload, count in counts if count >= least]
        by_all = sum(count == len(matched.products) for _, count in counts)
        texts = dict(texts_of(shared))  # without what all of them share, although others differ in it
        rows = tuple(_row(matched, panel, workload, texts[workload.key]) for workload in shared)
        yield Group(panel, rows, len(shared), by_all, len(counts) - len(shared))


def _default_ladder(chosen: Sequence[Headline]) -> str:
    """The workload of the first headline of a latency."""
    latencies = [headline for headline in chosen if headline.panel.choice != RATE]
    return ladder_key(latencies[0].panel, latencies[0].workload) if latencies else ""


def read_selection(
    products: Sequence[str],
    *,
    baseline: str = "",
    metric: str = "",
    workload: str = "",
    ignored: Collection[str] = (),
    held: Collection[str] = (),
) -> Selection | None:
    """None without products. Raises BenchRefused."""
    chosen = read_products(products)
    if not chosen:
        return None
    if metric and metric not in CHOICES:
        raise BenchRefused("bench_metric_unknown", f"metric={metric} is unknown. Use {', '.join(CHOICES)}.")
    factors = frozenset(ignored) - {""}
    if unknown := sorted(name for name in factors - set(FACTORS) if not is_label(name)):
        raise BenchRefused("bench_factor_unknown", f"ignore={unknown[0]}: there is no factor with this name.")
    return Selection(chosen, _baseline(baseline, chosen), metric or RATE, workload, factors, _held(held))


def _held(texts: Iterable[str]) -> Held:
    """`scheduler:none` is a factor and its level. Raises BenchRefused."""
    pairs = [text.partition(":") for text in dict.fromkeys(texts) if text]
    if unknown := [name for name, colon, level in pairs if name not in FACTORS or not colon or not level]:
        raise BenchRefused(
            "bench_factor_unknown", f"hold={unknown[0]}: write factor:level, for example scheduler:none."
        )
    return tuple((name, level) for name, _, level in pairs)


def _baseline(text: str, products: Sequence[Product]) -> Product | None:
    """None if the baseline is not one of the products."""
    return next((product for product in products if str(product) == text), None)
