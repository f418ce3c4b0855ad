"""Judge the results of one filter against those of another. Filters are those of `GET /results`.

A cell is a target, a point and a direction. The target does not count if each side has only one, nor do factors that
either filter names, so `factor.scheduler=none` can be judged against `factor.scheduler=bfq`. If an import has several
tests in one cell, such as Read and Re-read of iozone, each test is a cell of its own; so is each part of a plan, if one
side has equal points in several. `ignored` names further factors
that do not count; UNSTATED stands for all that only one side states, such as the options of fio against a published
table.

A cell must not mix results of different points, or of different targets in one block (run and repeat), because its mean
would say nothing. Then the filters are refused.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import msgspec

from webapp.analysis.answer import Level
from webapp.analysis.cells import CellKey, Grouped, measured
from webapp.analysis.default_questions import questions_of_run
from webapp.analysis.dimensions import ABSENT_LEVEL, PART, matched_level
from webapp.analysis.trial_metrics import COMPARED, known_metric, metric_named, with_observed
from webapp.analysis.verdicts import Cells, Outcome, Row, judge, limits_of, outcome_of
from webapp.core.errors import NotFound, Refusal
from webapp.plans.factors import FACTORS, closest
from webapp.plans.points import differing, in_order, varying
from webapp.results.reading.content import Point
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, ResultFilter, read_filter, write_level
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import TEST, ResultRow, parts_are_alike, places_of_several_tests, read_rows
from webapp.runs.models import Run
from webapp.trends.run_values import ENDED

# One side of a verdict: the results that a filter of `GET /results` finds.

TARGET, LABEL_PREFIX = "target", "label."
_NUMBERED = re.compile(r"\A(run|import)=(\d+)\Z", re.ASCII)  # a side that is one run or import: `run 17`
MAX_RESULTS = 20_000  # of each side


@dataclass(frozen=True)
class Side:
    """`named` are the factors in the filter; `name` stands for the side in sentences."""

    named: Collection[str]
    rows: Sequence[ResultRow]
    name: str


def read_side(name: str, text: str) -> Side:
    """`name` is baseline or candidate, for errors. Raises Refusal."""
    asked = read_filter(parse_qsl(text, keep_blank_values=True))
    if asked == ResultFilter():
        raise Refusal("filter_missing", f"The {name} has no filter. Write for example run=17 or run=17&host=a.")
    _check_runs(asked.runs)
    rows = read_rows(ResultQuery.of(asked).results.order_by("id")[: MAX_RESULTS + 1])
    if len(rows) > MAX_RESULTS:
        raise Refusal("too_many_results", f"More than {MAX_RESULTS:,} results match a side. Choose runs or targets.")
    return Side(tuple(asked.factors), rows, _NUMBERED.sub(r"\1 \2", text))


def _check_runs(numbers: Collection[int]) -> None:
    states = dict(Run.objects.filter(number__in=numbers).values_list("number", "state"))
    for number in numbers:
        if number not in states:
            raise NotFound("run_unknown", f"There is no run {number}.")
        if states[number] not in ENDED:
            raise Refusal("run_open", f"Run {number} has not ended. Wait for its end.")


def at_levels(side: Side, levels: Mapping[str, str]) -> tuple[dict[str, str], Side]:
    """The levels that exist in the side, and its rows at these levels. `levels` has a text for each of `target`,
    `factor.<name>` and, of an import, `label.<name>`."""
    known = {name: text for name, text in levels.items() if text and _is_level(name)}
    kept = {name: text for name, text in known.items() if text in levels_of(side.rows, name)}
    named = (*side.named, *(name.removeprefix(FACTOR_PREFIX) for name in kept if name.startswith(FACTOR_PREFIX)))
    rows = [row for row in side.rows if all(level_of(row, name) == text for name, text in kept.items())]
    return kept, Side(named, rows, side.name)


def import_side(number: int, levels: Mapping[str, str]) -> Side:
    """The results of an import at these levels. Raises Refusal if it has none at one of them: without this level, other
    results would be judged."""
    kept, side = at_levels(read_side("baseline", f"import={number}"), levels)
    missing = [f"{name}={text}" for name, text in levels.items() if name not in kept]
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
    """`target` is "" if each side has only one. `point` is without the factors that a filter names, and has the name of
    the test where an import has several, and the part of the plan if parts have equal points."""

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

    @property
    def limits(self) -> tuple[str, ...]:
        """What the verdict cannot say."""
        return limits_of(self.rows)


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
    """Raises Refusal for wrong tolerances, for two equal sides, and if a row would mix different results."""
    wanted = checked_tolerances(tolerances)
    their_ids, my_ids = ({row.id for row in side.rows} for side in (baseline, candidate))
    shared = their_ids & my_ids
    left_out = {*ignored, *(unstated(baseline, candidate) if UNSTATED in ignored else ())} - {UNSTATED}
    named = {*left_out, *baseline.named, *candidate.named}
    cells = _Cells.of(baseline.rows, candidate.rows, named=named)
    if their_ids == my_ids and my_ids:
        words = "Baseline and candidate are the same results, which would always pass. Choose another candidate."
        raise Refusal("same_results", words)
    theirs, mine = _without(baseline, candidate, shared)
    measured_by = cells.by_metric(mine, wanted), cells.by_metric(theirs, wanted)
    questions = questions_of_run([*theirs, *mine])
    differ = differing([row.point for row in (*theirs, *mine)]) & {*baseline.named, *candidate.named}
    rows = judge(
        *measured_by, wanted, single_values=single_values, names=(candidate.name, baseline.name), levels=cells.levels,
        measured={cells.key(row)[0] for row in mine}, questions=max(1, len(questions)),
        is_cheap=bool(questions and differ) and not any(FACTORS[name].cost for name in differ),
    )  # fmt: skip
    new = {cells.key(row) for row in mine} - {cells.key(row) for row in theirs}
    return TwoSides(
        outcome_of(rows), rows, cells.places, len(new), in_order(left_out), len(theirs), len(mine), len(shared)
    )


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
    stated = [{name for point in own for name in point} for own in points]
    return in_order((stated[0] ^ stated[1]).difference(*map(varying, points)))


@dataclass(frozen=True)
class _Cells:
    by_target: bool
    named: Collection[str]  # factors in filters, and ignored ones
    several_tests: Collection[tuple[str, str]]  # cells in which an import has several
    by_part: bool
    places: dict[str, Place]

    @classmethod
    def of(cls, theirs: Sequence[ResultRow], mine: Sequence[ResultRow], *, named: Collection[str]) -> "_Cells":
        several = any(len({target_of(row) for row in side}) > 1 for side in (theirs, mine))
        unparted = cls(several, named, (), by_part=False, places={})
        tests = places_of_several_tests((*theirs, *mine), unparted.key)
        by_part = any(parts_are_alike(side) for side in (theirs, mine))
        made = cls(several, named, tests, by_part=by_part, places={})
        for side in (theirs, mine):
            made.add(side)
        return made

    def add(self, rows: Iterable[ResultRow]) -> None:
        """The rows of one side. Raises Refusal if a cell mixes points, or a block of it different tests."""
        tests: dict[tuple[object, ...], object] = {}
        for row in rows:
            key, place = self.key(row)[0], self.place(row)
            self.places[key] = place
            test = (row.point_key, target_of(row), row.tool, row.facts if row.imported else None)
            same_point = tests.setdefault((key, row.direction), row.point_key) == row.point_key
            if not same_point or tests.setdefault((key, row.direction, row.source, row.repeat), test) != test:
                raise Refusal("results_mixed", _mixed(place))

    def place(self, row: ResultRow) -> Place:
        point = {name: value for name, value in row.point.items() if name not in self.named}
        place = Place(target_of(row) if self.by_target else "", point)
        if row.imported and (_text(place), row.direction) in self.several_tests:
            return replace(place, point={**point, TEST: row.test})
        if self.by_part and row.part:
            return replace(place, point={**point, PART: row.part})
        return place

    @property
    def levels(self) -> dict[str, Level]:
        """The level on x of each cell, as of `dimensions.MATCHED`: everything in which the cells differ. Cells that
        differ only in factors that do not apply keep their own key."""
        points = [place.point for place in self.places.values()]
        names = tuple(name for name in varying(points) if name in FACTORS)
        others = [name for name in (TEST, PART) if len({point.get(name) for point in points}) > 1]
        levels = {key: _level(place, names, others) for key, place in self.places.items()}
        counts = Counter(level.key for level in levels.values())
        return {key: level if counts[level.key] == 1 else Level(key, level.text, None) for key, level in levels.items()}

    def key(self, row: ResultRow) -> tuple[str, str]:
        return _text(self.place(row)), row.direction

    def by_metric(self, rows: Sequence[ResultRow], metrics: Iterable[str]) -> dict[str, Cells]:
        return {key: self._of_metric(rows, key) for key in metrics}

    def _of_metric(self, rows: Sequence[ResultRow], key: str) -> Cells:
        """A metric of whole trials, such as power, has one value for all directions."""
        observed = with_observed(rows, metric_named(key))
        grouped: dict[CellKey, list[ResultRow]] = {}
        for row in observed.rows:
            if observed.metric.of(row) is not None:
                grouped.setdefault(("", *self.key(row)), []).append(row)
        found = measured(Grouped(grouped, (), (), ()), observed.metric)
        return {(key, way): cell for (_, key, way), cell in found.items()}


def _level(place: Place, names: tuple[str, ...], others: Sequence[str]) -> Level:
    """`others`: names in the point that are no factors."""
    texts = [*([place.target] if place.target else []), *(str(place.point.get(name, "")) for name in others)]
    return matched_level(names, tuple(place.point.get(name, ABSENT_LEVEL) for name in names), tuple(texts))


def _text(place: Place) -> str:
    return msgspec.json.encode([place.target, place.point], order="sorted").decode()


def _mixed(place: Place) -> str:
    at = ", ".join(f"{name} {value}" for name, value in sorted(place.point.items())[:4])
    return (
        f"One side has several different results in one row ({at}, …). Choose one of them with a filter, "
        "for example target=host/target or one level of factor.<name>."
    )
