"""From an address of Explore to the selected results: fit the choices, add the defaults, read the results."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from webapp.analysis.comparing import MAX_SERIES, Selected, select
from webapp.analysis.default_questions import Chosen, choose_for
from webapp.analysis.dimensions import DIMENSIONS, known_dimension
from webapp.analysis.question import KEYS, MAX_SERIES_FACTORS, Pairs, ViewOptions, read_options, read_query, split
from webapp.analysis.trial_metrics import known_metric
from webapp.plans.factors import FACTORS
from webapp.plans.points import varying
from webapp.results.metrics import IOPS, METRICS
from webapp.results.reading.filter import (
    FACT_PREFIX,
    FACTOR_PREFIX,
    NOT_SET,
    UNKNOWN,
    Level,
    ResultFilter,
    read_filter,
    write_level,
)
from webapp.results.reading.query import MAX_RESULTS_READ, ResultQuery, target_points
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.results.selectors import newest_import, newest_run
from webapp.screens.explore.revision import Fitted, fitted, still_there

# The default query if results of imports are among the chosen ones.
#
# An import is rarely a complete grid: its tests can differ in drive, layout, test of the tool, labels and factors. So
# the choice is made from the levels of all rows. Metric: the one that most rows have. Charts: the pattern. x: the
# number with the most levels, else the tests of the tool. Series: what was measured, such as drive or layout, then
# dimensions that one value would otherwise mix. A factor that would still be mixed is fixed at one level; other
# dimensions cannot be fixed, because they are not filters.

PANEL, TEST, IMPORT = "pattern", "test", "imported"
PRODUCTS = ("target", "layout", "controller", "model", "host", IMPORT)
OTHERS = ("tool_version", TEST, "direction", PANEL)  # further dimensions of series
READABLE, READABLE_OF_FACTORS = 16, 8  # series
LARGE_BLOCK = 128 * 1024  # bytes: from here on, bandwidth is the usual rate (our convention)
BANDWIDTH = METRICS["bytes_per_s"].key
ELAPSED = ("real_s",)  # of the times that `time` prints, the one that users wait for
MIN_NUMBERS, MOSTLY = 3, 0.75  # levels of a label that are numbers, so that it is an axis; their least share


TABLE_LABEL = "table"
TABLE = f"{FACT_PREFIX}{TABLE_LABEL}"


def choose_for_imports(rows: Sequence[ResultRow], given: Mapping[str, Sequence[str]]) -> Chosen:
    """`given`: metric, series and panel of the address, as far as it has them."""
    if TABLE in given or TABLE in (*given.get("series", ()), *given.get("panel", ())):
        return _choose_for_tables(rows, given)
    tables = main_tables(rows)
    shown = [row for row in rows if _table(row) in tables] if tables else rows
    return replace(_choose_for_tables(shown, given), tables=tables)


def main_tables(rows: Sequence[ResultRow]) -> tuple[str, ...]:
    """The tables of an import that are compared first: the one with the most results, and those that have at least half
    of their tests in common with it. Each other table has rows and columns of its own. Empty if all would be shown, and
    for results of several imports or of runs."""
    by_table: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_table.setdefault(_table(row), []).append(row)
    if len(by_table) < 2 or len({row.imported for row in rows}) > 1 or not rows[0].imported:
        return ()
    names = dict.fromkeys(name for table_rows in by_table.values() for name in _varying(table_rows))
    shapes = {table: {_place(row, names) for row in table_rows} for table, table_rows in by_table.items()}
    main = max(by_table, key=lambda table: len(by_table[table]))
    alike = [
        table
        for table, shape in shapes.items()
        if 2 * len(shape & shapes[main]) >= max(1, min(len(shape), len(shapes[main])))
    ]
    return () if len(alike) == len(by_table) else tuple(alike)


def _table(row: ResultRow) -> str:
    return row.facts.get(TABLE_LABEL) or UNKNOWN


def _varying(rows: Sequence[ResultRow]) -> list[str]:
    """The factors and labels that differ inside one table."""
    names = dict.fromkeys(name for row in rows for name in (*row.point, *row.facts) if name != TABLE_LABEL)
    return [name for name in names if len({str(row.point.get(name, row.facts.get(name))) for row in rows}) > 1]


def _place(row: ResultRow, names: Iterable[str]) -> tuple[str, ...]:
    """What makes a test of a table the same test in another table."""
    return row.test, row.direction, *(str(row.point.get(name, row.facts.get(name))) for name in names)


def _choose_for_tables(rows: Sequence[ResultRow], given: Mapping[str, Sequence[str]]) -> Chosen:
    key = given["metric"][-1] if given.get("metric") else metric_of(rows)
    metric = known_metric(key)
    measured = [row for row in rows if metric and metric.of(row) is not None]
    choice = _Choice(measured or rows, given.get("series", ()), given.get("panel", ()))
    choice.choose()
    fixed, or_absent = choice.fixed()
    return Chosen(
        choice.x,
        ",".join(choice.series),
        choice.panel,
        fixed,
        metric="" if key == IOPS.key else key,
        or_absent=frozenset(or_absent),
    )


def metric_of(rows: Iterable[ResultRow]) -> str:
    """The metric that most rows have; of several, the one that is usual for most of their block sizes, then the first
    of IOPS, bandwidth, latencies and the tool's own."""
    counted: Counter[str] = Counter()
    usual: Counter[str] = Counter()
    for row in rows:
        usual.update([usual_rate(row)] if usual_rate(row) else [])
        counted.update(key for key, metric in METRICS.items() if metric.of(row) is not None)
        counted.update(key for key in row.metrics if key not in METRICS and known_metric(key))
    places = {key: place for place, key in enumerate(dict.fromkeys((*METRICS, *ELAPSED, *counted)))}
    return min(counted, key=lambda key: (-counted[key], -usual[key], places[key]), default=IOPS.key)


