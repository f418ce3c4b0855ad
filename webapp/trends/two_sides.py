"""Judge the results of one filter against those of another. Filters are those of `GET /results`.

A cell is a target, a point and a direction. The target does not count if each side has only one, nor do factors that
either filter names, so `factor.scheduler=none` can be judged against `factor.scheduler=bfq`. If an import has several
tests in one cell, such as Read and Re-read of iozone, each test is a cell of its own. `ignored` names further factors
that do not count, such as options that a published table does not state.

A cell must not mix results of different points, or of different targets in one block (run and repeat), because its mean
would say nothing. Then the filters are refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import msgspec

from webapp.compare.blocks import measured
from webapp.compare.grouping import CellKey, Grouped
from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS, closest
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.content import Point
from webapp.results.reading.filter import ResultFilter, read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import TEST, ResultRow, places_of_several_tests, read_rows
from webapp.runs.models import Run
from webapp.trends.history import ENDED
from webapp.trends.judging import Cells, Outcome, Row, judge, outcome_of
from webapp.trends.services import checked_tolerances

MAX_RESULTS = 20_000  # of each side


@dataclass(frozen=True)
class Place:
    """`target` is "" if each side has only one. `point` is without the factors that a filter names, and has the name of
    the test where an import has several."""

    target: str
    point: Point


@dataclass(frozen=True)
class TwoSides:
    """`places` has the place of each row's cell. `new_cells` are those that only the candidate has."""

    outcome: Outcome
    rows: Sequence[Row]
    places: Mapping[str, Place]
    new_cells: int
    baseline_results: int
    candidate_results: int


def judge_sides(
    *,
    baseline: str,
    candidate: str,
    tolerances: Mapping[str, float],
    ignored: Collection[str] = (),
    single_values: bool = False,
) -> TwoSides:
    """`baseline` and `candidate` are filters such as run=17&target=a/nvme0; `ignored` are factors. Raises Refusal."""
    wanted = checked_tolerances(tolerances)
    _check_factors(ignored)
    asked = [_asked(name, text) for name, text in (("baseline", baseline), ("candidate", candidate))]
    theirs, mine = (_read(one) for one in asked)
    if not theirs:
        raise Refusal("no_results", f"No valid results match the baseline `{baseline}`. Choose another filter.")
    cells = _Cells.of(theirs, mine, named={*ignored, *(name for one in asked for name in one.factors)})
    measured_by = cells.by_metric(mine, wanted), cells.by_metric(theirs, wanted)
    rows = judge(*measured_by, wanted, single_values=single_values)
    new = {cells.key(row) for row in mine} - {cells.key(row) for row in theirs}
    return TwoSides(outcome_of(rows), rows, cells.places, len(new), len(theirs), len(mine))


def _check_factors(names: Iterable[str]) -> None:
    for name in names:
        if name not in FACTORS:
            meant = closest(name)
            words = f" Did you mean `{meant}`?" if meant else ""
            raise Refusal("factor_unknown", f"There is no factor `{name}` to ignore.{words}")


def _asked(side: str, text: str) -> ResultFilter:
    found = read_filter(parse_qsl(text, keep_blank_values=True))
    if found == ResultFilter():
        raise Refusal("filter_missing", f"The {side} has no filter. Write for example run=17 or run=17&host=a.")
    _check_runs(found.runs)
    return found


def _check_runs(numbers: Collection[int]) -> None:
    states = dict(Run.objects.filter(number__in=numbers).values_list("number", "state"))
    for number in numbers:
        if number not in states:
            raise Refusal("run_unknown", f"There is no run {number}.")
        if states[number] not in ENDED:
            raise Refusal("run_open", f"Run {number} has not ended. Wait for its end.")


def _read(asked: ResultFilter) -> list[ResultRow]:
    rows = read_rows(ResultQuery.of(asked).results.order_by("id")[: MAX_RESULTS + 1])
    if len(rows) > MAX_RESULTS:
        raise Refusal("too_many_results", f"More than {MAX_RESULTS:,} results match a side. Choose runs or targets.")
    return rows


@dataclass(frozen=True)
class _Cells:
    by_target: bool
    named: Collection[str]  # factors in filters, and ignored ones
    several_tests: Collection[tuple[str, str]]  # cells in which an import has several
    places: dict[str, Place]

    @classmethod
    def of(cls, theirs: Sequence[ResultRow], mine: Sequence[ResultRow], *, named: Collection[str]) -> "_Cells":
        several = any(len({row.target_name for row in side}) > 1 for side in (theirs, mine))
        unparted = cls(several, named, (), {})
        made = cls(several, named, places_of_several_tests((*theirs, *mine), unparted.key), {})
        for side in (theirs, mine):
            made.add(side)
        return made

    def add(self, rows: Iterable[ResultRow]) -> None:
        """The rows of one side. Raises Refusal if a cell mixes points, or a block of it different tests."""
        tests: dict[tuple[object, ...], object] = {}
        for row in rows:
            key, place = self.key(row)[0], self.place(row)
            self.places[key] = place
            test = (row.point_key, row.target_name, row.tool, row.facts if row.imported else None)
            same_point = tests.setdefault((key, row.direction), row.point_key) == row.point_key
            if not same_point or tests.setdefault((key, row.direction, row.source, row.repeat), test) != test:
                raise Refusal("results_mixed", _mixed(place))

    def place(self, row: ResultRow) -> Place:
        point = {name: value for name, value in row.point.items() if name not in self.named}
        place = Place(row.target_name if self.by_target else "", point)
        if row.imported and (_text(place), row.direction) in self.several_tests:
            return replace(place, point={**point, TEST: row.test})
        return place

    def key(self, row: ResultRow) -> tuple[str, str]:
        return _text(self.place(row)), row.direction

    def by_metric(self, rows: Sequence[ResultRow], metrics: Iterable[str]) -> dict[str, Cells]:
        return {key: self._of_metric(rows, METRICS[key]) for key in metrics}

    def _of_metric(self, rows: Sequence[ResultRow], metric: Metric) -> Cells:
        grouped: dict[CellKey, list[ResultRow]] = {}
        for row in rows:
            if metric.of(row) is not None:
                grouped.setdefault(("", *self.key(row)), []).append(row)
        found = measured(Grouped(grouped, (), (), ()), metric)
        return {(key, way): cell for (_, key, way), cell in found.items()}


def _text(place: Place) -> str:
    return msgspec.json.encode([place.target, place.point], order="sorted").decode()


def _mixed(place: Place) -> str:
    at = ", ".join(f"{name} {value}" for name, value in sorted(place.point.items())[:4])
    return (
        f"One side has several different results in one row ({at}, …). Choose one of them with a filter, "
        "for example target=host/target or one level of factor.<name>."
    )
