"""The page Trend: one metric of a plan at a target over its runs. Without plan or target, a list of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.analysis.verdicts import LABELS, Outcome
from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.plans.points import varying
from webapp.results.metrics import Metric
from webapp.runs.models import Run
from webapp.screens import points
from webapp.screens.access import page
from webapp.screens.payloads import Payload
from webapp.screens.trend.acceptance_address import address_of
from webapp.screens.trend.asked import cell_address, choose, chosen_metric, metrics_of, plan_and_target
from webapp.screens.trend.baseline_form import BaselineForm, baseline_form
from webapp.screens.trend.verdict_rows import percent_change
from webapp.trends.models import Baseline
from webapp.trends.run_values import ENDED, MAX_RUNS, read_history
from webapp.trends.selectors import baselines, outcomes_on
from webapp.trends.steps import FALSE_ALARMS, FALSE_ALARMS_DEPENDENT, MIN_RUNS
from webapp.trends.trend import Change, RunValue, Step, Trend, trend

# Data of the trend chart; `frontend/src/payloads/trend.ts` has the same types.


class TrendPoint(Payload, frozen=True, kw_only=True):
    """One run. `low` and `high` are the 95 % interval, null without repeats."""

    run: int
    at_ms: int
    value: float
    low: float | None
    high: float | None
    verdict: str  # label of the outcome against the baseline run, "" without one


class TrendStep(Payload, frozen=True, kw_only=True):
    """Between two runs. `text` is the size: −12.3 %."""

    at_ms: int
    text: str


class TrendChart(Payload, frozen=True, kw_only=True):
    """`baseline` is the value of the baseline run, null without one. Levels are in the order of time, between steps."""

    label: str
    shown_as: str
    points: tuple[TrendPoint, ...]
    steps: tuple[TrendStep, ...]
    levels: tuple[float, ...]
    baseline: float | None


MAX_LISTED = 500


@dataclass(frozen=True)
class StepRow:
    step: Step
    size: str
    mark: str  # better | worse
    levels: str


@dataclass(frozen=True)
class RunRow:
    """A run in the table behind the chart. `step` is the size of a step that begins with it."""

    value: RunValue
    text: str
    interval: str
    outcome: Outcome | None
    changed: tuple[Change, ...]
    step: str


@dataclass(frozen=True)
class CellRow:
    levels: list[str]
    direction: str
    first: str
    last: str
    ratio: str
    address: str


@page
def trend_page(request: HttpRequest) -> HttpResponse:
    plan, target = plan_and_target(request.GET)
    if plan is None or target is None:
        return _list(request)
    return show(request, plan, target)


def show(request: HttpRequest, plan: Plan, target: Target, refused: BaselineForm | None = None) -> HttpResponse:
    """`refused`: a form of a baseline run that was not accepted."""
    offered, default = metrics_of(plan, target)
    metric = chosen_metric(request.GET, offered, default)
    history = read_history(plan, target, metric)
    chosen = choose(request.GET, history, offered, metric)
    found = trend(history, target, metric, chosen.keys, chosen.direction)
    baseline = baselines().filter(plan=plan, target=target).first()
    outcomes = outcomes_on([_with_plan(one.run, plan) for one in found.runs])
    names = varying([cell.point for cell in found.cells])
    context = {
        "plan": plan,
        "target": target,
        "metric": metric,
        "choices": chosen.choices,
        "trend": found,
        "picture_title": f"{metric.label}: {plan.title} at {target}",
        "picture_note": _picture_note(found),
        "chart": msgspec.to_builtins(_chart(found, baseline, outcomes)),
        "steps": [_step_row(step, metric) for step in found.steps],
        "rows": [_run_row(value, found, outcomes) for value in reversed(found.runs)],
        "cell_labels": [points.label(name) for name in names],
        "cells": _cell_rows(found, names, plan, target),
        "baseline": baseline,
        "acceptance": address_of(baseline) if baseline and baseline.imported else "",
        "form": refused
        or baseline_form([one.run for one in history.runs], target, baseline, request.GET.get("baseline", "")),
        "false_alarms": f"{100 * FALSE_ALARMS:g} %",
        "false_alarms_dependent": f"{100 * FALSE_ALARMS_DEPENDENT:g} %",
        "min_runs": MIN_RUNS,
        "max_runs": MAX_RUNS,
    }
    return render(request, "screens/trend.html", context, status=422 if refused else 200)


def _picture_note(found: Trend) -> str:
    """What the values of a saved picture are."""
    of = "the repeats of one cell" if len(found.cells) == 1 else f"{len(found.cells)} cells"
    return f"Each run: geometric mean over {of}, with its 95 % confidence interval over repeats."


def _with_plan(run: Run, plan: Plan) -> Run:
    run.version.plan = plan
    return run


def _chart(found: Trend, baseline: Baseline | None, outcomes: Mapping[UUID, Outcome]) -> TrendChart:
    levels = [found.steps[0].old_level, *(step.new_level for step in found.steps)] if found.steps else []
    known = {one.run.pk: one.value for one in found.runs}
    return TrendChart(
        label=found.metric.label,
        shown_as=found.metric.shown_as,
        points=tuple(_point(one, outcomes.get(one.run.pk)) for one in found.runs),
        steps=tuple(TrendStep(at_ms=_middle_ms(step), text=_size(step)) for step in found.steps),
        levels=tuple(levels),
        baseline=known.get(baseline.run_id) if baseline and baseline.run_id else None,
    )


def _point(one: RunValue, outcome: Outcome | None) -> TrendPoint:
    return TrendPoint(
        run=one.run.number, at_ms=_ms(one), value=one.value, low=one.low, high=one.high,
        verdict=LABELS[outcome] if outcome else "",
    )  # fmt: skip


def _ms(one: RunValue) -> int:
    return round(1000 * one.at.timestamp())


def _middle_ms(step: Step) -> int:
    return (_ms(step.before) + _ms(step.after)) // 2


def _size(step: Step) -> str:
    return percent_change(step.ratio)


def _step_row(step: Step, metric: Metric) -> StepRow:
    better = (step.ratio < 1) == metric.lower_is_better
    levels = f"{metric.format(step.old_level)} → {metric.format(step.new_level)}"
    return StepRow(step, _size(step), "better" if better else "worse", levels)


def _run_row(value: RunValue, found: Trend, outcomes: Mapping[UUID, Outcome]) -> RunRow:
    show = found.metric.format
    interval = f"{show(value.low)} to {show(value.high)}" if value.low is not None else "–"
    step = next((_size(step) for step in found.steps if step.after is value), "")
    return RunRow(value, show(value.value), interval, outcomes.get(value.run.pk), value.changed, step)


def _cell_rows(found: Trend, names: tuple[str, ...], plan: Plan, target: Target) -> list[CellRow]:
    base = {"plan": plan.slug, "target": str(target), "metric": found.metric.key}
    show = found.metric.format
    return [
        CellRow(
            points.levels(cell.point, names), cell.direction, show(cell.first), show(cell.last),
            percent_change(cell.last / cell.first),
            urlencode(base | cell_address(cell.point, cell.direction, names)),
        )
        for cell in found.cells
    ]  # fmt: skip


def _list(request: HttpRequest) -> HttpResponse:
    """Every plan at every target with an ended run, or those that fit the address; one alone is opened."""
    plan, target = plan_and_target(request.GET)
    runs = Run.objects.filter(state__in=ENDED, **({"version__plan": plan} if plan else {}))
    runs = runs.filter(targets=target) if target else runs
    columns = {"slug": "version__plan__slug", "title": "version__plan__title"}
    at = {"host": "targets__host__slug", "name": "targets__slug"}
    found = runs.order_by().values(*columns.values(), *at.values()).annotate(runs=Count("pk"), last=Max("number"))
    rows = [_listed(row, columns | at) for row in found.order_by("-last")[:MAX_LISTED]]
    asked = plan or target
    if asked and len(rows) == 1:
        return redirect(f"{reverse('trends')}?{rows[0]['address']}")
    return render(request, "screens/trends.html", {"rows": rows, "plan": plan, "target": target})


def _listed(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    plain = {name: row[column] for name, column in columns.items()} | {"runs": row["runs"], "last": row["last"]}
    target = f"{plain['host']}/{plain['name']}"
    return plain | {"target": target, "address": urlencode({"plan": plain["slug"], "target": target})}