def usual_rate(row: ResultRow) -> str:
    """The rate that is usual for the block size: bandwidth of large blocks, IOPS of small ones; "" if it is unknown or
    the row does not have both."""
    size = row.point.get("block_size")
    if not isinstance(size, int) or row.iops is None or row.bytes_per_s is None:
        return ""
    return BANDWIDTH if size >= LARGE_BLOCK else IOPS.key


class _Choice:
    """The dimensions of the query, and the levels of the rows in all dimensions in which they differ."""

    def __init__(self, rows: Sequence[ResultRow], series: Sequence[str], panel: Sequence[str]) -> None:
        self._rows, self.x, self.series, self.panel = rows, "", list(series), "".join(panel[-1:])
        self._given_series = bool(series)
        self._blocks = [(row.source, row.repeat) for row in rows]
        self._factors = [name for name in varying([row.point for row in rows]) if name in FACTORS]
        labels = dict.fromkeys(f"{FACT_PREFIX}{name}" for row in rows if row.imported for name in row.facts)
        names = dict.fromkeys((*self._factors, *PRODUCTS, *OTHERS, *labels, *self.series, self.panel))
        keys_by_name = {name: [known_dimension(name).level(row).key for row in rows] for name in names if name}
        self._levels = {name: keys for name, keys in keys_by_name.items() if len({*keys}) > 1}
        self._labels = [name for name in labels if name in self._levels]

    def choose(self) -> None:
        self._choose_x()
        if not self.series:
            self._add(self._products(), most=MAX_SERIES, least=0)
        compared = bool(self.series)
        while self._add([*self._products(), *self._labels, *OTHERS], most=READABLE):
            pass
        while not compared and self._add(self._factors, most=READABLE_OF_FACTORS):
            pass
        self._drop_followers()

    def _drop_followers(self) -> None:
        """Series whose level is that of x again, such as the layout of two, three and four arrays at once: no two of
        them share a level of x, and each has one."""
        if not self._given_series and self.series:
            places = {*zip(self._cells([self.panel, self.x]), self._cells(self.series), strict=True)}
            series_at, x_of = Counter(at for at, _ in places), Counter(series for _, series in places)
            charts = {self.panel, self.x} & self._levels.keys()
            if charts and max(series_at.values()) == 1 and max(x_of.values()) == 1:
                self.series = []

    def _choose_x(self) -> None:
        """And the panel."""
        panel = self.panel or (PANEL if PANEL in self._levels and PANEL not in self.series else "")
        numbers = [name for name in (*self._factors, *self._labels) if self._is_number(name) and name != panel]
        counted = {name: self._levels_in_a_chart(name, panel) for name in numbers if name not in self.series}
        best = max(counted, key=lambda name: counted[name], default="")
        if best and counted[best] > 1:
            self.x, self.panel = best, panel
            return
        names = [name for name in (TEST, PANEL) if name in self._levels and name not in (*self.series, self.panel)]
        self.x = max(names, key=lambda name: len({*self._levels[name]}), default=self._constant())

    def _is_number(self, name: str) -> bool:
        """A numeric factor, or a label with levels such as `20 %`, that most rows have."""
        stated = [key for key in self._levels[name] if key not in ("", NOT_SET.value)]
        if 2 * len(stated) < len(self._rows):
            return False
        if name in FACTORS:
            return FACTORS[name].numeric
        numbers = [key for key in {*stated} if key[0].isdigit()]
        return len(numbers) >= MIN_NUMBERS and len(numbers) > MOSTLY * len({*stated})

    def _levels_in_a_chart(self, name: str, panel: str) -> int:
        """The most levels that a chart has."""
        charts = self._levels.get(panel, [""] * len(self._rows))
        chart_levels = {*zip(charts, self._levels[name], strict=True)}
        return max(Counter(chart for chart, _ in chart_levels).values())

    def _constant(self) -> str:
        """A dimension with one level: the block size or another number that all rows have, else the import."""
        same = [name for name, factor in FACTORS.items() if factor.numeric and all(name in r.point for r in self._rows)]
        free = [name for name in ("block_size", *same) if name in same and name not in (*self.series, self.panel)]
        return next(iter(free), IMPORT)

    def _products(self) -> list[str]:
        """Without a drive and a layout, the target of an import is only the name of the test."""
        named = any(name in self._levels for name in PRODUCTS[1:]) or not all(row.imported for row in self._rows)
        return [name for name in PRODUCTS if named or name != "target"]

    def _add(self, names: Iterable[str], *, most: int, least: int = 1) -> bool:
        """Add the dimension that separates most values, if at least `least`, as a further dimension of series."""
        used = (self.x, self.panel, *self.series)
        free = [name for name in names if name in self._levels and name not in used]
        if len(self.series) == MAX_SERIES_FACTORS:
            return False
        fitting = [name for name in free if len({*self._cells([*self.series, name])}) <= most]
        gains = {name: self._gain(name) for name in fitting}
        best = max(gains, key=lambda name: gains[name], default="")
        if not best or gains[best] < least:
            return False
        self.series.append(best)
        return True

    def _gain(self, name: str) -> int:
        """How many more values there are with this dimension. Repeats with different labels stay repeats."""
        cells = self._cells([self.x, self.panel, *self.series])
        before = list(zip(cells, self._blocks, strict=True)) if name in self._labels else cells
        return len({*zip(before, self._levels[name], strict=True)}) - len({*before})

    def _cells(self, names: Iterable[str]) -> list[tuple[str, ...]]:
        """The levels of each row."""
        columns = [self._levels[name] for name in names if name in self._levels]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self._rows)

    def fixed(self) -> tuple[dict[str, Level], set[str]]:
        """The factors that one value would mix, each at the level with which most values are left; and those of them
        that other values do not have at all: these values are left, too."""
        used, fixed, or_absent = [self.x, self.panel, *self.series], dict[str, Level](), set[str]()
        cells, left = self._cells(used), list(range(len(self._rows)))
        for name in self._factors:
            pairs = {(cells[n], self._levels[name][n]) for n in left}
            if name in used or len(pairs) == len({cell for cell, _ in pairs}):
                continue
            levels_left = _levels_to_keep(pairs)
            known = [n for n in left if self._levels[name][n] == levels_left[0]]
            fixed[name] = self._rows[known[0]].point.get(name, NOT_SET)
            or_absent.update([name] if len(levels_left) > 1 else [])
            left = [n for n in left if self._levels[name][n] in levels_left]
        return fixed, or_absent


