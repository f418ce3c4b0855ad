"""Why two products have no ratio, and the nearest comparison of them that is alike: candidates from the data.

A candidate is offered only if it gives a ratio (`side_by_side.advice` tries them): first the same two products at one
level of a factor, then without a factor that keeps them apart, then with the drives that a value would mix, then with
another product at the place of one of them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from itertools import product as product_of

from django.db.models import Exists, OuterRef

from webapp.analysis.equals import PATTERN, is_label, points_with_labels, varying_labels
from webapp.bench.alike import PLACES, Mixed, Places, level_of, places_words
from webapp.bench.products import MAX_PRODUCTS, Kind, Product, read_products
from webapp.bench.workloads import factor_words, level_text
from webapp.hosts.models import Target
from webapp.plans.factors import FACTORS
from webapp.plans.points import in_order
from webapp.results.models import Configuration, Origin, Result
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow

MAX_OTHERS = 3  # products at a place that are tried
_BY_TARGET = {Kind.MODEL: "model", Kind.SERIAL: "serial", Kind.HOST: "host__slug"}
_BY_ORIGIN = {Kind.MODEL: "drive", Kind.SERIAL: "serial", Kind.HOST: "host", Kind.CONTROLLER: "controller"}


@dataclass(frozen=True)
class Candidate:
    """What to change in the address. `words` name the link."""

    words: str
    products: tuple[Product, ...]
    ignored: frozenset[str] = frozenset()  # in addition
    held: tuple[tuple[str, str], ...] = ()  # in addition: factor and level


@dataclass(frozen=True)
class Unlike:
    """Two products without a ratio, the baseline first; or one whose cells are no number."""

    products: tuple[Product, ...]
    names: Mapping[Product, str]
    rows: Mapping[Product, Sequence[ResultRow]]
    mixed: Mapping[Product, Mixed]  # of cells that are no number
    apart: tuple[str, ...]  # factors without a common level, or ignored ones with other levels on each side
    beside: bool = False  # other products are on the page

    @property
    def why(self) -> str:
        """One sentence."""
        for product, mixed in self.mixed.items():
            return (
                f"{self.names[product]} has values of {mixed.words}, and their mean would be the value of none of them."
            )
        if words := places_words(Places(self.rows), self.rows, self.names):
            return words
        first, second = (self.names[product] for product in self.products)
        for factor in self.apart:
            levels = [_levels(factor, rows) for rows in self.rows.values()]
            return f"{second} was measured with {factor_words(factor)} {levels[1]}, and {first} with {levels[0]}."
        return f"{first} and {second} share no workload on this page."

    def candidates(self) -> Iterator[Candidate]:
        if self.beside and len(self.products) > 1 and not self.mixed:
            yield Candidate("Compare only these two", self.products)
        yield from self._at_one_level()
        if self.apart and len(self.products) > 1:
            labels = ", ".join(map(factor_words, self.apart))
            yield Candidate(f"Ignore {labels}", self.products, ignored=frozenset(self.apart))
        yield from self._of_parts()
        if len({product.kind for product in self.products}) == 1:
            for product in self.products:
                others = (other for other in _at_place_of(product, self.rows[product]) if other not in self.products)
                yield from (_of(product, other) for other in islice(others, MAX_OTHERS))

    def _at_one_level(self) -> Iterator[Candidate]:
        names = [*(mixed.factor for mixed in self.mixed.values() if mixed.factor), *self.apart]
        for factor, level in levels_to_hold({product: self.rows[product] for product in self.products}, names):
            named = " and ".join(self.names[product] for product in self.products)
            words = f"Compare {named} at {factor_words(factor)} {level}"
            yield Candidate(words, self.products, held=((factor, level),))

    def _of_parts(self) -> Iterator[Candidate]:
        """The drives that a value would mix, each with the other product, then with each other."""
        choices = {
            product: read_products(mixed.choices[:MAX_PRODUCTS])
            for product, mixed in self.mixed.items()
            if not mixed.factor
        }
        if choices and len(self.products) > 1:
            sides = [choices.get(product, (product,)) for product in self.products]
            yield from (_of(*pair) for pair in product_of(*sides))
        yield from (Candidate("Compare them with each other", parts) for parts in choices.values() if len(parts) > 1)


def levels_to_hold(rows: Mapping[Product, Sequence[ResultRow]], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The common levels of each factor, set by a plan or observed, those with the most results first."""
    for factor in (name for name in dict.fromkeys(names) if name in FACTORS):
        counts = [Counter(level_of(row, factor) for row in side) for side in rows.values()]
        common = {level: min(each[level] for each in counts) for level in counts[0] if level}
        for level in sorted(common, key=lambda level: (-common[level], level)):
            if common[level]:
                yield factor, level


