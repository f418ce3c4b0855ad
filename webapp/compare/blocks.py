"""The values of a cell, one for each block.

A block is one repeat of everything in one run (`plans.expand`). Trials of a block run close together and share what
the host does at that time, so they are not independent: their mean is one observation.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from webapp.compare.grouping import CellKey, Grouped
from webapp.compare.latency_kinds import Kinds, kinds_of
from webapp.core.statistics import mean_of
from webapp.plans.varying import differing, in_order
from webapp.results.metrics import BANDWIDTH_STEP, IOPS_STEP, LATENCY_STEP, PERCENTILE_STEP, Metric
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow
from worker.contract.histogram import LAST_BUCKET_NS

Block = tuple[int, int]  # the run or import (results.reading.rows.ResultRow.source), and the repeat

# Percentiles are read from histogram buckets, which are at most this wide relative to their value (contract.histogram).
BUCKET_WIDTH = 1 / 64
PRINTED_STEPS = 10  # 10 to 99: the fewest steps of a number with two digits
PERCENTILES = frozenset({"p50_ns", "p95_ns", "p99_ns", "p999_ns"})


@dataclass(frozen=True)
class Measured:
    """One cell. `values` and `at` are arithmetic means over the rows of each block."""

    values: Mapping[Block, float]
    at: Mapping[Block, float]  # when the block's trials were measured, in Unix seconds; missing if unknown
    step: float  # resolution of a value relative to it, as 0.016
    balanced: bool  # every block has the same workloads, and every block of a run the same targets
    kinds: Kinds = frozenset()  # of latencies
    points: tuple[Point, ...] = ()  # the different ones, if cells of other points are not comparable
    targets: frozenset[str] = frozenset()
    ids: frozenset[int] = frozenset()  # of the results, if cells may have some in common
    zeros_inside: int = 0  # results of 0 in blocks whose mean is above 0: one of several levels or targets

    def same_kind(self, other: "Measured") -> bool:
        """Whether both are one kind of latency, as far as their tools say it."""
        return len(self.kinds | other.kinds) < 2

    def same_points(self, other: "Measured") -> bool:
        """Whether both are means over the same levels, and over the same targets unless they have none in common."""
        return same_levels(self.points, other.points) and self.same_targets(other)

    def same_targets(self, other: "Measured") -> bool:
        """False if only some targets are on both sides: the mean of one lacks a target of the other. Products that are
        compared, such as drives, have no target in common."""
        return self.targets == other.targets or self.targets.isdisjoint(other.targets)

    def independent(self, other: "Measured") -> bool:
        """Whether no result is on both sides: it would be compared with itself."""
        return self.ids.isdisjoint(other.ids)

    @property
    def positive(self) -> bool:
        return min(self.values.values()) > 0

    @property
    def mean(self) -> float:
        """Over the blocks: the number that is shown, and whose ratio is compared."""
        return mean_of(list(self.values.values()))


def same_levels(mine: Sequence[Point], theirs: Sequence[Point]) -> bool:
    """Whether the points of both sides cover the same levels. Factors with one level on each side may differ: they
    confound the comparison, but do not change what a mean covers."""
    if len(mine) < 2 and len(theirs) < 2:
        return True
    mixed = differing(mine) | differing(theirs)
    own, others = ({repr(sorted(_only(point, mixed))) for point in each} for each in (mine, theirs))
    return own == others


def other_levels(pairs: Iterable[tuple[Measured, Measured]]) -> list[str]:
    """The factors, or the target, of which two cells are means over different levels."""
    found: set[str] = set()
    for pair in pairs:
        if not same_levels(pair[0].points, pair[1].points):
            found |= differing(pair[0].points) | differing(pair[1].points)
        if not pair[0].same_targets(pair[1]):
            found.add("target")
    return in_order(found)


def _only(point: Point, names: Collection[str]) -> Iterator[tuple[str, str]]:
    return ((name, repr(level)) for name, level in point.items() if name in names)


def with_points(cells: Mapping[CellKey, Measured], grouped: Grouped) -> dict[CellKey, Measured]:
    """For cells that may cover several workloads."""
    return {key: replace(cell, points=points_of(grouped.cells[key])) for key, cell in cells.items()}


def with_ids(cells: Mapping[CellKey, Measured], grouped: Grouped) -> dict[CellKey, Measured]:
    """For cells that may have results in common."""
    return {
        key: replace(cell, ids=frozenset(id_ for row in grouped.cells[key] for id_ in row.ids))
        for key, cell in cells.items()
    }


def points_of(rows: Iterable[ResultRow]) -> tuple[Point, ...]:
    """Each point once."""
    return tuple({row.point_key: row.point for row in rows}.values())


def measured(grouped: Grouped, metric: Metric) -> dict[CellKey, Measured]:
    return {key: cell_of(rows, metric) for key, rows in grouped.cells.items()}


def cell_of(rows: Sequence[ResultRow], metric: Metric) -> Measured:
    """The rows of one cell, by block."""
    blocks: dict[Block, list[ResultRow]] = {}
    for row in rows:
        blocks.setdefault((row.source, row.repeat), []).append(row)
    own = {block: [metric.of(row) or 0.0 for row in each] for block, each in blocks.items()}
    values = {block: _mean(each) for block, each in own.items()}
    zeros = sum(value == 0 for block, each in own.items() if values[block] for value in each)
    known = {block: each for block, each in blocks.items() if all(row.time_known for row in each)}
    at = {block: _mean([row.measured_at.timestamp() for row in each]) for block, each in known.items()}
    targets = frozenset([row.target_name for row in rows])
    step, kinds = _step(rows, metric), kinds_of(rows, metric)
    return Measured(values, at, step, _is_balanced(blocks), kinds, targets=targets, zeros_inside=zeros)


def _mean(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else sum(values) / len(values)


def _is_balanced(blocks: Mapping[Block, Sequence[ResultRow]]) -> bool:
    """Runs may differ in their targets: these are repeats on other drives. Of one run, a block without one of several
    targets has another mean because of what it lacks."""
    points = {frozenset([row.point_key for row in each]) for each in blocks.values()}
    places = {(source, frozenset([_place(row) for row in each])) for (source, _), each in blocks.items()}
    return len(points) == 1 and len(places) == len({source for source, _ in blocks})


def _place(row: ResultRow) -> tuple[str, str]:
    return row.point_key, row.target_name


def _step(rows: Sequence[ResultRow], metric: Metric) -> float:
    """The smallest step: a histogram bucket for percentiles, 1 ns for other latencies, one I/O or 1 ms for rates, the
    last printed digit for what a tool prints without counts."""
    if metric.shown_as == "latency":
        return max([_latency_step(row, metric) for row in rows])
    return max([_rate_step(row, metric) for row in rows])


_RATE_STEPS = {"iops": IOPS_STEP, "bytes_per_s": BANDWIDTH_STEP}


def _rate_step(row: ResultRow, metric: Metric) -> float:
    """Of a value without counts, the printed digits; two of them if these are unknown."""
    if row.imported and row.ios is None:
        printed = row.metrics.get(_RATE_STEPS.get(metric.key, ""))
        return _share(printed, metric.of(row) or 0.0) if printed else 1 / PRINTED_STEPS
    counts = (row.ios, row.runtime_ms) if metric.adds_up else (row.runtime_ms,)
    least = min([PRINTED_STEPS if count is None else count for count in counts])
    return min(1 / least, 1.0) if least > 0 else 1.0


def _latency_step(row: ResultRow, metric: Metric) -> float:
    """Above 17 s, a percentile is only a lower bound."""
    value, is_percentile = metric.of(row) or 0.0, metric.column in PERCENTILES
    if is_percentile and value == LAST_BUCKET_NS:
        return 1.0
    step = BUCKET_WIDTH if is_percentile else _share(1, value)
    if not row.imported or not metric.column:
        return step
    printed = (row.metrics.get(PERCENTILE_STEP) if is_percentile else None) or row.metrics.get(LATENCY_STEP)
    if printed:
        return max(step, _share(printed, value))
    return max(step, 1 / PRINTED_STEPS) if row.ios is None else step


def _share(step: float, value: float) -> float:
    return min(step / value, 1.0) if value > 0 else 1.0
