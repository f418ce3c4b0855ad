"""How many workloads each product shares with another one: the number of shared workloads on their page of Bench.

Workloads are placed by the grid of Bench, for each pair. Only the rows that decide are placed: one trial of equal ones,
and points that agree in the main factors that both state. Two products that share none may share some at one level of a
setting, which Bench offers (`nearest`).
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice

import msgspec

from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN
from webapp.analysis.seals import ANY_RESULT
from webapp.bench.alike import OF_TARGETS, level_of
from webapp.bench.matching import shared_workloads
from webapp.bench.nearest import levels_to_hold, own_levels
from webapp.bench.picking import offered
from webapp.bench.products import Kind, Product, is_part
from webapp.core.answers import Question, all_answered
from webapp.plans.factors import STREAM
from webapp.plans.values import Value
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, has_several_targets, parts_are_alike, read_rows

MAX_READ = 6_000  # the newest results of runs, and as many imported ones
MOST_LEVELS = 4  # that are tried for two products that share nothing
_MAIN = (PATTERN, BLOCK, JOBS, DEPTH)
Main = tuple[Value | None, ...]
Step = tuple[str, str]


class Overlap(msgspec.Struct, frozen=True):
    """`shared`: workloads by product, as in an address. With `is_cut`, not all results were read: a product may share
    more, and one without a number shares none of those read. `steps`: the factor and level at which they are
    shared, of products that share none without it."""

    shared: dict[str, int]
    is_cut: bool
    steps: dict[str, Step]


def overlap(chosen: Sequence[Product]) -> Overlap:
    """The largest number of workloads that each other product shares with one of the chosen ones. Stored for each
    chosen product until results change."""
    questions = [Question((str(product),), ANY_RESULT, Overlap, partial(_overlap, product)) for product in chosen]
    overlaps = all_answered(questions)
    best: dict[str, tuple[bool, int, Step | tuple[()]]] = {}  # whether it needs no step, the workloads, the step
    for each in overlaps:
        for name, count in each.shared.items():
            step = each.steps.get(name, ())
            best[name] = max((not step and count > 0, count, step), best.get(name, (False, 0, ())))
    for product in chosen:
        best.pop(str(product), None)
    return Overlap(
        {name: count for name, (_, count, _) in best.items()},
        any(each.is_cut for each in overlaps),
        {name: step for name, (_, _, step) in best.items() if step},
    )


def _overlap(product: Product) -> Overlap:
    rows, is_cut = _newest_rows()
    others = {offer.product for group in offered() for offer in group.offers} - {product}
    sides = _sides(rows, {product, *others})
    mine = sides[product]
    mains = {key: main for side in sides.values() for key, main in side.mains.items()}
    compatible = _compatible(mains, mine.mains)
    shared = {str(other): _shared(mine, sides[other], compatible) for other in others}
    return Overlap(
        {name: count for name, (count, _) in shared.items() if count or not is_cut},
        is_cut,
        {name: step for name, (_, step) in shared.items() if step},
    )


def _newest_rows() -> tuple[list[ResultRow], bool]:
    """With whether there are more."""
    valid = Result.objects.filter(invalid=False).order_by("-measured_at", "-id")
    read = [read_rows(valid.filter(origin__isnull=is_run)[: MAX_READ + 1]) for is_run in (True, False)]
    return [row for rows in read for row in rows[:MAX_READ]], any(len(rows) > MAX_READ for rows in read)


@dataclass(frozen=True)
class _Side:
    """The rows of one product. A place can depend on rows of other points; then `is_whole`: all rows are placed."""

    product: Product
    rows: Sequence[ResultRow]
    every: Sequence[ResultRow]  # also equal trials, which may differ in what was observed
    is_whole: bool

    @cached_property
    def mains(self) -> dict[str, Main]:
        """The levels of the main factors by point; None if it does not state one."""
        return {row.point_key: tuple(row.point.get(name) for name in _MAIN) for row in self.rows}

    def at(self, keys: Collection[str]) -> Sequence[ResultRow]:
        return self.rows if self.is_whole else [row for row in self.rows if row.point_key in keys]


def _compatible(mains: Mapping[str, Main], others: Mapping[str, Main]) -> dict[str, frozenset[str]]:
    """For each point, those of `others` that may be equal to it: main factors that both state have one level."""
    keys_by_main: dict[Main, set[str]] = {}
    for key, main in others.items():
        keys_by_main.setdefault(main, set()).add(key)
    keys_of = {
        main: frozenset(key for other, keys in keys_by_main.items() if _may_be_equal(main, other) for key in keys)
        for main in set(mains.values())
    }
    return {key: keys_of[main] for key, main in mains.items()}


def _may_be_equal(main: Main, other: Main) -> bool:
    return all(a == b or a is None or b is None for a, b in zip(main, other, strict=True))


def _shared(mine: _Side, other: _Side, compatible: Mapping[str, frozenset[str]]) -> tuple[int, Step | None]:
    """With the step that is needed for it."""
    keys = {key for key in other.mains if compatible[key]}
    if not keys:
        return 0, None
    my_keys = {my_key for key in keys for my_key in compatible[key]}
    count = shared_workloads({mine.product: mine.at(my_keys), other.product: other.at(keys)})
    return (count, None) if count else _shared_at_a_level(mine, my_keys, other, keys)


def _shared_at_a_level(
    mine: _Side, my_keys: Collection[str], other: _Side, keys: Collection[str]
) -> tuple[int, Step | None]:
    """At the first level that Bench would try."""
    rows = {
        mine.product: [row for row in mine.every if row.point_key in my_keys],
        other.product: [row for row in other.every if row.point_key in keys],
    }
    apart = tuple(levels.factor for levels in own_levels(rows, ()) if levels.ignorable)
    for factor, level in islice(levels_to_hold(rows, apart), MOST_LEVELS):
        held = {product: [row for row in side if level_of(row, factor) == level] for product, side in rows.items()}
        if count := shared_workloads(held, {factor}):
            return count, (factor, level)
    return 0, None


def _sides(rows: Iterable[ResultRow], products: Collection[Product]) -> dict[Product, _Side]:
    """Of own trials of a product that differ only in their values or run, the first one, unless a run has parts with
    equal points."""
    parts: dict[int, list[Product]] = {}
    for product in products:
        if product.part:
            parts.setdefault(product.number, []).append(product)
    trials: dict[Product, dict[Hashable, list[ResultRow]]] = {product: {} for product in products}
    every: dict[Product, list[ResultRow]] = {product: [] for product in products}
    for trial in _trials(rows):
        first = trial[0]
        values = frozenset((row.direction, row.point_key, row.iops is None, row.bytes_per_s is None) for row in trial)
        kind: Hashable = first.id if first.imported else (first.target_name, first.controller, first.part, values)
        for product in _products_of(first, parts.get(first.imported, ())):
            if product in trials:
                trials[product].setdefault(kind, trial)
                every[product] += trial
    return {product: _side(product, trials[product], every[product]) for product in products}


def _side(product: Product, trials: Mapping[Hashable, list[ResultRow]], every: Sequence[ResultRow]) -> _Side:
    if parts_are_alike(every):
        return _Side(product, every, every, is_whole=True)
    rows = [row for trial in trials.values() for row in trial]
    is_whole = product.kind in OF_TARGETS and has_several_targets(rows)
    return _Side(product, rows, every, is_whole)


def _trials(rows: Iterable[ResultRow]) -> Iterable[list[ResultRow]]:
    """The directions of each trial, or of each of its streams."""
    trials: dict[object, list[ResultRow]] = {}
    for row in rows:
        trials.setdefault((row.source, row.trial, row.point.get(STREAM)), []).append(row)
    return trials.values()


def _products_of(row: ResultRow, parts: Iterable[Product]) -> Iterator[Product]:
    """`parts`: those of its import. As in `reading`: a published table belongs to no drive, host or layout."""
    if row.imported:
        yield Product(Kind.IMPORT, str(row.imported))
        yield from (product for product in parts if is_part(row, product.part))
    else:
        yield Product(Kind.RUN, str(row.run))
        yield Product(Kind.TARGET, row.target_name)
        yield Product(Kind.CONFIGURATION, row.configuration[:10])
    if not row.reference:
        yield Product(Kind.MODEL, row.model)
        yield Product(Kind.SERIAL, row.serial)
        yield Product(Kind.CONTROLLER, row.controller)
        yield Product(Kind.HOST, row.host)
        yield Product(Kind.LAYOUT, row.layout)
