"""The results of products. The number of queries does not depend on the number of products."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.expressions import RawSQL

from webapp.bench.products import Kind, Product
from webapp.hosts.models import Target
from webapp.results.models import Origin, Result
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run

MAX_RESULTS = 3_000  # of all products together, so that the page stays fast
_TARGETS = {Kind.MODEL: "model", Kind.SERIAL: "serial", Kind.HOST: "host__slug", Kind.TARGET: "slug"}
_ORIGINS = {
    Kind.MODEL: "drive", Kind.SERIAL: "serial", Kind.HOST: "host", Kind.CONTROLLER: "controller", Kind.LAYOUT: "layout",
}  # fmt: skip
# Implied by a condition on origins. It tells PostgreSQL to read the index of imported results and not all results.
_IMPORTED = Q(origin__isnull=False)


@dataclass(frozen=True)
class Read:
    """The newest valid results of each product."""

    rows: Mapping[Product, tuple[ResultRow, ...]]
    limit: int  # for each product
    cut: tuple[Product, ...]  # products that have more results


def read_results(products: Sequence[Product]) -> Read:
    """At most nine queries."""
    limit = MAX_RESULTS // max(len(products), 1)
    ids = _newest_ids(products, limit + 1)
    known = {id_ for each in ids.values() for id_ in each[:limit]}
    # One array: thousands of parameters take longer to write than the query to answer.
    wanted = Result.objects.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [sorted(known)])).order_by()
    rows = {row.id: row for row in read_rows(wanted)} if known else {}
    found = {
        product: tuple(_of_product(product, [rows[id_] for id_ in reversed(ids.get(product, [])[:limit])]))
        for product in products
    }
    return Read(found, limit, tuple(product for product in products if len(ids.get(product, [])) > limit))


def _of_product(product: Product, rows: list[ResultRow]) -> list[ResultRow]:
    """A result of several drives at once belongs to none of them alone."""
    if product.kind is Kind.SERIAL:
        return [row for row in rows if row.serial == product.value]
    if product.kind is Kind.TARGET:
        return [row for row in rows if row.target_name == product.value]
    if product.kind is Kind.MODEL:
        return [row for row in rows if row.model == product.value]
    if product.kind is Kind.IMPORT and product.part:
        return [row for row in rows if row.target == product.part]
    return rows


def _newest_ids(products: Sequence[Product], limit: int) -> dict[Product, list[int]]:
    """Newest first; results of runs before those of imports."""
    queries = [_newest(product, condition, limit) for product, condition in _conditions(products)]
    if not queries:
        return {}
    names = {str(product): product for product in products}
    found: dict[Product, list[int]] = {}
    for name, id_ in queries[0].union(*queries[1:], all=True) if len(queries) > 1 else queries[0]:
        found.setdefault(names[name], []).append(id_)
    return found


def _newest(product: Product, condition: Q, limit: int) -> "QuerySet[Result, tuple[str, int]]":
    found = Result.objects.filter(condition, invalid=False).order_by("-measured_at", "-id")
    named = found.annotate(product=Value(str(product), output_field=CharField()))
    return named.values_list("product", "id")[:limit]


def _conditions(products: Iterable[Product]) -> list[tuple[Product, Q]]:
    """One for results of runs and one for imported results, so that each is found by its own index."""
    known = list(products)
    return [*_of_runs(known), *((one, condition) for one in known if (condition := _of_imports(one)))]


def _of_runs(products: Sequence[Product]) -> list[tuple[Product, Q]]:
    """Two queries: ids of targets and of runs, because PostgreSQL plans those well."""
    targets = list(_targets(products))
    numbers = [one.number for one in products if one.kind is Kind.RUN]
    runs = dict(Run.objects.filter(number__in=numbers).values_list("number", "pk"))
    found: list[tuple[Product, Q]] = []
    for product in products:
        if product.kind in _TARGETS:
            found.append((product, Q(target__in=[target.pk for target in targets if _is_of(product, target)])))
        elif product.kind is Kind.RUN:
            found.append((product, Q(run__in=[runs[product.number]] if product.number in runs else [])))
        elif product.kind is Kind.LAYOUT:
            found.append((product, Q(point__contains={"layout": product.value}, origin=None)))
        elif product.kind is Kind.CONTROLLER:
            found.append((product, Q(stream_run__configuration__controller=product.value)))
        elif product.kind is Kind.CONFIGURATION:
            found.append((product, Q(stream_run__configuration__digest__startswith=product.value)))
    return found


def _of_imports(product: Product) -> Q:
    """Empty for kinds that imports do not have. A published table is read only if it is chosen itself."""
    if product.kind is Kind.IMPORT:
        return _IMPORTED & Q(origin__in=Origin.objects.filter(imported__number=product.number))
    if product.kind in _ORIGINS:
        origins = Origin.objects.filter(**{_ORIGINS[product.kind]: product.value})
        return _IMPORTED & Q(origin__in=origins, reference=False)
    return Q()


def _targets(products: Iterable[Product]) -> "QuerySet[Target]":
    asked = [
        Q(**{_TARGETS[one.kind]: one.value.partition("/")[2] if one.kind is Kind.TARGET else one.value})
        for one in products
        if one.kind in _TARGETS
    ]
    nothing = Q(pk__in=[])
    return Target.objects.filter(reduce(Q.__or__, asked, nothing)).select_related("host").order_by()


def _is_of(product: Product, target: Target) -> bool:
    if product.kind is Kind.HOST:
        return target.host.slug == product.value
    if product.kind is Kind.TARGET:
        return f"{target.host.slug}/{target.slug}" == product.value
    return bool(getattr(target, product.kind) == product.value)
