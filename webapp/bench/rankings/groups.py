"""Rankings of one workload: groups of values that may be compared, each in its own order.

The rule of Bench (`bench.alike`) says what is alike: drives and layouts in the same host at the same controller, hosts
and controllers over the same drives, and always the same workload in every factor, measured by the same tool. What is
not alike is a group of its own. A person can put the hosts together; each entry then names its host, and the answer
says that hosts differ.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile

from webapp.analysis.cells import Measured, cell_of
from webapp.analysis.equals import DRIVE, controller_of, host_of
from webapp.analysis.question import MARGIN
from webapp.bench.alike import PLACES, Mixed
from webapp.bench.matching import Grid
from webapp.bench.products import Product
from webapp.bench.rankings.catalogue import Load, load_of
from webapp.bench.rankings.question import Ranked
from webapp.bench.rankings.ranked_products import Products
from webapp.bench.rankings.standings import Order, Standing, order_of
from webapp.bench.workloads import P99, RATE, Panel, Workload
from webapp.core.statistics import Summary, summarise
from webapp.plans.load import LOAD, MAX
from webapp.plans.values import Value
from webapp.results.metrics import METRICS
from webapp.results.reading.doubts import kept_up
from webapp.results.reading.rows import ResultRow

Place = tuple[str, ...]  # host and controller, or the drives; empty if hosts are put together
Condition = tuple[str, Value]


@dataclass(frozen=True)
class Kind:
    """What the values of one group have in common, besides the load."""

    tool: str
    place: Place
    conditions: frozenset[Condition]  # all other factors and labels of the workload


@dataclass(frozen=True)
class Entry:
    """One value of one product. `where` is its place, also if hosts are put together."""

    product: Product
    name: str
    where: Place
    kind: Kind
    load: Load
    panel: Panel
    measured: Measured
    rows: Sequence[ResultRow] = field(compare=False)
    with_p99: Mapping[str, Sequence[ResultRow]] = field(
        default_factory=dict, compare=False
    )  # by direction, of all tools
    shares_ceiling: bool = False
    share: int | None = None  # of the highest rate in percent, in a ranking of rates within a latency
    is_last_share: bool = False  # no higher one was measured but `max`
    less_than: float | None = None  # the rate at the next share or at `max`; infinite without both

    @cached_property
    def summary(self) -> Summary:
        """The mean that is compared, and its interval."""
        return summarise(list(self.measured.values.values()), self.measured.step)

    @property
    def is_reference(self) -> bool:
        return any(row.reference for row in self.rows)

    @cached_property
    def p99_ns(self) -> float | None:
        """None if the results have none, or several directions."""
        return self._p99_ns(self.panel.direction)

    @cached_property
    def worst_p99_ns(self) -> float | None:
        """Of the directions."""
        known = [p99_ns for p99_ns in map(self._p99_ns, self.with_p99) if p99_ns is not None]
        return max(known, default=None)

    def is_within(self, limit_ns: float) -> bool:
        return self.worst_p99_ns is not None and self.worst_p99_ns <= limit_ns and all(map(kept_up, self.rows))

    def _p99_ns(self, direction: str) -> float | None:
        ids = {id_ for row in self.rows for id_ in row.ids}
        known = [row for row in self.with_p99.get(direction, ()) if row.id in ids]
        return cell_of(known, METRICS[P99]).mean if known else None

    @property
    def key(self) -> tuple[Product, Place, str]:
        """Equal for values of one product at other loads or conditions."""
        return self.product, self.where, self.kind.tool


@dataclass(frozen=True)
class Group:
    """The entries of one ranking, the best first."""

    kind: Kind
    panel: Panel
    entries: tuple[Entry, ...]
    order: Order  # its `ranked` are in the order of `entries`

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def level(self) -> tuple[Entry, ...]:
        """The entries that cannot be told from the first, or not be compared with it."""
        pairs = zip(self.entries, self.order.ranked, strict=True)
        return tuple(entry for entry, ranked in pairs if ranked.standing in (Standing.LEVEL, Standing.NOT_COMPARED))


@dataclass(frozen=True)
class Undecided:
    """A product whose results are of several drives or settings: their mean would be no value of it."""

    name: str
    mixed: Mixed


@dataclass(frozen=True)
class Cells:
    """All entries of the results that were read, at whatever load."""

    entries: tuple[Entry, ...]
    undecided: tuple[Undecided, ...]
    beyond: tuple[Entry, ...] = ()  # of products without a share within the latency: the lowest share


def cells_of(products: Products, ranked: Ranked, choice: str, *, across_hosts: bool) -> Cells:
    """`choice` is a key of CHOICES. Without queries."""
    grid = Grid(products.rows, ())
    for metric in dict.fromkeys((choice, P99)):
        grid.add(metric)
    names = {str(product): product for product in products.rows}
    entries: list[Entry] = []
    undecided: dict[str, Undecided] = {}
    p99s: dict[tuple[str, str], dict[str, Sequence[ResultRow]]] = {}
    for (panel_key, text, workload_key), rows in grid.cells.items():
        if grid.panels[panel_key].choice == P99:
            p99s.setdefault((text, workload_key), {})[grid.panels[panel_key].direction] = rows
    for (panel_key, text, workload_key), rows in grid.cells.items():
        panel, product, workload = grid.panels[panel_key], names[text], grid.workloads[workload_key]
        load = load_of(workload.point)
        if panel.choice != choice or load is None:
            continue
        for (tool, where), alike in _apart(rows, workload, ranked).items():
            if mixed := grid.mixed_in(product, alike):
                undecided.setdefault(text, Undecided(products.names[product], mixed))
                continue
            kind = Kind(tool, () if across_hosts else where, _conditions(workload))
            p99 = p99s.get((text, workload_key), {})
            value = cell_of(alike, panel.metric)
            entries.append(Entry(product, products.names[product], where, kind, load, panel, value, alike, p99))
    return Cells(tuple(entries), tuple(undecided.values()))


def _apart(rows: Iterable[ResultRow], workload: Workload, ranked: Ranked) -> dict[tuple[str, Place], list[ResultRow]]:
    """By tool and place."""
    parts: dict[tuple[str, Place], list[ResultRow]] = {}
    over_drives = ranked in (Ranked.HOST, Ranked.CONTROLLER)
    drives = str(workload.point.get(DRIVE, ""))
    for row in rows:
        where = (drives or row.model or row.target_name,) if over_drives else (host_of(row), controller_of(row))
        parts.setdefault((row.tool, where), []).append(row)
    return parts


def _conditions(workload: Workload) -> frozenset[Condition]:
    load = {"pattern", "block_size", "iodepth", "numjobs"}
    return frozenset((name, level) for name, level in workload.point.items() if name not in load | PLACES)


def within_latency(cells: Cells, load: Load, limit_ns: float) -> Cells:
    """The rates at `load` within a p99 latency: of each point's shares, the highest one up to which each share keeps up
    with its arrivals and has a mean p99 of at most `limit_ns`. The first share without a p99 ends the search as well.
    The share `max` counts only as the highest rate: its I/Os wait for earlier ones, so their latency is not that of
    arrivals."""
    points: dict[tuple[Product, Place, Kind, str], dict[int, Entry]] = {}
    for entry in cells.entries:
        share = dict(entry.kind.conditions).get(LOAD)
        if entry.load == load and isinstance(share, int):
            conditions = frozenset((name, level) for name, level in entry.kind.conditions if name != LOAD)
            kind = replace(entry.kind, conditions=conditions)
            shares = points.setdefault((entry.product, entry.where, kind, entry.panel.key), {})
            shares[share] = replace(entry, kind=kind, share=share)
    held: list[Entry] = []
    beyond: list[Entry] = []
    for shares in points.values():
        *entries, last = [shares[share] for share in sorted(shares)]
        maximum = last.summary.mean if last.share == MAX else math.inf
        entries += [last] if last.share != MAX else []
        within = list(takewhile(lambda entry: entry.is_within(limit_ns), entries))
        if within:
            is_last = len(within) == len(entries)
            above = maximum if is_last else entries[len(within)].summary.mean
            held.append(replace(within[-1], is_last_share=is_last, less_than=above))
        elif entries:
            beyond.append(entries[0])
    return replace(cells, entries=tuple(held), beyond=tuple(beyond))


def groups_of(cells: Cells, load: Load) -> list[Group]:
    """The groups at one load: own results before published ones, then the group with the best value."""
    at_load = [entry for entry in cells.entries if entry.load == load]
    direction = min((entry.panel.direction for entry in at_load), default="")  # of the latencies of a mix, reads
    by_kind: dict[tuple[Kind, str], list[Entry]] = {}
    for entry in at_load:
        if entry.panel.direction == direction:
            by_kind.setdefault((entry.kind, entry.panel.key), []).append(entry)
    groups = [_group(entries) for entries in by_kind.values()]
    curves = _curves(cells, load)
    shown = [
        _with_ceilings(group, curves) if group.panel.choice == RATE and group.first.share is None else group
        for group in groups
    ]
    metrics = Counter(group.panel.key for group in shown for _ in group.entries)  # values of one metric stand together
    return sorted(shown, key=lambda group: (-metrics[group.panel.key], *_by_value(group)))


def _by_value(group: Group) -> tuple[object, ...]:
    sign = 1 if group.panel.metric.lower_is_better else -1
    return group.first.is_reference, sign * group.first.summary.mean, group.first.name


def _group(entries: Sequence[Entry]) -> Group:
    """Equal values in the order of their names."""
    named = sorted(entries, key=lambda entry: (entry.name, entry.where))
    panel = named[0].panel
    order = order_of([[entry.measured] for entry in named], lower_is_better=panel.metric.lower_is_better)
    order = order.level_with({place for place, entry in enumerate(named) if _may_be_first(entry, named)})
    return Group(named[0].kind, panel, tuple(named[ranked.place] for ranked in order.ranked), order)


def _may_be_first(entry: Entry, entries: Sequence[Entry]) -> bool:
    """Whether its next share, at which it was not within the latency, reaches the best rate. Between two shares, nobody
    knows where the latency exceeds the limit."""
    best = max(other.summary.mean for other in entries)
    return entry.less_than is not None and entry.less_than >= best


Curve = Mapping[int, float]  # value by requests in flight


def _curves(cells: Cells, load: Load) -> Mapping[tuple[Product, Place, Kind], Curve]:
    """Of the same pattern and block size."""
    curves: dict[tuple[Product, Place, Kind], dict[int, float]] = {}
    for entry in cells.entries:
        is_alike = entry.load.pattern == load.pattern and entry.load.block_size == load.block_size
        if is_alike and entry.measured.positive:
            curves.setdefault((entry.product, entry.where, entry.kind), {})[entry.load.in_flight] = entry.summary.mean
    return curves


def _with_ceilings(group: Group, curves: Mapping[tuple[Product, Place, Kind], Curve]) -> Group:
    """A shared ceiling: two entries at one place have equal values within the margin, and neither gains more than the
    margin from the load below or above, after both had gained by a lower load. A link, a controller or equal drives
    look like this; which of them it is, the values cannot say."""
    flat = [
        entry
        for entry in group.entries
        if _is_level(entry.load.in_flight, curves.get((entry.product, entry.where, entry.kind), {}))
    ]
    sharing = {id(entry) for entry in flat for other in flat if entry is not other and _share(entry, other)}
    entries = tuple(replace(entry, shares_ceiling=id(entry) in sharing) for entry in group.entries)
    return replace(group, entries=entries)


def _is_level(in_flight: int, curve: Curve) -> bool:
    """Whether the value stays at other loads of the same product, and rises below them."""
    here = curve.get(in_flight, 0.0)
    stays = [load for load, value in curve.items() if load != in_flight and _within(value, here)]
    if not stays:
        return False
    lowest = min(*stays, in_flight)
    return any(value < here / (1 + MARGIN) for load, value in curve.items() if load < lowest)


def _share(first: Entry, second: Entry) -> bool:
    return first.where == second.where and _within(first.summary.mean, second.summary.mean)


def _within(first: float, second: float) -> bool:
    return first > 0 < second and abs(math.log(first / second)) <= math.log1p(MARGIN)


def ranked_apart(groups: Sequence[Group]) -> Iterator[str]:
    """In what the groups differ from the first one, in one or two words each."""
    first = groups[0].kind
    others = [group.kind for group in groups[1:]]
    if any(kind.tool != first.tool for kind in others):
        yield "other tools"
    if any(kind.place != first.place for kind in others):
        yield "other places"
    if any(kind.tool == first.tool and kind.conditions != first.conditions for kind in others):
        yield "other conditions"
