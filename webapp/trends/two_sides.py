"""Judge the results of one filter against those of another. Filters are those of `GET /results`.

A cell is a target, a point and a direction. The target does not count if each side has only one, nor do factors that
either filter names, so `factor.scheduler=none` can be judged against `factor.scheduler=bfq`. If an import has several
tests in one cell, such as Read and Re-read of iozone, each test is a cell of its own. `ignored` names further factors
that do not count; UNSTATED stands for all that only one side states, such as the options of fio against a published
table.

A cell must not mix results of different points, or of different targets in one block (run and repeat), because its mean
would say nothing. Then the filters are refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from webapp.compare.blocks import measured
from webapp.compare.grouping import CellKey, Grouped
from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS, closest
from webapp.plans.varying import in_order, varying
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.content import Point
from webapp.results.reading.rows import TEST, ResultRow, places_of_several_tests
from webapp.trends.judging import Cells, Outcome, Row, judge, outcome_of
from webapp.trends.sides import Side, read_side, target_of
from webapp.trends.tolerances import checked_tolerances

UNSTATED = "unstated"


@dataclass(frozen=True)
class Place:
    """`target` is "" if each side has only one. `point` is without the factors that a filter names, and has the name of
    the test where an import has several."""

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
    """Raises Refusal for wrong tolerances, and if a row would mix different results."""
    wanted, shared = checked_tolerances(tolerances), _shared(baseline, candidate)
    left_out = {*ignored, *(unstated(baseline, candidate) if UNSTATED in ignored else ())} - {UNSTATED}
    named = {*left_out, *baseline.named, *candidate.named}
    cells = _Cells.of(baseline.rows, candidate.rows, named=named)
    theirs, mine = _without(baseline, candidate, shared)
    measured_by = cells.by_metric(mine, wanted), cells.by_metric(theirs, wanted)
    rows = judge(*measured_by, wanted, single_values=single_values)
    new = {cells.key(row) for row in mine} - {cells.key(row) for row in theirs}
    return TwoSides(
        outcome_of(rows), rows, cells.places, len(new), in_order(left_out), len(theirs), len(mine), len(shared)
    )


def _shared(baseline: Side, candidate: Side) -> Collection[int]:
    """The results on both sides; none if the sides are equal. Compared with itself, a result would always pass."""
    theirs, mine = ({row.id for row in side.rows} for side in (baseline, candidate))
    return theirs & mine if theirs != mine else ()


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
    places: dict[str, Place]

    @classmethod
    def of(cls, theirs: Sequence[ResultRow], mine: Sequence[ResultRow], *, named: Collection[str]) -> "_Cells":
        several = any(len({target_of(row) for row in side}) > 1 for side in (theirs, mine))
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
            test = (row.point_key, target_of(row), row.tool, row.facts if row.imported else None)
            same_point = tests.setdefault((key, row.direction), row.point_key) == row.point_key
            if not same_point or tests.setdefault((key, row.direction, row.source, row.repeat), test) != test:
                raise Refusal("results_mixed", _mixed(place))

    def place(self, row: ResultRow) -> Place:
        point = {name: value for name, value in row.point.items() if name not in self.named}
        place = Place(target_of(row) if self.by_target else "", point)
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
