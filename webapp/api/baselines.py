"""Baselines, the verdict on a run, and the verdict on the results of one filter against those of another."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema, Status
from ninja.pagination import paginate

from webapp.analysis.answer import Conclusion
from webapp.analysis.verdicts import Outcome, Row
from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.api.imports import import_with
from webapp.api.runs import run_with
from webapp.core.errors import Refusal
from webapp.hosts.selectors import known_targets
from webapp.plans.selectors import version_of
from webapp.results.metrics import Missing
from webapp.results.reading.content import Point
from webapp.trends.models import Baseline
from webapp.trends.selectors import Verdict, baselines, known_baseline, verdicts_on, worst_of
from webapp.trends.services import remove_baseline, set_baseline, set_import_baseline
from webapp.trends.two_sides import Place, TwoSides, judge_sides

# Baselines, and the verdict on a run.

router = Router(tags=["baselines"])


class BaselineOut(Schema):
    """Either `run` or `imported`, the number of an import, is null. `levels`, `ignore` and `single_values` are those of
    an import. `tolerances`: metric -> the largest change for the worse that passes, in percent."""

    id: int
    plan: str
    target: str
    run: int | None
    imported: int | None
    levels: dict[str, str]
    ignore: list[str]
    single_values: bool
    tolerances: dict[str, float]
    set_by: str | None
    set_at: datetime

    @staticmethod
    def resolve_plan(baseline: Baseline) -> str:
        return baseline.plan.slug

    @staticmethod
    def resolve_target(baseline: Baseline) -> str:
        return str(baseline.target)

    @staticmethod
    def resolve_run(baseline: Baseline) -> int | None:
        return baseline.run.number if baseline.run else None

    @staticmethod
    def resolve_imported(baseline: Baseline) -> int | None:
        return baseline.imported.number if baseline.imported else None

    @staticmethod
    def resolve_ignore(baseline: Baseline) -> list[str]:
        return list(baseline.ignored)

    @staticmethod
    def resolve_set_by(baseline: Baseline) -> str | None:
        return baseline.set_by.username if baseline.set_by else None


class BaselineIn(Input):
    """Either `run`, whose plan gets it as the baseline, or `imported`, the number of an import, and `plan`. `target` is
    host/target; `tolerances` as in a baseline. Only of an import: `levels` chooses one level of each `target`,
    `factor.<name>` or `label.<name>`, and `ignore` and `single_values` are those of `GET /verdict`."""

    run: int | None = None
    imported: int | None = None
    plan: str = Field("", max_length=100)
    target: str = Field(max_length=200)
    levels: dict[str, str] = Field({}, max_length=100)
    ignore: list[str] = Field([], max_length=100)
    single_values: bool = False
    tolerances: dict[str, float] = Field(max_length=50)


class RowOut(Schema):
    """One metric at one point and direction; `point` is null for the mean over `cells` cells of a chart.
    `baseline` and `value` are geometric means of the repeats, in the metric's unit. `ratio` is the run by the baseline,
    with its 95 % interval; `limit` is the worst ratio that passes. `why` is set if the outcome is unclear.
    `single_values`: judged without an interval, which `why` says.

    `conclusion` is what a comparison claims of the row (as in `GET /compare`), and `sentence` says it of all cells of
    the chart, on the first of its rows. `order`: the run always ran `before` or `after` the baseline, `unknown`, or
    empty; unless it is empty, a difference may be drift of the host. `repeats` are those of the smaller side; 0 without
    an interval."""

    metric: str
    unit: str
    point: dict[str, Any] | None
    direction: str | None
    chart: str
    cells: int
    tolerance_percent: float
    limit: float
    baseline: float | None
    value: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    outcome: Outcome
    why: str
    missing: Missing | None
    single_values: bool
    conclusion: Conclusion
    sentence: str
    order: str
    repeats: int
    mixes: list[str]


class TargetVerdictOut(Schema):
    """The verdict at one target. `new_cells` are those of the run that the baseline does not have. `same`, `ignored`
    and `limits` are those of `GET /verdict`. Without rows, `problem` says why the run could not be judged."""

    baseline: BaselineOut
    outcome: Outcome
    counts: dict[Outcome, int]
    new_cells: int
    same: list[str]
    ignored: list[str]
    limits: list[str]
    problem: str
    rows: list[RowOut]

    @staticmethod
    def resolve_rows(verdict: Verdict) -> list[RowOut]:
        return [row_out(row, verdict.points) for row in verdict.rows]


class VerdictOut(Schema):
    """`outcome` is the most serious of all targets; null without a baseline, and until the run has ended."""

    run: int
    outcome: Outcome | None
    targets: list[TargetVerdictOut]


@router.get("/baselines", response=list[BaselineOut])
@paginate(Paged)
def all_baselines(request: HttpRequest, plan: str = "") -> QuerySet[Baseline]:
    """Baselines of plans at targets."""
    return baselines().filter(plan__slug=plan) if plan else baselines()


@router.post("/baselines", response={201: BaselineOut}, auth=OPERATORS)
def new_baseline(request: HttpRequest, payload: BaselineIn) -> Status[Baseline]:
    """Set the baseline of a plan at a target: a run of the plan or an import. It replaces the one set before."""
    by = operator(request)
    (target,) = known_targets([payload.target])
    if payload.run is not None and payload.imported is None:
        if payload.levels or payload.ignore or payload.single_values:
            words = "Levels, ignore and single_values are those of an import. Leave them out, or give imported."
            raise Refusal("baseline_refused", words)
        run = run_with(payload.run)
        if payload.plan and version_of(payload.plan).plan != run.version.plan:
            words = f"Run {run.number} is not a run of {payload.plan}. Choose one of its runs."
            raise Refusal("baseline_refused", words)
        return Status(201, set_baseline(run=run, target=target, tolerances=payload.tolerances, by=by))
    if payload.imported is None or payload.run is not None:
        raise Refusal("baseline_refused", "Give either run or imported.")
    made = set_import_baseline(
        plan=version_of(payload.plan).plan, target=target, imported=import_with(payload.imported),
        levels=payload.levels, ignored=payload.ignore, single_values=payload.single_values,
        tolerances=payload.tolerances, by=by,
    )  # fmt: skip
    return Status(201, made)


@router.delete("/baselines/{pk}", response={204: None}, auth=OPERATORS)
def delete_baseline(request: HttpRequest, pk: int) -> Status[None]:
    """Remove a baseline. Its run or import stays."""
    by = operator(request)
    remove_baseline(baseline=known_baseline(pk), by=by)
    return Status(204, None)


@router.get("/runs/{number}/verdict", response=VerdictOut)
def verdict(request: HttpRequest, number: int) -> dict[str, object]:
    """Whether the run passes against its baselines, row by row."""
    verdicts = verdicts_on(run_with(number))
    return {"run": number, "outcome": worst_of(verdicts), "targets": verdicts}


def row_out(row: Row, points: Mapping[str, Point]) -> RowOut:
    point = dict(points[row.cell[0]]) if row.cell else None
    return RowOut(
        metric=row.metric.key, unit=row.metric.unit, point=point, direction=row.direction or None, chart=row.chart,
        cells=row.cells,
        tolerance_percent=row.tolerance, limit=row.limit, baseline=row.baseline, value=row.value,
        ratio=row.ratio.value if row.ratio else None, ratio_low=row.ratio.low if row.ratio else None,
        ratio_high=row.ratio.high if row.ratio else None, outcome=row.outcome, why=row.why, missing=row.missing,
        single_values=row.single_values, conclusion=row.conclusion, sentence=row.sentence, order=row.order,
        repeats=row.repeats, mixes=list(row.mixes),
    )  # fmt: skip


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
    """`target` is "" if it need not be equal; `point` has what is equal on both sides: factors, without those of which
    the filters name different levels and without ignored ones, and labels of imports (`fact.<name>`), the test, the
    part, the host."""

    target: str


class SidesOut(Schema):
    """`outcome` is the most serious of all rows. `new_cells` counts cells that only the candidate has. `ignored` lists
    the factors that may differ; `same`, in words, has the conditions that all rows share. `limits` says what the
    verdict leaves open: cancelled and failed runs, drift, repeats, corrections.

    `baseline_results` and `candidate_results` count results, without `shared_results`, which are on both sides and were
    left out of the one with more results.
    """

    outcome: Outcome
    counts: dict[Outcome, int]
    new_cells: int
    same: list[str]
    ignored: list[str]
    baseline_results: int
    candidate_results: int
    shared_results: int
    limits: list[str]
    rows: list[SideRowOut]


@router.get("/verdict", tags=["compare"], response=SidesOut)
def verdict_on_sides(request: HttpRequest, query: Query[SidesIn]) -> dict[str, Any]:
    """Whether the candidate is worse than the baseline, row by row.

    `fails`: worse by more than the tolerance. `passes`: not worse. `unclear`: the repeats cannot tell. A row fails only
    if `GET /compare` claims a difference for the same question. With `single_values`, rows without repeats pass or fail
    by the ratio of the two values, which is no evidence of a difference.
    """
    tolerances = dict.fromkeys(query.metric, query.tolerance)
    sides = judge_sides(
        baseline=query.baseline, candidate=query.candidate, tolerances=tolerances, ignored=query.ignore,
        single_values=query.single_values,
    )  # fmt: skip
    outcomes = [row.outcome for row in sides.rows]
    return {
        "outcome": sides.outcome,
        "counts": {outcome: outcomes.count(outcome) for outcome in Outcome},
        "new_cells": sides.new_cells,
        "same": list(sides.same),
        "ignored": sides.ignored,
        "baseline_results": sides.baseline_results,
        "candidate_results": sides.candidate_results,
        "shared_results": sides.shared_results,
        "limits": list(sides.limits),
        "rows": [_row(row, sides) for row in sides.rows],
    }


def _row(row: Row, sides: TwoSides) -> SideRowOut:
    place = sides.places[row.cell[0]] if row.cell else Place("", {})
    points = {row.cell[0]: place.point} if row.cell else {}
    plain = row_out(row, points).model_dump()
    return SideRowOut(target=place.target, **plain)
