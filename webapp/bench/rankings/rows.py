"""The results of a ranking by product. The number of queries does not depend on the number of products."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import RowNumber

from webapp.analysis.places import host_of
from webapp.bench.products import Kind, Product
from webapp.bench.rankings.catalogue import Catalogue, Filter, Load
from webapp.bench.rankings.question import Ranked
from webapp.hosts.selectors import BESIDE
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, read_rows

MOST, FEWEST = 30, 4  # newest results of a drive at one point
MAX_ROWS = 4_000  # about, of a page; a part of the page is left out rather than read with fewer than FEWEST results


@dataclass(frozen=True)
class Products:
    rows: Mapping[Product, Sequence[ResultRow]]
    names: Mapping[Product, str]


@dataclass(frozen=True)
class Read:
    """`sets`: how many sets of loads were read; those at the end are left out if there would be too many results.
    `newest`: so many results were read of a target at a point that has more; 0 if all were read."""

    rows: Sequence[ResultRow]
    sets: int
    newest: int


def read(catalogue: Catalogue, wanted: Sequence[Collection[Load]], filters: Filter) -> Read:
    """The newest results at the wanted loads. At most eight queries."""
    keys: list[str] = []
    for count, loads in enumerate(wanted):
        more = [key for key in catalogue.keys_of(loads) if key not in keys]
        pairs = sum(len(catalogue.sources[key]) for key in (*keys, *more))
        if count and pairs * FEWEST > MAX_ROWS:
            return _read(keys, catalogue, filters, count)
        keys += more
    return _read(keys, catalogue, filters, len(wanted))


def _read(keys: Sequence[str], catalogue: Catalogue, filters: Filter, sets: int) -> Read:
    pairs = sum(len(catalogue.sources[key]) for key in keys)
    if not pairs:
        return Read((), sets, 0)
    limit = max(FEWEST, min(MOST, MAX_ROWS // pairs))
    valid = Result.objects.filter(invalid=False, point_key__in=keys).order_by()
    measured = valid.exclude(target=None).annotate(
        place=Window(RowNumber(), partition_by=[F("point_key"), F("target"), F("direction")], order_by=F("id").desc())
    )
    imported = valid.exclude(origin=None).order_by("-id").values_list("pk", flat=True)[:MAX_ROWS]
    places = dict(measured.filter(place__lte=limit + 1).values_list("pk", "place")[: 4 * MAX_ROWS])
    ids = [*(pk for pk, place in places.items() if place <= limit), *imported]
    # One array: thousands of parameters take longer to write than the query to answer.
    wanted = Result.objects.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [ids])).order_by("id")
    rows = [row for row in read_rows(wanted) if filters.admits(row)]
    return Read(rows, sets, limit if limit + 1 in places.values() else 0)


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