def _levels_to_keep(pairs: Collection[tuple[tuple[str, ...], str]]) -> list[str]:
    """Of the levels of one factor in each cell: the level that most cells have, and also its absence if no cell has
    both."""
    cells: dict[str, set[tuple[str, ...]]] = {}
    for cell, level in sorted(pairs):
        cells.setdefault(level, set()).add(cell)
    absent = cells.pop(NOT_SET.value, set())
    best = max(cells, key=lambda level: len(cells[level]))
    if absent and not absent & cells[best]:
        return [best, NOT_SET.value]
    return [NOT_SET.value if len(absent) > len(cells[best]) else best]


@dataclass(frozen=True)
class Resolved:
    """`selected` is None if there are no results to choose defaults for."""

    fitted: Fitted  # the complete address, and what was dropped
    options: ViewOptions
    selected: Selected | None


def resolved(pairs: Pairs) -> Resolved:
    """Raises Refusal for a filter that cannot be read, and for too many results or series."""
    first = fitted(pairs)
    options = read_options(first.pairs)
    complete = with_defaults(first.pairs)
    if complete is None:
        return Resolved(first, options, None)
    selected = select(read_query(split(complete)[0]))
    then = still_there(complete, selected, options)
    if then.dropped:
        options = read_options(then.pairs)
        selected = select(read_query(split(then.pairs)[0]))
    return Resolved(Fitted(then.pairs, (*first.dropped, *then.dropped)), options, selected)


