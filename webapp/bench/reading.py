"""Which results the pages Bench and Rankings read. The number of queries does not depend on the number of products.

A cell is a target at a controller, at a test point in a direction, such as the reads of a mix. Both pages, and the
pages of products and targets, read the newest `PER_CELL` results of a cell, or all if it has fewer, so they show one
number. Bench reads a whole cell or nothing of it. A drive that was moved to another controller has cells at both:
pages compare drives at one controller.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Max, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from webapp.analysis.seals import ANY_RESULT, scopes_of
from webapp.bench.products import Kind, Product, is_part
from webapp.hosts.models import Target
from webapp.results.models import Origin, Result
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.newest import PER_CELL, newest_of
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run

_WITHOUT_CELLS = (Kind.RUN, Kind.CONFIGURATION, Kind.IMPORT)  # chosen to see all of their results
_CONTROLLER = Coalesce("stream_run__configuration__controller", Value(""))  # as `ResultRow.controller`
_CELL = ("target", "controller", "point_key", "direction")


def results_of(ids: Iterable[int]) -> QuerySet[Result]:
    """One array: thousands of parameters take longer to write than the query to answer."""
    return Result.objects.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [sorted(ids)])).order_by()


def newest_of_cells(examples: Collection[int]) -> tuple[dict[int, list[int]], bool]:
    """By the id of one result of a cell, the ids of those that are read of it, the newest first; and whether a cell has
    more. One query: the index of workloads answers it for each cell."""
    same = {name: OuterRef(name) for name in _CELL}
    at_controllers = Result.objects.alias(controller=_CONTROLLER)
    newest = at_controllers.filter(invalid=False, **same).order_by("-id").values("pk")[: PER_CELL + 1]
    with_controllers = results_of(examples).alias(controller=_CONTROLLER)
    cells = dict(with_controllers.values_list("pk", ArraySubquery(newest))) if examples else {}
    return {id_: ids[:PER_CELL] for id_, ids in cells.items()}, any(len(ids) > PER_CELL for ids in cells.values())


def examples_of_cells(results: QuerySet[Result]) -> list[int]:
    """The id of the newest result of each cell. One query."""
    cells = results.exclude(target=None).annotate(controller=_CONTROLLER).order_by().values(*_CELL)
    return [cell["newest"] for cell in cells.annotate(newest=Max("id"))]


def newest_rows(product: Product, rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """The same for all results of a product."""
    return tuple(rows) if product.kind in _WITHOUT_CELLS else newest_of(rows)


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
MAX_CELLS = 400  # of all products together, of those with more results
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
    """The valid results of each product."""

    rows: Mapping[Product, tuple[ResultRow, ...]]
    limit: int  # for each product
    cut: tuple[Product, ...]  # products that have more results
    cells: int = 0  # for each of these, if it is read by plan
    has_more: bool = False  # whether a cell has more than `PER_CELL` results


def scopes_of_products(products: Iterable[Product]) -> tuple[str, ...]:
    """Of the rows that `read_results` reads (`analysis.seals`)."""
    numbers: dict[Kind, set[int]] = {Kind.RUN: set(), Kind.IMPORT: set()}
    for product in products:
        if product.kind not in numbers:
            return ANY_RESULT
        numbers[product.kind].add(product.number)
    return scopes_of(ResultFilter(runs=tuple(numbers[Kind.RUN]), imports=tuple(numbers[Kind.IMPORT])))


@dataclass(frozen=True)
class _Chosen:
    """`ids`: of each product, the newest first. Of one that has too many, they are the newest, or by plan."""

    limit: int
    targets: Targets
    cut: tuple[Product, ...]
    ids: Mapping[Product, list[int]]
    runs: Mapping[Product, list[UUID]]  # of those by plan, in the order in which they are read


def read_history(product: Product) -> Read:
    """All results of a product, or as many as Bench reads. At most ten queries."""
    chosen = _chosen([product])
    return Read(_rows([product], chosen.ids), chosen.limit, chosen.cut)


def read_results(products: Sequence[Product]) -> Read:
    """What Bench shows. At most twelve queries."""
    chosen, most = _chosen(products), MAX_CELLS // max(len(products), 1)
    ids, has_more = _of_cells(chosen, most)
    rows = _rows(products, {**chosen.ids, **ids})
    newest = {product: newest_rows(product, each) for product, each in rows.items()}
    return Read(newest, chosen.limit, chosen.cut, most, has_more or newest != rows)


def _chosen(products: Sequence[Product]) -> _Chosen:
    limit, targets = MAX_RESULTS // max(len(products), 1), _targets_of(products)
    newest = _newest_ids(_conditions(products, targets), limit + 1)
    cut = tuple(product for product in products if len(newest.get(product, [])) > limit)
    by_plan = {product: targets[product] for product in cut if product in targets}
    runs = runs_by_plan(by_plan, limit) if by_plan else {}
    ids = {product: each[:limit] for product, each in newest.items()}
    return _Chosen(limit, targets, cut, {**ids, **_ids_by_plan(by_plan, runs, newest, limit)}, runs)


def _rows(products: Sequence[Product], ids: Mapping[Product, list[int]]) -> dict[Product, tuple[ResultRow, ...]]:
    known = {id_ for each in ids.values() for id_ in each}
    rows = {row.id: row for row in read_rows(results_of(known))} if known else {}
    return {
        product: tuple(_of_product(product, [rows[id_] for id_ in reversed(ids.get(product, []))]))
        for product in products
    }


def _ids_by_plan(
    targets: Targets, runs: Mapping[Product, list[UUID]], newest: Mapping[Product, list[int]], limit: int
) -> dict[Product, list[int]]:
    """Of products that have more results: those of the chosen runs, filled up with the newest others."""
    chosen = _newest_ids(
        [(product, Q(run__in=runs[product], target__in=ids)) for product, ids in targets.items()], limit
    )
    both = {product: dict.fromkeys([*chosen.get(product, []), *newest[product]]) for product in targets}
    return {product: sorted(list(ids)[:limit], reverse=True) for product, ids in both.items()}


def _of_cells(chosen: _Chosen, most: int) -> tuple[dict[Product, list[int]], bool]:
    """Of products by plan: the whole cells of the first runs, and imported results. Two queries."""
    known = {id_ for product in chosen.runs for id_ in chosen.ids[product]}
    columns = results_of(known).annotate(controller=_CONTROLLER).values_list("pk", "origin", "run", *_CELL)
    results = {pk: rest for pk, *rest in columns} if known else {}
    examples: dict[Product, list[int]] = {}
    ids = {product: [id_ for id_ in chosen.ids[product] if results[id_][0]] for product in chosen.runs}
    for product, runs in chosen.runs.items():
        places = {run: place for place, run in enumerate(runs)}
        cells: dict[tuple[object, ...], int] = {}
        for id_ in sorted(chosen.ids[product], key=lambda id_: (places.get(results[id_][1], len(runs)), -id_)):
            origin, _, *cell = results[id_]
            if not origin:
                cells.setdefault(tuple(cell), id_)
        examples[product] = [*cells.values()][:most]
    newest, has_more = newest_of_cells({id_ for each in examples.values() for id_ in each})
    for product, each in examples.items():
        ids[product] = sorted((*ids[product], *(id_ for example in each for id_ in newest[example])), reverse=True)
    return ids, has_more


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
