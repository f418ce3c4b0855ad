"""Judge the results of one filter against those of another. Filters are those of `GET /results`.

A verdict asks the question of the page Explore whose series are the two sides and whose x is everything else: results
are compared where all is equal in which the filters do not differ (`analysis.equals`). So
`factor.scheduler=none` is judged against `factor.scheduler=bfq`. `ignored` names further factors that need not be
equal; UNSTATED stands for all that only one side states, such as the options of fio against a published table.

A cell that would be a mean over different results, such as those of several drives, has no value. A side that has only
such cells is refused.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qsl

from webapp.analysis.answer import Level
from webapp.analysis.cells import OF_TARGETS, CellKey, Grouped, Matched, measured, with_points
from webapp.analysis.default_questions import questions_of_run
from webapp.analysis.dimensions import LABEL, MATCHED, PART, PRODUCTS, label_of
from webapp.analysis.equals import CONTROLLER, equal_places, same_for_all
from webapp.analysis.mixtures import mixed_cells, mixture_sentence, mixtures_of
from webapp.analysis.question import CompareQuery
from webapp.analysis.trial_metrics import COMPARED, known_metric, metric_named, with_observed
from webapp.analysis.verdicts import Cells, Outcome, Row, judge, limits_of, outcome_of
from webapp.analysis.words import unstated_sentence
from webapp.core.errors import NotFound, Refusal
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS, closest
from webapp.plans.points import in_order, varying
from webapp.plans.values import Value
from webapp.results.reading.content import Point
from webapp.results.reading.doubts import unfinished_sentences
from webapp.results.reading.filter import FACT_PREFIX, FACTOR_PREFIX, NOT_SET, ResultFilter, read_filter, write_level
from webapp.results.reading.newest import is_of_products, newest_of, newest_words
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES

# One side of a verdict: the results that a filter of `GET /results` finds.

TARGET, LABEL_PREFIX = "target", "label."
_NUMBERED = re.compile(r"\A(run|import)=(\d+)\Z", re.ASCII)  # a side that is one run or import: `run 17`
MAX_RESULTS = 20_000  # of each side


@dataclass(frozen=True)
class Side:
    """`levels` are those that the filter names, by dimension; `name` stands for the side in sentences."""

    levels: Mapping[str, Collection[str]]
    rows: Sequence[ResultRow]
    name: str

    @property
    def factors(self) -> list[str]:
        """Those that the filter names."""
        return [name for name in self.levels if name in FACTORS]


def read_side(name: str, text: str) -> Side:
    """`name` is baseline or candidate, for errors. Raises Refusal."""
    wanted = read_filter(parse_qsl(text, keep_blank_values=True))
    if wanted == ResultFilter():
        raise Refusal("filter_missing", f"The {name} has no filter. Write for example run=17 or run=17&host=a.")
    _check_runs(wanted.runs)
    rows = read_rows(ResultQuery.of(wanted).results.order_by("id")[: MAX_RESULTS + 1])
    if len(rows) > MAX_RESULTS:
        raise Refusal("too_many_results", f"More than {MAX_RESULTS:,} results match a side. Choose runs or targets.")
    return Side(_levels_in(wanted), rows, _NUMBERED.sub(r"\1 \2", text))


def _levels_in(wanted: ResultFilter) -> dict[str, frozenset[str]]:
    """By dimension. A direction, a repeat and a steadiness are no question of their own."""
    levels = {
        "run": wanted.runs, "imported": wanted.imports, "host": wanted.hosts, "target": wanted.targets,
        "model": wanted.models, "serial": wanted.serials, "controller": wanted.controllers, "layout": wanted.layouts,
        "tool": wanted.tools, "tool_version": wanted.tool_versions, "configuration": wanted.configurations,
        "plan": wanted.plans, PART: wanted.parts, LABEL: wanted.labels,
        **{name: [write_level(name, level) for level in levels] for name, levels in wanted.factors.items()},
        **{f"{FACT_PREFIX}{name}": texts for name, texts in wanted.facts.items()},
    }  # fmt: skip
    return {name: frozenset(map(str, texts)) for name, texts in levels.items() if texts}


def _check_runs(numbers: Collection[int]) -> None:
    states = dict(Run.objects.filter(number__in=numbers).values_list("number", "state"))
    for number in numbers:
        if number not in states:
            raise NotFound("run_unknown", f"There is no run {number}.")
        if states[number] not in ENDED_RUN_STATES:
            raise Refusal("run_open", f"Run {number} has not ended. Wait for its end.")


def at_levels(side: Side, levels: Mapping[str, str]) -> tuple[dict[str, str], Side]:
    """The levels that exist in the side, and its rows at these levels. `levels` has a text for each of `target`,
    `factor.<name>` and, of an import, `label.<name>`."""
    known = {name: text for name, text in levels.items() if text and _is_level(name)}
    existing = {name: text for name, text in known.items() if text in levels_of(side.rows, name)}
    chosen = {_as_dimension(name): frozenset([text]) for name, text in existing.items()}
    rows = [row for row in side.rows if all(level_of(row, name) == text for name, text in existing.items())]
    return existing, Side({**side.levels, **chosen}, rows, side.name)


def _as_dimension(name: str) -> str:
    if name.startswith(LABEL_PREFIX):
        return f"{FACT_PREFIX}{name.removeprefix(LABEL_PREFIX)}"
    return name.removeprefix(FACTOR_PREFIX)


def import_side(number: int, levels: Mapping[str, str]) -> Side:
    """The results of an import at these levels. Raises Refusal if it has none at one of them: without this level, other
    results would be judged."""
    existing, side = at_levels(read_side("baseline", f"import={number}"), levels)
    missing = [f"{name}={text}" for name, text in levels.items() if name not in existing]
    if missing:
        words = f"Import {number} has no valid results at {', '.join(missing)}. Choose another level."
        raise Refusal("level_unknown", words)
    return side


def levels_of(rows: Iterable[ResultRow], name: str) -> set[str]:
    return {level_of(row, name) for row in rows}


def _is_level(name: str) -> bool:
    of_factor = name.startswith(FACTOR_PREFIX) and name.removeprefix(FACTOR_PREFIX) in FACTORS
    return of_factor or name == TARGET or name.startswith(LABEL_PREFIX)


def level_of(row: ResultRow, name: str) -> str:
    """Of `target`, `factor.<name>` or `label.<name>`; "" for a row without this label."""
    if name == TARGET:
        return target_of(row)
    if name.startswith(LABEL_PREFIX):
        return row.facts.get(name.removeprefix(LABEL_PREFIX), "") if row.imported else ""
    factor = name.removeprefix(FACTOR_PREFIX)
    return write_level(factor, row.point[factor]) if factor in row.point and factor in FACTORS else NOT_SET.value


def target_of(row: ResultRow) -> str:
    """host/target. Without labels of a drive or layout, the target of an import is all that it measured:
    `target_name` is then the name of the test."""
    if row.imported and not (row.model or row.layout):
        return row.host or row.source_name
    return row.target_name


# Tolerances: the largest change for the worse that passes, in percent, by metric.

DEFAULT_TOLERANCES = {"iops": 5.0, "latency_p99": 10.0}
MIN_TOLERANCE, MAX_TOLERANCE = 0.1, 1000.0
MAX_LOSS = 99.0  # of a metric of which higher is better


def checked_tolerances(tolerances: Mapping[str, float]) -> dict[str, float]:
    """In the order of the table of metrics (`analysis.trial_metrics`), then entered ones. Raises Refusal."""
    if not tolerances:
        raise Refusal("tolerance_missing", "Enter a tolerance for at least one metric.")
    for key, percent in tolerances.items():
        metric = known_metric(key)
        if metric is None:
            raise Refusal("metric_unknown", f"There is no metric `{key}`. Use {', '.join(COMPARED)}.")
        most = MAX_TOLERANCE if metric.lower_is_better else MAX_LOSS
        if not MIN_TOLERANCE <= percent <= most:
            words = f"The tolerance of {metric.label} is {percent:g} %. Enter {MIN_TOLERANCE:g} to {most:g} %."
            raise Refusal("tolerance_refused", words)
    return {key: float(tolerances[key]) for key in dict.fromkeys((*COMPARED, *tolerances)) if key in tolerances}


UNSTATED = "unstated"


@dataclass(frozen=True)
class Place:
    """What is equal on both sides of a row. `target` is "" if it need not be. `point` has factors, and what else must
    be equal: labels of imports, the test of a tool, the part of a plan, the host."""

    target: str
    point: Point


@dataclass(frozen=True)
class TwoSides:
    """`places` has the place of each row's cell. `new_cells` are those that only the candidate has; `ignored` are the
    factors that do not count although no filter names them. `shared_results` are on both sides, and were left out of
    the one with more results."""

    outcome: Outcome
    rows: Sequence[Row]
    places: Mapping[str, Place]
    new_cells: int
    ignored: Sequence[str]
    baseline_results: int
    candidate_results: int
    shared_results: int = 0
    unstated: Sequence[str] = ()  # sentences: the factors that an import does not state
    unfinished: Sequence[str] = ()  # sentences: the runs that were cancelled or failed
    has_more: bool = False  # older results are left out (`results.reading.newest`)

    @property
    def same(self) -> tuple[str, ...]:
        """The conditions that all rows share, in words."""
        return tuple(same_for_all([self.places[row.cell[0]].point for row in self.rows if row.cell]))

    @property
    def limits(self) -> tuple[str, ...]:
        """What the verdict cannot say."""
        newest = (newest_words(),) if self.has_more else ()
        return (*newest, *self.unfinished, *self.unstated, *limits_of(self.rows))


def judge_sides(
    *,
    baseline: str,
    candidate: str,
    tolerances: Mapping[str, float],
    ignored: Collection[str] = (),
    single_values: bool = False,
) -> TwoSides:
    """`baseline` and `candidate` are filters such as run=17&target=a/nvme0; `ignored` are factors. Raises Refusal."""
    checked_tolerances(tolerances)
    check_factors(ignored)
    theirs, mine = read_side("baseline", baseline), read_side("candidate", candidate)
    if not theirs.rows:
        raise Refusal("no_results", f"No valid results match the baseline `{baseline}`. Choose another filter.")
    return judge_read(theirs, mine, tolerances, ignored=ignored, single_values=single_values)


def check_factors(names: Iterable[str]) -> None:
    """Raises Refusal for a name that cannot be ignored."""
    for name in names:
        if name not in (*FACTORS, UNSTATED):
            meant = closest(name)
            words = f" Did you mean `{meant}`?" if meant else ""
            raise Refusal("factor_unknown", f"There is no factor `{name}` to ignore.{words}")


def judge_read(
    baseline: Side, candidate: Side, tolerances: Mapping[str, float], *, ignored: Collection[str], single_values: bool
) -> TwoSides:
    """Raises Refusal for wrong tolerances, for two equal sides, and if all cells of a side would mix results."""
    wanted, series = checked_tolerances(tolerances), _series(baseline, candidate)
    all_results = len(baseline.rows) + len(candidate.rows)
    if is_of_products(series, (), {*baseline.levels, *candidate.levels}):
        baseline, candidate = (replace(side, rows=newest_of(side.rows)) for side in (baseline, candidate))
    has_more = len(baseline.rows) + len(candidate.rows) < all_results
    their_ids, my_ids = ({row.id for row in side.rows} for side in (baseline, candidate))
    shared = their_ids & my_ids
    if their_ids == my_ids and my_ids:
        words = "Baseline and candidate are the same results, which would always pass. Choose another candidate."
        raise Refusal("same_results", words)
    left_out = {*ignored, *(unstated(baseline, candidate) if UNSTATED in ignored else ())} - {UNSTATED}
    query = CompareQuery(x=MATCHED, series=series, by_direction=True)
    if shared:  # a side that mixes results is refused, also if those of the other side are left out of it
        for key, side in ((BASELINE, baseline), (CANDIDATE, candidate)):
            alone = _Sides({key: side.rows}, query, left_out)
            for metric in wanted:
                _MetricCells(alone, metric).check(key)
    theirs, mine = _without(baseline, candidate, shared)
    sides = _Sides({BASELINE: list(theirs), CANDIDATE: list(mine)}, query, left_out)
    cells = sides.cells
    by_metric = [_MetricCells(sides, key) for key in wanted]
    for each in by_metric:
        each.check(BASELINE)
        each.check(CANDIDATE)
    rows = judge(
        {each.metric.key: each.measured(CANDIDATE) for each in by_metric},
        {each.metric.key: each.measured(BASELINE) for each in by_metric},
        wanted, single_values=single_values, names=(candidate.name, baseline.name),
        levels={key: level for each in by_metric for key, level in each.levels.items()},
        charts={key: chart for each in by_metric for key, chart in each.charts.items()},
        measured={cell for each in by_metric for cell in each.with_results},
        mixed={each.metric.key: each.mixed_of_baseline for each in by_metric},
        questions=max(1, len(questions_of_run([*theirs, *mine]))),
        is_cheap=bool(query.series) and all(name in FACTORS and not FACTORS[name].cost for name in query.series),
    )  # fmt: skip
    names = {BASELINE: baseline.name, CANDIDATE: candidate.name}
    return TwoSides(
        outcome_of(rows), rows, {key: place for each in by_metric for key, place in each.places.items()},
        len(cells.keys(CANDIDATE) - cells.keys(BASELINE)), in_order(left_out), len(theirs), len(mine), len(shared),
        [unstated_sentence(names[side], map(label_of, factors)) for side, factors in cells.unstated.items()],
        list(unfinished_sentences([*theirs, *mine])), has_more,
    )  # fmt: skip


def _series(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """The dimensions of which the filters name different levels. Runs and imports contain their drives and hosts."""
    named = dict.fromkeys((*baseline.levels, *candidate.levels))
    differing = [name for name in named if baseline.levels.get(name) != candidate.levels.get(name)]
    if OF_TARGETS.isdisjoint(differing):
        return tuple(differing)
    return tuple(name for name in differing if name not in _CONTAINED)


def _without(
    baseline: Side, candidate: Side, shared: Collection[int]
) -> tuple[Sequence[ResultRow], Sequence[ResultRow]]:
    """Leave shared results out of the side with more results: a run is judged against the other runs of its target."""
    theirs, mine = baseline.rows, candidate.rows
    if len(theirs) >= len(mine):
        return [row for row in theirs if row.id not in shared], mine
    return theirs, [row for row in mine if row.id not in shared]


def unstated(*sides: Side) -> list[str]:
    """The factors that only one side states, without those that vary there: these tell its rows apart."""
    points = [list({row.point_key: row.point for row in side.rows}.values()) for side in sides]
    stated = [{name for point in of_side for name in point} for of_side in points]
    return in_order((stated[0] ^ stated[1]).difference(*map(varying, points)))


BASELINE, CANDIDATE = "baseline", "candidate"  # keys of the series
_CONTAINED = PRODUCTS | {CONTROLLER}
Rows = Sequence[ResultRow]


# The cells of a verdict: those of the page Explore whose series are the two sides and whose charts are the patterns and
# the directions. A key tells the points of all charts apart; charts share the levels of x.


class _Cells:
    """The results of both sides, by the point at which they are compared."""

    def __init__(self, sides: Mapping[str, Rows], query: CompareQuery, ignored: Collection[str]) -> None:
        matched = Matched(sides, query, ignored)
        chart_by = next((engine_of(row.point).CHART_BY for rows in sides.values() for row in rows), "")
        has_charts = bool(chart_by) and chart_by not in query.series and chart_by not in ignored
        inside = Matched(sides, replace(query, panel=chart_by), ignored) if has_charts else matched
        self.rows: dict[CellKey, list[ResultRow]] = {}
        self.levels: dict[str, Level] = {}  # of x, by key of the level over all charts
        self.charts: dict[str, str] = {}  # the same
        self.points: dict[str, dict[str, Value]] = {}  # by key of the level
        self.unstated = matched.unstated
        for side, rows in sides.items():
            for row in rows:
                level = matched.level(row)
                self.rows.setdefault((row.direction, side, level.key), []).append(row)
                if level.key not in self.levels:
                    self.levels[level.key], self.points[level.key] = inside.level(row), matched.point(row)
                    self.charts[level.key] = str(row.point.get(chart_by, "")) if has_charts else ""

    def keys(self, side: str) -> set[tuple[str, str]]:
        """Direction and level of each cell of a side."""
        return {(direction, level) for direction, of_side, level in self.rows if of_side == side}


@dataclass(frozen=True)
class _Sides:
    rows: Mapping[str, Rows]
    query: CompareQuery
    ignored: Collection[str]

    @cached_property
    def cells(self) -> _Cells:
        return self.cells_of(self.rows)

    def cells_of(self, rows: Mapping[str, Rows]) -> _Cells:
        return _Cells(rows, self.query, self.ignored)


class _MetricCells:
    """The cells of one metric. Keys of cells are unique over all metrics."""

    def __init__(self, sides: _Sides, key: str) -> None:
        """A metric of whole trials, such as power, has one value for all directions."""
        side_of = {row.id: side for side, rows in sides.rows.items() for row in rows}
        observed = with_observed([row for rows in sides.rows.values() for row in rows], metric_named(key))
        self.metric = observed.metric
        all_rows: dict[str, list[ResultRow]] = {side: [] for side in sides.rows}
        for row in observed.rows:
            all_rows[side_of[row.id]].append(row)
        valued = {side: [row for row in rows if self.metric.of(row) is not None] for side, rows in all_rows.items()}
        self._all_cells = sides.cells if all_rows == sides.rows else sides.cells_of(all_rows)
        self._cells = self._all_cells if valued == all_rows else sides.cells_of(valued)
        self.mixed = mixed_cells(self._cells.rows, replace(sides.query, series=()))
        values = {cell: rows for cell, rows in self._cells.rows.items() if cell not in self.mixed}
        grouped = Grouped(values, (), (), ())
        self._measured = with_points(measured(grouped, self.metric), grouped, equal_places(sides.query.series))

    def measured(self, side: str) -> Cells:
        return {self._cell(key): cell for key, cell in self._measured.items() if key[1] == side}

    def _cell(self, key: CellKey) -> tuple[str, str]:
        return self._key(key[2]), key[0]

    def _key(self, level: str) -> str:
        return f"{self.metric.key} {level}"

    @property
    def levels(self) -> dict[str, Level]:
        return {self._key(key): level for key, level in self._cells.levels.items()}

    @property
    def charts(self) -> dict[str, str]:
        return {self._key(key): chart for key, chart in self._cells.charts.items()}

    @property
    def places(self) -> dict[str, Place]:
        return {self._key(key): _place(point) for key, point in self._cells.points.items()}

    @property
    def with_results(self) -> set[tuple[str, str]]:
        """The cells of the candidate, with or without a value."""
        return {self._cell(key) for key in self._all_cells.rows if key[1] == CANDIDATE}

    @property
    def mixed_of_baseline(self) -> dict[tuple[str, str], list[str]]:
        """The dimensions of which a side has several levels, at the cells that the baseline has."""
        theirs = self._cells.keys(BASELINE)
        return {self._cell(key): names for key, names in self.mixed.items() if (key[0], key[2]) in theirs}

    def check(self, side: str) -> None:
        """Raises Refusal if the side has no value, because each of its cells would be a mean of different results."""
        cells = {key: rows for key, rows in self._cells.rows.items() if key[1] == side}
        if cells and cells.keys() <= self.mixed.keys():
            mixtures = mixtures_of(cells, {key: self.mixed[key] for key in cells})
            sentences = " ".join(map(mixture_sentence, mixtures))
            raise Refusal("results_mixed", f"In the {side}: {sentences} Choose one level with a filter.")


def _place(point: Point) -> Place:
    return Place(str(point.get(TARGET, "")), {name: value for name, value in point.items() if name != TARGET})