def with_defaults(pairs: list[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """Unchanged with an x, else with the default comparison of the chosen results, or of the newest run if none are
    chosen, or of the newest import if there is no run. None without results."""
    compared, shown = split(pairs)
    results_filter = read_filter([pair for pair in compared if pair[0] not in KEYS])
    if any(key == "x" for key, _ in compared):
        return [*pairs, *_missing_metric(compared, results_filter)]
    if results_filter == ResultFilter():
        compared = [*compared, *_newest()]
        results_filter = read_filter([pair for pair in compared if pair[0] not in KEYS])
    given: dict[str, list[str]] = {}
    for key, text in compared:
        given.setdefault(key, []).extend(name.strip() for name in text.split(",") if name.strip())
    chosen = _chosen(ResultQuery.of(results_filter), given)
    return [*compared, *_made(chosen, given), *shown] if chosen else None


def _missing_metric(compared: Pairs, results_filter: ResultFilter) -> list[tuple[str, str]]:
    """The metric of an import's default view, or the metric of runs without IOPS, such as copies, if the address has
    none."""
    if any(key == "metric" for key, _ in compared):
        return []
    results = ResultQuery.of(results_filter).results
    if not results.filter(origin__isnull=False).order_by().exists() and results.filter(iops__isnull=False).exists():
        return []
    key = metric_of(read_rows(results[:MAX_RESULTS_READ]))
    return [] if key == IOPS.key else [("metric", key)]


def _newest() -> list[tuple[str, str]]:
    if (run := newest_run()) is not None:
        return [("run", str(run))]
    imported = newest_import()
    return [] if imported is None else [("import", str(imported))]


def _chosen(query: ResultQuery, given: Mapping[str, Sequence[str]]) -> Chosen | None:
    if query.results.filter(origin__isnull=False).order_by().exists():
        return choose_for_imports(read_rows(query.results[:MAX_RESULTS_READ]), given)
    measured = target_points(query)
    if not measured:
        return None
    return choose_for(measured, given.get("series", ()), "".join(given.get("panel", ())[-1:]))


def _made(chosen: Chosen, given: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The pairs that the address lacks."""
    taken = {*given.get("series", ()), *given.get("panel", ())}
    axes = [("x", next(name for name in (chosen.x, *DIMENSIONS) if name not in taken))]
    axes += [(key, name) for key, name in (("series", chosen.series), ("panel", chosen.panel)) if name not in taken]
    made = [*axes, ("metric", chosen.metric)]
    fixed = [*chosen.fixed.items(), *((name, NOT_SET) for name in sorted(chosen.or_absent))]
    made += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in fixed]
    made += [(TABLE, name) for name in chosen.tables]
    return [pair for pair in made if pair[1] and pair[0] not in given]
