"""Results grouped into cells, and the values of each cell, one for each block.

A block is one repeat of everything in one run (`plans.expand`). Trials of a block run close together and share what
the host does at that time, so they are not independent: their mean is one observation.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from webapp.analysis.answer import Level
from webapp.analysis.dimensions import (
    ABSENT_LEVEL,
    LAYOUT_PARTS,
    MATCHED,
    PART,
    PRODUCTS,
    Dimension,
    joined,
    known_dimension,
    label_of,
    matched_level,
    part_of,
    varying_parts,
)
from webapp.analysis.equals import (
    CONTROLLER,
    DRIVE,
    HOST,
    PREFIX,
    Equals,
    Place,
    equal_places,
    is_label,
    place_of,
    places_of,
)
from webapp.analysis.question import CompareQuery
from webapp.core.statistics import mean_of
from webapp.plans.factors import CHANGE, FACTORS
from webapp.plans.points import differing, follow_from, in_order, varying
from webapp.plans.values import Value
from webapp.results.metrics import BANDWIDTH_STEP, IOPS_STEP, LATENCY_STEP, PERCENTILE_STEP, Metric
from webapp.results.reading.content import Point
from webapp.results.reading.filter import FACT_PREFIX, NOT_SET
from webapp.results.reading.rows import TEST, ResultRow, has_several_targets
from worker.contract.packing import LAST_BUCKET_NS

# Group rows into the cells of a comparison.

CellKey = tuple[str, str, str]  # keys of panel, series and x
# Levels of several factors: “none is faster than kyber” has no clear subject.
_UNCLEAR = frozenset({"", NOT_SET.value, "on", "off", "none"})


@dataclass(frozen=True)
class Grouped:
    """The rows of each cell, and the levels of each axis in display order."""

    cells: dict[CellKey, list[ResultRow]]
    panels: tuple[Level, ...]
    series: tuple[Level, ...]
    x: tuple[Level, ...]
    unstated: Mapping[str, Sequence[str]] = field(default_factory=dict)  # factors of x that an import lacks, by series


def group(rows: Sequence[ResultRow], query: CompareQuery) -> Grouped:
    panels: dict[str, tuple[Level, ...]] = {}
    series: dict[str, tuple[Level, ...]] = {}
    x: dict[str, Level] = {}
    cells: dict[CellKey, list[ResultRow]] = {}
    by_series = [known_dimension(name) for name in query.series]
    by_panel = [known_dimension(name) for name in query.panels]
    matched = Matched(_sides(rows, by_series), query) if query.x == MATCHED else None
    level_on_x = matched.level if matched else known_dimension(query.x).level
    for row in rows:
        panel = tuple([each.level(row) for each in by_panel])
        levels = tuple([each.level(row) for each in by_series])
        at = level_on_x(row)
        key = joined([level.key for level in panel], ","), joined([level.key for level in levels], ","), at.key
        if key in cells:
            cells[key].append(row)
        else:
            cells[key] = [row]
            panels.setdefault(key[0], panel)
            series.setdefault(key[1], levels)
            x.setdefault(at.key, at)
    ordered = tuple(sorted(x.values(), key=lambda level: level.order))
    unstated = matched.unstated if matched else {}
    return Grouped(cells, _charts(panels, query), _named(series, query), ordered, unstated)


def _sides(rows: Iterable[ResultRow], by_series: Sequence[Dimension]) -> dict[str, list[ResultRow]]:
    """The rows of each series, by its key."""
    sides: dict[str, list[ResultRow]] = {}
    for row in rows:
        sides.setdefault(joined([each.level(row).key for each in by_series], ","), []).append(row)
    return sides


# Series that contain their targets: run 17 is of loop0. Their targets are matched only if one of them has several.
OF_TARGETS = frozenset({"run", "configuration", "layout", "imported"})


class Matched:
    """The levels of x = `matched`: what must be equal and varies, except what series or charts name, and what a
    compared change or part of a layout contains."""

    def __init__(
        self, sides: Mapping[str, Sequence[ResultRow]], query: CompareQuery, ignored: Collection[str] = ()
    ) -> None:
        """`sides`: rows by the key of their series. Factors in `ignored` need not be equal either."""
        self._used = {*query.series, *query.panels}
        self._sides = sides
        rows = [row for side_rows in sides.values() for row in side_rows]
        points = list({row.point_key: row.point for row in rows}.values())
        contained = follow_from(CHANGE, points) if CHANGE in self._used else set[str]()
        self._layout_parts: tuple[str, ...] = ()
        self._part_levels: dict[tuple[str, str], Level] = {}
        if not self._used.isdisjoint(LAYOUT_PARTS):
            contained.add("layout")
            lines = {row.layout for row in rows}
            self._layout_parts = tuple(name for name in varying_parts(lines) if name not in self._used)
            parts = [(name, part_of(name, line)) for name in self._layout_parts for line in lines]
            self._part_levels = {(name, level.key): level for name, level in parts}
        self._by_target = self._is_by_target()
        self._places = self._places_apart(equal_places(query.series))
        contained |= set(ignored)
        without = frozenset(map(_in_points, query.series)) | contained
        self._equals = Equals(self._sides, without=lambda _: without, place_of=lambda _, row: self._place(row))
        self._full_points = {
            id_: self._equals.points[side, test]
            for side, tests in self._equals.tests.items()
            for id_, test in tests.items()
        }
        self._levels = self._levels_of(contained)

    def level(self, row: ResultRow) -> Level:
        return self._levels[self._full_points[row.id].key]

    def point(self, row: ResultRow) -> dict[str, Value]:
        """What must be equal at the level of this result; labels have the names of dimensions."""
        return {_as_dimension(name): value for name, value in self._full_points[row.id].point.items()}

    @property
    def unstated(self) -> dict[str, list[str]]:
        """The factors that results of imports do not state, of the full points with which they are compared."""
        names = {
            side: {
                name
                for row in side_rows
                if row.imported
                for name in self._full_points[row.id].point.keys() - row.point.keys()
                if name in FACTORS
            }
            for side, side_rows in self._sides.items()
        }
        return {side: in_order(each) for side, each in names.items() if each}

    def _is_by_target(self) -> bool:
        if not self._used.isdisjoint(PRODUCTS):
            return False
        rows = [row for side_rows in self._sides.values() for row in side_rows]
        if self._used.isdisjoint(OF_TARGETS):
            return len({row.target_name for row in rows}) > 1
        return not any(row.imported for row in rows) and any(map(has_several_targets, self._sides.values()))

    def _places_apart(self, names: Sequence[str]) -> list[str]:
        """Those of which one side has several: each is then compared by itself."""
        return [name for name in names if any(len(places_of(rows, [name])) > 1 for rows in self._sides.values())]

    def _place(self, row: ResultRow) -> dict[str, Value]:
        of_target: dict[str, Value] = {"target": row.target_name} if self._by_target else {}
        return (
            of_target
            | place_of(row, self._places)
            | {name: part_of(name, row.layout).key for name in self._layout_parts}
        )

    def _levels_of(self, contained: Collection[str]) -> dict[str, Level]:
        """By key of the full point. What only some results of imports state tells their cells apart too."""
        points = {full.key: full.point for full in self._full_points.values()}
        imported = {
            full.key: full.point
            for side_rows in self._sides.values()
            for row in side_rows
            if row.imported and (full := self._full_points[row.id])
        }
        left_out = {*map(_in_points, self._used), *contained, *_ATTRIBUTES}
        names = in_order({*varying(points.values()), *differing([*imported.values()])} - left_out)
        names = [name for name in names if name in FACTORS or is_label(name)]
        attributes = [name for name in _ATTRIBUTES if name not in self._used]
        return {key: self._level_at(point, names, attributes) for key, point in points.items()}

    def _level_at(self, point: Mapping[str, Value], names: Sequence[str], attributes: Iterable[str]) -> Level:
        parts = [self._part_levels[name, str(point[name])] for name in self._layout_parts]
        levels = [_level_of(name, point) for name in names]
        others = tuple(str(point[name]) for name in attributes if name in point)
        return matched_level((*map(_as_dimension, names), *self._layout_parts), (*levels, *parts), others)


_ATTRIBUTES = (
    "target",
    HOST,
    CONTROLLER,
    DRIVE,
    TEST,
    PART,
)  # in full points, beside factors, labels and parts of layouts


def _in_points(name: str) -> str:
    """The name of a dimension as in points: `label:fill level` for `fact.fill level`."""
    return f"{PREFIX}{name.removeprefix(FACT_PREFIX)}" if name.startswith(FACT_PREFIX) else name


def _as_dimension(name: str) -> str:
    return f"{FACT_PREFIX}{name.removeprefix(PREFIX)}" if is_label(name) else name


def _level_of(name: str, point: Mapping[str, Value]) -> Value | Level:
    """ABSENT_LEVEL where a point has none; a label with its name."""
    if name not in point or not is_label(name):
        return point.get(name, ABSENT_LEVEL)
    return Level(str(point[name]), f"{name.removeprefix(PREFIX)} {point[name]}", None)


def levels_of(key: str) -> list[str]:
    """The keys of several levels that `dimensions.joined` made one."""
    parts, escaped = [""], False
    for letter in key:
        if escaped or letter not in ",\\":
            parts[-1], escaped = parts[-1] + letter, False
        elif letter == "\\":
            escaped = True
        else:
            parts.append("")
    return parts


def _charts(panels: dict[str, tuple[Level, ...]], query: CompareQuery) -> tuple[Level, ...]:
    """In the order of their levels. `4 KiB` is clear in the title of a chart, `32` is not."""
    ordered = sorted(panels.items(), key=lambda item: [level.order for level in item[1]])
    names = {key: ", ".join(map(clear_text, query.panels, levels)) for key, levels in ordered}
    return tuple(Level(key, name, None) for key, name in names.items())


def _named(series: dict[str, tuple[Level, ...]], query: CompareQuery) -> tuple[Level, ...]:
    """In the order of their levels. A number is preceded by the label of its factor, also with a unit."""
    ordered = sorted(series.items(), key=lambda item: [level.order for level in item[1]])
    return tuple(Level(key, _name(levels, query.series) or "all", None) for key, levels in ordered)


def _name(levels: Sequence[Level], names: Sequence[str]) -> str:
    pairs = zip(names, levels, strict=True)
    return ", ".join(
        level.text if level.number is None and _is_word(level) else f"{label_of(name)} {level.text}"
        for name, level in pairs
    )


def clear_text(name: str, level: Level) -> str:
    """The text of a level, which a reader understands without the axis: `4 KiB`, but `Queue depth 32`."""
    return level.text if is_clear(level) else f"{label_of(name)} {level.text}"


def is_clear(level: Level) -> bool:
    """Whether its text is a word, or a number with a unit."""
    return _is_word(level) if level.number is None else any(map(str.isalpha, level.text))


def _is_word(level: Level) -> bool:
    """Whether a level is clear without the label of its factor: `io_uring`, but not `on` or `none`."""
    return level.key not in _UNCLEAR


# Total latency and completion latency, which leaves out the time of the submission: values that are not compared.
#
# Our own runs measure total latency, with few exceptions; fio's own defaults, and so many imports, have percentiles
# of completion latency (decision 7).

LABELS = {"lat": "total latency", "clat": "completion latency"}
NOT_COMPARED = "one latency includes the time of the submission and the other does not"
Kinds = frozenset[str]


def kinds_of(rows: Iterable[ResultRow], metric: Metric) -> Kinds:
    """Empty for other metrics, and for tools that do not say what they measure."""
    if metric.shown_as != "latency" or not metric.column:
        return frozenset()
    return frozenset([row.latency_kind for row in rows]) - {""}


def mixed_kinds(series: Mapping[str, Kinds]) -> str:
    """A warning if series have different kinds of latency, or a series has both; else "". Keys are names."""
    if len(frozenset().union(*series.values())) < 2:
        return ""
    each = "; ".join(
        f"{name}: {' and '.join(map(LABELS.__getitem__, sorted(kinds)))}" for name, kinds in series.items() if kinds
    )
    return (
        f"Latencies of different kinds ({each}). Completion latency leaves out the time of the submission, so these "
        "values are not compared."
    )


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
    places: frozenset[Place] = frozenset()  # that both sides must share (analysis.equals)
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
    my_levels, others = ({repr(sorted(_only(point, mixed))) for point in each} for each in (mine, theirs))
    return my_levels == others


def other_levels(pairs: Iterable[tuple[Measured, Measured]]) -> list[str]:
    """The factors, or the target, of which two cells are means over different levels."""
    names: set[str] = set()
    for pair in pairs:
        if not same_levels(pair[0].points, pair[1].points):
            names |= differing(pair[0].points) | differing(pair[1].points)
        if not pair[0].same_targets(pair[1]):
            names.add("target")
    return in_order(names)


def _only(point: Point, names: Collection[str]) -> Iterator[tuple[str, str]]:
    return ((name, repr(level)) for name, level in point.items() if name in names)


def with_points(
    cells: Mapping[CellKey, Measured], grouped: Grouped, places: Collection[str]
) -> dict[CellKey, Measured]:
    """For cells that may cover several workloads. `places`: what both sides must share (`places.equal_places`)."""
    return {
        key: replace(cell, points=points_of(grouped.cells[key]), places=places_of(grouped.cells[key], places))
        for key, cell in cells.items()
    }


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


def mean_in(rows: Sequence[ResultRow], metric: Metric) -> float:
    """Of one cell, as `cell_of`."""
    return mean_of([_mean(each) for each in _block_values(rows, metric).values()])


def _block_values(rows: Sequence[ResultRow], metric: Metric) -> dict[Block, list[float]]:
    values: dict[Block, list[float]] = {}
    for row in rows:
        values.setdefault((row.source, row.repeat), []).append(metric.of(row) or 0.0)
    return values


def cell_of(rows: Sequence[ResultRow], metric: Metric) -> Measured:
    """The rows of one cell, by block."""
    blocks: dict[Block, list[ResultRow]] = {}
    for row in rows:
        blocks.setdefault((row.source, row.repeat), []).append(row)
    block_values = _block_values(rows, metric)
    values = {block: _mean(each) for block, each in block_values.items()}
    zeros = sum(value == 0 for block, each in block_values.items() if values[block] for value in each)
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
    """Of a value without counts, the printed digits; two of them if these are unknown. A metric of the tool's own is
    stored as it was printed, without zeros at its end."""
    if row.imported and row.ios is None:
        value = metric.of(row) or 0.0
        printed = row.metrics.get(_RATE_STEPS[metric.key]) if metric.column else _last_digit(value)
        return _share(printed, value) if printed else 1 / PRINTED_STEPS
    counts = (row.ios, row.runtime_ms) if metric.adds_up else (row.runtime_ms,)
    least = min([PRINTED_STEPS if count is None else count for count in counts])
    return min(1 / least, 1.0) if least > 0 else 1.0


def _last_digit(value: float) -> float:
    """0.1 of 4.2, 1 of 348 and of 350."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return 10.0 ** min(exponent, 0) if isinstance(exponent, int) else 0.0


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
