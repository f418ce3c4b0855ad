"""The results of products. The number of queries does not depend on the number of products."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar
from uuid import UUID

from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.expressions import RawSQL

from webapp.analysis.seals import ANY_RESULT, scopes_of
from webapp.bench.products import Kind, Product, is_part
from webapp.hosts.models import Target
from webapp.results.models import Origin, Result
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run

# Which runs of a product are read if it has more results than Bench reads.
#
# The newest results alone may all be of one nightly plan. Workloads of other plans would then look as if they had
# never been measured.

MAX_RUNS = 2_000  # of all products together
Key = TypeVar("Key", bound=Hashable)
Trials = dict[tuple[int, UUID], float]  # by plan and run, the newest first


def runs_by_plan(targets: Mapping[Key, Collection[UUID]], wanted: int) -> dict[Key, list[UUID]]:
    """The ids of runs by product, of about `wanted` trials: first the newest run of each plan, then the runs before
    them. The plans that most products ran are first. `targets` are the ids of each product's targets. One query."""
    trials = _runs_by_plan_newest(targets)
    common = Counter(plan for trials_of_product in trials.values() for plan in {plan for plan, _ in trials_of_product})
    return {
        key: list(_enough(_ordered(trials_of_product, common), trials_of_product, wanted))
        for key, trials_of_product in trials.items()
    }


def _runs_by_plan_newest(targets: Mapping[Key, Collection[UUID]]) -> dict[Key, Trials]:
    trials_by_product: dict[Key, Trials] = {key: {} for key in targets}
    measured = Run.targets.through.objects.filter(target__in={id_ for ids in targets.values() for id_ in ids})
    columns = ("target_id", "run_id", "run__version__plan_id", "run__trial_count", "run__target_order")
    for target, run, plan, trials, order in measured.order_by("-run__number").values_list(*columns)[:MAX_RUNS]:
        for key, ids in targets.items():
            if target in ids:
                trials_by_product[key][plan, run] = trials_by_product[key].get((plan, run), 0) + trials / max(
                    len(order), 1
                )
    return trials_by_product


def _ordered(runs: Iterable[tuple[int, UUID]], common: Mapping[int, int]) -> list[tuple[int, UUID]]:
    """By their place among the runs of their plan; sorting keeps the newest first."""
    seen: Counter[int] = Counter()
    places = {}
    for plan, run in runs:
        places[plan, run] = (seen[plan], -common[plan])
        seen[plan] += 1
    return sorted(places, key=lambda run: places[run])


def _enough(runs: Iterable[tuple[int, UUID]], trials: Trials, wanted: int) -> Iterator[UUID]:
    so_far = 0.0
    for plan, run in runs:
        if so_far >= wanted:
            return
        so_far += trials[plan, run]
        yield run


MAX_RESULTS = 3_000  # of all products together, so that the page stays fast
_TARGETS = {Kind.MODEL: "model", Kind.SERIAL: "serial", Kind.HOST: "host__slug", Kind.TARGET: "slug"}
BY_TARGETS = frozenset(_TARGETS)  # kinds of which runs are chosen by plan if there are too many results
_ORIGINS = {
    Kind.MODEL: "drive", Kind.SERIAL: "serial", Kind.HOST: "host", Kind.CONTROLLER: "controller", Kind.LAYOUT: "layout",
}  # fmt: skip
# Implied by a condition on origins. It tells PostgreSQL to read the index of imported results and not all results.
_IMPORTED = Q(origin__isnull=False)
Targets = Mapping[Product, list[UUID]]


@dataclass(frozen=True)
class Read:
    """The valid results of each product; of those with too many, some: the newest, or by plan (`runs_by_plan`)."""

    rows: Mapping[Product, tuple[ResultRow, ...]]
    limit: int  # for each product
    cut: tuple[Product, ...]  # products that have more results


def scopes_of_products(products: Iterable[Product]) -> tuple[str, ...]:
    """Of the rows that `read_results` reads (`analysis.seals`)."""
    numbers: dict[Kind, set[int]] = {Kind.RUN: set(), Kind.IMPORT: set()}
    for product in products:
        if product.kind not in numbers:
            return ANY_RESULT
        numbers[product.kind].add(product.number)
    return scopes_of(ResultFilter(runs=tuple(numbers[Kind.RUN]), imports=tuple(numbers[Kind.IMPORT])))


def read_results(products: Sequence[Product]) -> Read:
    """At most eleven queries."""
    limit, targets = MAX_RESULTS // max(len(products), 1), _targets_of(products)
    newest = _newest_ids(_conditions(products, targets), limit + 1)
    cut = tuple(product for product in products if len(newest.get(product, [])) > limit)
    ids = newest | _ids_by_plan({product: targets[product] for product in cut if product in targets}, newest, limit)
    known = {id_ for each in ids.values() for id_ in each[:limit]}
    # One array: thousands of parameters take longer to write than the query to answer.
    wanted = Result.objects.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [sorted(known)])).order_by()
    rows = {row.id: row for row in read_rows(wanted)} if known else {}
    rows_of_products = {
        product: tuple(_of_product(product, [rows[id_] for id_ in reversed(ids.get(product, [])[:limit])]))
        for product in products
    }
    return Read(rows_of_products, limit, cut)


