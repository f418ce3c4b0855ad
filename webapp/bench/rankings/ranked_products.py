"""The results of a ranking by product. The number of queries does not depend on the number of products."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.equals import host_of
from webapp.bench.products import Kind, Product
from webapp.bench.rankings.catalogue import Catalogue, Filter, Load
from webapp.bench.rankings.question import Ranked
from webapp.bench.reading import examples_of_cells, newest_of_cells, results_of
from webapp.hosts.selectors import BESIDE
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, read_rows

MAX_ROWS = 4_000  # about, of a page; a part of the page is left out rather than read more


@dataclass(frozen=True)
class Products:
    rows: Mapping[Product, Sequence[ResultRow]]
    names: Mapping[Product, str]


@dataclass(frozen=True)
class Read:
    """`sets`: how many sets of loads were read; those at the end are left out if there would be too many results.
    `has_more`: whether a target has more results at a point than are read of it."""

    rows: Sequence[ResultRow]
    sets: int
    has_more: bool


def read(catalogue: Catalogue, wanted: Sequence[Collection[Load]], filters: Filter) -> Read:
    """The results at the wanted loads, of own ones those that Bench reads. At most nine queries."""
    keys: list[str] = []
    for count, loads in enumerate(wanted):
        more = [key for key in catalogue.keys_of(loads) if key not in keys]
        if count and sum(catalogue.sizes[key] for key in (*keys, *more)) > MAX_ROWS:
            return _read(keys, filters, count)
        keys += more
    return _read(keys, filters, len(wanted))


def _read(keys: Sequence[str], filters: Filter, sets: int) -> Read:
    if not keys:
        return Read((), sets, has_more=False)
    valid = Result.objects.filter(invalid=False, point_key__in=keys).order_by()
    ids, has_more = newest_of_cells(examples_of_cells(valid))
    imported = valid.exclude(origin=None).order_by("-id").values_list("pk", flat=True)[:MAX_ROWS]
    rows = read_rows(results_of([*(id_ for each in ids.values() for id_ in each), *imported]).order_by("id"))
    return Read([row for row in rows if filters.admits(row)], sets, has_more)


def products_of(rows: Iterable[ResultRow], ranked: Ranked) -> Products:
    """The products of one kind, as Bench knows them. Two drives of one model in one host are two products: their mean
    would be the value of neither."""
    known = [row for row in rows if BESIDE not in row.target]
    if ranked is Ranked.DRIVE:
        return _drives(known)
    return _named(known, _BY_NAME[ranked])


def _named(rows: Iterable[ResultRow], product_of: Callable[[ResultRow], Product | None]) -> Products:
    by_product: dict[Product, list[ResultRow]] = {}
    for row in rows:
        if product := product_of(row):
            by_product.setdefault(product, []).append(row)
    return Products(
        by_product, {product: name_of(product, product_rows[0]) for product, product_rows in by_product.items()}
    )


def _controller(row: ResultRow) -> Product | None:
    return Product(Kind.CONTROLLER, row.controller) if row.controller and not row.reference else None


def _host(row: ResultRow) -> Product | None:
    return Product(Kind.HOST, row.host) if row.host and not row.reference else None


def _layout(row: ResultRow) -> Product | None:
    if not row.layout:
        return None
    return _part(row) if row.reference else Product(Kind.LAYOUT, row.layout)


_BY_NAME = {Ranked.CONTROLLER: _controller, Ranked.HOST: _host, Ranked.LAYOUT: _layout}


def _part(row: ResultRow) -> Product:
    """The part of an import that a result is of, as in an address of Bench."""
    part = f"{row.model}, {row.layout}" if row.model and row.layout else row.target
    return Product(Kind.IMPORT, f"{row.imported}/{part}")


def _drives(rows: Sequence[ResultRow]) -> Products:
    """A layout of an own pool is no drive."""
    drives = [row for row in rows if row.imported or not row.layout]
    targets: dict[tuple[str, str], set[str]] = {}
    for row in drives:
        if row.model and not row.reference:
            targets.setdefault((row.model, host_of(row)), set()).add(row.target_name)
    shared = {model for (model, _), names in targets.items() if len(names) > 1}

    def product_of(row: ResultRow) -> Product:
        if row.reference or (row.imported and not row.model):
            return _part(row)
        if row.model and row.model not in shared:
            return Product(Kind.MODEL, row.model)
        if row.serial:
            return Product(Kind.SERIAL, row.serial)
        return Product(Kind.MODEL, row.model) if row.imported else Product(Kind.TARGET, row.target_name)

    return _named(drives, product_of)


def name_of(product: Product, row: ResultRow) -> str:
    if product.kind is Kind.SERIAL:
        return f"{row.model} {product.value}".strip()
    return product.part or product.value
