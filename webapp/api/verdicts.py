"""The verdict on the results of one filter against those of another."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from webapp.api.baselines import RowOut, row_out
from webapp.trends.judging import Outcome, Row
from webapp.trends.two_sides import Place, TwoSides, judge_sides

router = Router(tags=["compare"])


class SidesIn(Schema):
    """`baseline` and `candidate` are filters of `GET /results`, percent-encoded to fit into one parameter, for example
    baseline=run%3D17%26host%3Da.

    `tolerance`: the largest change for the worse that passes, in percent, for each metric. `ignore` names factors that
    may differ between the sides, or `unstated`: all that only one side states. `single_values`: judge cells with fewer
    than 3 repeats on a side by the tolerance alone, without an interval.
    """

    baseline: str = Field(max_length=4000)
    candidate: str = Field(max_length=4000)
    metric: list[str] = Field(["iops"], max_length=20)
    tolerance: float = 5.0
    ignore: list[str] = Field([], max_length=100)
    single_values: bool = False


class SideRowOut(RowOut):
    """`target` is "" if each side has only one; `point` is without the factors that a filter names or
    that are ignored."""

    target: str


class SidesOut(Schema):
    """`outcome` is the most serious of all rows. `new_cells` counts cells that only the candidate has. `ignored` lists
    the factors that may differ.

    `baseline_results` and `candidate_results` count results, without `shared_results`, which are on both sides and were
    left out of the one with more results.
    """

    outcome: Outcome
    counts: dict[Outcome, int]
    new_cells: int
    ignored: list[str]
    baseline_results: int
    candidate_results: int
    shared_results: int
    rows: list[SideRowOut]


@router.get("/verdict", response=SidesOut)
def verdict_on_sides(request: HttpRequest, asked: Query[SidesIn]) -> dict[str, Any]:
    """Whether the candidate is worse than the baseline, row by row.

    `fails`: worse by more than the tolerance. `passes`: not worse. `unclear`: the repeats cannot tell. With
    `single_values`, rows without repeats pass or fail by the ratio of the two values, which is no evidence of a
    difference.
    """
    tolerances = dict.fromkeys(asked.metric, asked.tolerance)
    found = judge_sides(
        baseline=asked.baseline, candidate=asked.candidate, tolerances=tolerances, ignored=asked.ignore,
        single_values=asked.single_values,
    )  # fmt: skip
    outcomes = [row.outcome for row in found.rows]
    return {
        "outcome": found.outcome,
        "counts": {each: outcomes.count(each) for each in Outcome},
        "new_cells": found.new_cells,
        "ignored": found.ignored,
        "baseline_results": found.baseline_results,
        "candidate_results": found.candidate_results,
        "shared_results": found.shared_results,
        "rows": [_row(row, found) for row in found.rows],
    }


def _row(row: Row, found: TwoSides) -> SideRowOut:
    place = found.places[row.cell[0]] if row.cell else Place("", {})
    points = {row.cell[0]: place.point} if row.cell else {}
    plain = row_out(row, points).model_dump()
    return SideRowOut(target=place.target, **plain)
