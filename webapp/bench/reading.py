"""The results of products. The number of queries does not depend on the number of products."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from django.db.models import CharField, Q, QuerySet, Value

from webapp.bench.products import Kind, Product
from webapp.hosts.models import Target
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run

MAX_RESULTS = 6_000  # of all products together, so that the page stays fast
_TARGETS = {Kind.MODEL: "model", Kind.SERIAL: "serial", Kind.HOST: "host__slug", Kind.TARGET: "slug"}


@dataclass(frozen=True)
class Read:
    """The newest valid results of each product."""

    rows: Mapping[Product, tuple[ResultRow, ...]]
    limit: int  # for each product
    cut: tuple[Product, ...]  # products that have more results


def read_results(products: Sequence[Product]) -> Read:
    """At most eight queries."""
    limit = MAX_RESULTS // max(len(products), 1)
    ids = _newest_ids(products, limit + 1)
    known = {id_ for each in ids.values() for id_ in each[:limit]}
    rows = {row.id: row for row in read_rows(Result.objects.filter(pk__in=known).order_by())} if known else {}
    found = {
        product: tuple(_of_product(product, (rows[id_] for id_ in reversed(ids.get(product, [])[:limit]))))
        for product in products
    }
    return Read(found, limit, tuple(product for product in products if len(ids.get(product, [])) > limit))


def _of_product(product: Product, rows: Iterable[ResultRow]) -> list[ResultRow]:
    """A result of several drives at once belongs to none of them alone."""
    if product.kind is Kind.SERIAL:
        return [row for row in rows if row.serial == product.value]
    if product.kind is Kind.TARGET:
        return [row for row in rows if row.target_name == product.value]
    if product.kind is Kind.MODEL:
        return [row for row in rows if row.model == product.value]
    return list(rows)


def _newest_ids(products: Sequence[Product], limit: int) -> dict[Product, list[int]]:
    """Newest first."""
    conditions = _conditions(products)
    queries = [_newest(product, condition, limit) for product, condition in conditions.items()]
    if not queries:
        return {}
    names = {str(product): product for product in products}
    found: dict[Product, list[int]] = {}
    union = queries[0].union(*queries[1:], all=True) if len(queries) > 1 else queries[0]
    for name, id_ in union:
        found.setdefault(names[name], []).append(id_)
    return found


def _newest(product: Product, condition: Q, limit: int) -> "QuerySet[Result, tuple[str, int]]":
    found = Result.objects.filter(condition, invalid=False).order_by("-measured_at", "-id")
    named = found.annotate(product=Value(str(product), output_field=CharField()))
    return named.values_list("product", "id")[:limit]


def _conditions(products: Iterable[Product]) -> dict[Product, Q]:
    """Only products that exist. Two queries: ids of targets and of runs, because PostgreSQL plans those well."""
    known = list(products)
    targets = list(_targets(known))
    runs = dict(
        Run.objects.filter(number__in=[int(one.value) for one in known if one.kind is Kind.RUN]).values_list(
            "number", "pk"
        )
    )
    found: dict[Product, Q] = {}
    for product in known:
        if product.kind is Kind.LAYOUT:
            found[product] = Q(point__contains={"layout": product.value})
        elif product.kind is Kind.CONFIGURATION:
            found[product] = Q(stream_run__configuration__digest__startswith=product.value)
        elif product.kind is Kind.RUN:
            if int(product.value) in runs:
                found[product] = Q(run=runs[int(product.value)])
        elif ids := [target.pk for target in targets if _is_of(product, target)]:
            found[product] = Q(target__in=ids)
    return found


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