def _of(baseline: Product, product: Product) -> Candidate:
    return Candidate(
        f"Compare {product.part or product.value} with {baseline.part or baseline.value}", (baseline, product)
    )


def _levels(factor: str, rows: Iterable[ResultRow]) -> str:
    if is_label(factor):
        texts = {row.facts.get(factor.partition(":")[2], "") for row in rows}
    else:
        texts = {level_of(row, factor) for row in rows}
    return ", ".join(sorted(text or "not stated" for text in texts))


def _at_place_of(product: Product, rows: Iterable[ResultRow]) -> Iterator[Product]:
    """Products of this kind in its hosts, or with its drives. Two queries."""
    if product.kind not in _BY_ORIGIN:
        return
    over_drives = product.kind in (Kind.HOST, Kind.CONTROLLER)
    places = sorted({row.model if over_drives else row.host for row in rows} - {""})
    values: Iterable[str]
    if product.kind in _BY_TARGET:
        place = {"model__in" if over_drives else "host__slug__in": places}
        measured = Exists(Result.objects.filter(target=OuterRef("pk"), invalid=False))
        column = _BY_TARGET[product.kind]
        values = Target.objects.filter(measured, **place).order_by(column).values_list(column, flat=True).distinct()
    else:
        values = Configuration.objects.order_by("controller").values_list("controller", flat=True).distinct()
    yield from (Product(product.kind, value) for value in values if value)
    place = {"drive__in" if over_drives else "host__in": places}
    origins = (
        Origin.objects.filter(**place, imported__slug=None).order_by().values_list(_BY_ORIGIN[product.kind], flat=True)
    )
    yield from (Product(product.kind, value) for value in sorted(set(origins)) if value)


# Why products share no workload: factors of which no two of them have a level in common.


@dataclass(frozen=True)
class OwnLevels:
    """A factor whose levels differ completely between products, which therefore prevents matches."""

    factor: str
    label: str
    levels: tuple[str, ...]  # texts, by product

    @property
    def ignorable(self) -> bool:
        """Reads and writes are never one workload."""
        return self.factor not in (PATTERN, *PLACES)


def own_levels(
    rows_of_products: Mapping[Product, Sequence[ResultRow]], ignored: Collection[str]
) -> Iterator[OwnLevels]:
    """Without the factors that are ignored already, that define a product, or that imports do not state."""
    labels = varying_labels(row for rows in rows_of_products.values() for row in rows)
    places = Places(rows_of_products)
    measured = {
        product: [
            {**point, **places.of(product, place_rows[0])}
            for place_rows in _by_place(product, rows, places)
            for point in points_with_labels(place_rows, labels)
        ]
        for product, rows in rows_of_products.items()
    }
    names = {name for points in measured.values() for point in points for name in point}
    imports = {product for product, rows in rows_of_products.items() if any(row.imported for row in rows)}
    stated = {name for product in imports for point in measured[product] for name in point}
    defining = {name for product in rows_of_products for name in product.factors}
    for name in in_order(names - set(ignored) - defining):
        binding = [
            {repr(point.get(name)) for point in points}
            for product, points in measured.items()
            if points and (name in stated or product not in imports)
        ]
        if len(binding) > 1 and not set.intersection(*binding):
            yield OwnLevels(name, factor_words(name), tuple(_texts(name, points) for points in measured.values()))


def _by_place(product: Product, rows: Iterable[ResultRow], places: Places) -> Iterable[list[ResultRow]]:
    by_place: dict[tuple[object, ...], list[ResultRow]] = {}
    for row in rows:
        by_place.setdefault(tuple(places.of(product, row).values()), []).append(row)
    return by_place.values()


def _texts(name: str, points: Iterable[Point]) -> str:
    levels = {repr(level): level for level in (point.get(name) for point in points)}.values()
    return ", ".join(sorted("not stated" if level is None else level_text(name, level) for level in levels))