def _ids_by_plan(
    targets: Mapping[Product, Collection[UUID]], newest: Mapping[Product, list[int]], limit: int
) -> dict[Product, list[int]]:
    """Of products that have more results: those of the chosen runs, filled up with the newest others."""
    if not targets:
        return {}
    runs = runs_by_plan(targets, limit)
    chosen = _newest_ids(
        [(product, Q(run__in=runs[product], target__in=ids)) for product, ids in targets.items()], limit
    )
    both = {product: dict.fromkeys([*chosen.get(product, []), *newest[product]]) for product in targets}
    return {product: sorted(list(ids)[:limit], reverse=True) for product, ids in both.items()}


def _of_product(product: Product, rows: list[ResultRow]) -> list[ResultRow]:
    """A result of several drives at once belongs to none of them alone."""
    if product.kind is Kind.SERIAL:
        return [row for row in rows if row.serial == product.value]
    if product.kind is Kind.TARGET:
        return [row for row in rows if row.target_name == product.value]
    if product.kind is Kind.MODEL:
        return [row for row in rows if row.model == product.value]
    if product.kind is Kind.IMPORT and product.part:
        return [row for row in rows if is_part(row, product.part)]
    return rows


def _newest_ids(conditions: Sequence[tuple[Product, Q]], limit: int) -> dict[Product, list[int]]:
    """The newest of each condition, in the order of the conditions."""
    queries = [_newest(product, condition, limit) for product, condition in conditions]
    if not queries:
        return {}
    names = {str(product): product for product, _ in conditions}
    ids: dict[Product, list[int]] = {}
    for name, id_ in queries[0].union(*queries[1:], all=True) if len(queries) > 1 else queries[0]:
        ids.setdefault(names[name], []).append(id_)
    return ids


def _newest(product: Product, condition: Q, limit: int) -> "QuerySet[Result, tuple[str, int]]":
    results = Result.objects.filter(condition, invalid=False).order_by("-measured_at", "-id")
    named = results.annotate(product=Value(str(product), output_field=CharField()))
    return named.values_list("product", "id")[:limit]


def _conditions(products: Sequence[Product], targets: Targets) -> list[tuple[Product, Q]]:
    """One for results of runs and one for imported results, so that each is found by its own index."""
    imports = ((product, condition) for product in products if (condition := _of_imports(product)))
    return [*_of_runs(products, targets), *imports]


def _of_runs(products: Sequence[Product], targets: Targets) -> list[tuple[Product, Q]]:
    """With the ids of targets and of runs, because PostgreSQL plans those well."""
    numbers = [product.number for product in products if product.kind is Kind.RUN]
    runs = dict(Run.objects.filter(number__in=numbers).values_list("number", "pk"))
    conditions: list[tuple[Product, Q]] = []
    for product in products:
        if product in targets:
            conditions.append((product, Q(target__in=targets[product])))
        elif product.kind is Kind.RUN:
            conditions.append((product, Q(run__in=[runs[product.number]] if product.number in runs else [])))
        elif product.kind is Kind.LAYOUT:
            conditions.append((product, Q(point__contains={"layout": product.value}, origin=None)))
        elif product.kind is Kind.CONTROLLER:
            conditions.append((product, Q(stream_run__configuration__controller=product.value)))
        elif product.kind is Kind.CONFIGURATION:
            conditions.append((product, Q(stream_run__configuration__digest__startswith=product.value)))
    return conditions


def _of_imports(product: Product) -> Q:
    """Empty for kinds that imports do not have. A published table is read only if it is chosen itself."""
    if product.kind is Kind.IMPORT:
        return _IMPORTED & Q(origin__in=Origin.objects.filter(imported__number=product.number))
    if product.kind in _ORIGINS:
        origins = Origin.objects.filter(**{_ORIGINS[product.kind]: product.value})
        return _IMPORTED & Q(origin__in=origins, reference=False)
    return Q()


def _targets_of(products: Iterable[Product]) -> Targets:
    """The ids of the targets of each product that is defined by targets."""
    known = [product for product in products if product.kind in _TARGETS]
    conditions = [
        Q(**{_TARGETS[product.kind]: product.value.partition("/")[2] if product.kind is Kind.TARGET else product.value})
        for product in known
    ]
    nothing = Q(pk__in=[])
    targets = list(Target.objects.filter(reduce(Q.__or__, conditions, nothing)).select_related("host").order_by())
    return {product: [target.pk for target in targets if _is_of(product, target)] for product in known}


def _is_of(product: Product, target: Target) -> bool:
    if product.kind is Kind.HOST:
        return target.host.slug == product.value
    if product.kind is Kind.TARGET:
        return f"{target.host.slug}/{target.slug}" == product.value
    return bool(getattr(target, product.kind) == product.value)
