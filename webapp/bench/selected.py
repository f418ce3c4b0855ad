"""The products of results that a person selected in a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from webapp.bench.import_parts import part_names
from webapp.bench.products import MAX_PRODUCTS, Kind, Product
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, read_rows

# From the coarsest to the finest: the first kind in which all selected results differ is compared.
_KINDS: Mapping[Kind, Callable[[ResultRow], str]] = {
    Kind.MODEL: lambda row: row.model,
    Kind.SERIAL: lambda row: row.serial,
    Kind.CONTROLLER: lambda row: row.controller,
    Kind.HOST: lambda row: row.host,
    Kind.TARGET: lambda row: row.target_name,
    Kind.LAYOUT: lambda row: row.layout,
    Kind.RUN: lambda row: f"-{_part(row)}" if row.imported else str(row.run),
    Kind.CONFIGURATION: lambda row: row.configuration[:10],
}


def products_of_results(ids: Iterable[str]) -> tuple[Product, ...]:
    """Results of two models become models, those of two runs of one drive become runs. Each drive of a published table
    is a product of its own, because a table is read only if it is chosen itself. Four queries."""
    numbers = [int(id_) for id_ in ids if id_.isascii() and id_.isdecimal() and len(id_) < 19]
    rows = read_rows(Result.objects.filter(pk__in=numbers[: 10 * MAX_PRODUCTS]).order_by("id"))
    own = [row for row in rows if not row.reference]
    return (*_products(own), *_published([row for row in rows if row.reference]))[:MAX_PRODUCTS]


def _published(rows: Sequence[ResultRow]) -> list[Product]:
    by_import: dict[int, set[tuple[str, str]]] = {}
    for row in rows:
        by_import.setdefault(row.imported, set()).add((row.model or row.target, row.layout))
    found = ((number, part) for number, labels in by_import.items() for part in part_names(labels))
    return [Product(Kind.IMPORT, f"{number}/{part}") for number, part in found]


def _products(rows: Sequence[ResultRow]) -> list[Product]:
    found = [(kind, _distinct(rows, of)) for kind, of in _KINDS.items()]
    usable = [(kind, values) for kind, values in found if values and "" not in values]
    if not usable:
        return []
    all_apart = next((each for each in usable if len(each[1]) == len(rows)), None)
    kind, values = all_apart or max(usable, key=lambda each: len(each[1]))
    return [_product(kind, value) for value in values]


def _part(row: ResultRow) -> str:
    """One drive of an import, as a product's value."""
    return f"{row.imported}/{row.target}"


def _product(kind: Kind, value: str) -> Product:
    """An import has no run; its number has a minus sign."""
    if kind is Kind.RUN and value.startswith("-"):
        return Product(Kind.IMPORT, value[1:])
    return Product(kind, value)


def _distinct(rows: Sequence[ResultRow], of: Callable[[ResultRow], str]) -> list[str]:
    return list(dict.fromkeys(of(row) for row in rows))
