"""The page Trend, one metric of a plan at a target over its runs, and the baseline with which its runs are judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.analysis.question import MARGIN
from webapp.analysis.seals import scopes_of_runs
from webapp.analysis.verdicts import LABELS, Outcome
from webapp.analysis.words import PERCENT, shown
from webapp.core.answers import Question, answered
from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.hosts.selectors import hosts_called
from webapp.pictures.drawing import Drawing
from webapp.plans.engines import engine_of
from webapp.plans.models import Plan
from webapp.plans.points import varying
from webapp.results.metrics import METRICS, Metric, default_metric
from webapp.results.models import Import
from webapp.results.reading.content import Point
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, write_level
from webapp.runs.models import Run, RunState, Trial
from webapp.screens import point_words
from webapp.screens.access import operator_action, page, person
from webapp.screens.choices import Choice, Group, Option, options_of
from webapp.screens.trend.acceptance_form import (
    PREFIX,
    BaselineForm,
    address_of,
    baseline_form,
    imported_in,
    read_address,
    read_tolerances,
    refused_form,
)
from webapp.screens.trend.charts import TrendChart, TrendPoint, TrendStep, marks_drawn, trend_picture
from webapp.screens.trend.claims import cause_of, trend_address
from webapp.screens.trend.listing import trend_list
from webapp.screens.undo import with_undo
from webapp.trends.models import Baseline
from webapp.trends.run_values import MAX_RUNS, History, ended_ids, read_history, runs_of
from webapp.trends.selectors import baselines, outcomes_on
from webapp.trends.services import remove_baseline, set_baseline, set_import_baseline
from webapp.trends.steps import FALSE_ALARMS, FALSE_ALARMS_DEPENDENT, MIN_RUNS
from webapp.trends.summaries import summaries
from webapp.trends.trend import Change, RunValue, Step, Trend, trend
from worker.recipes import ENGINES

# The page Trend: one metric of a plan at a target over its runs. Without plan or target, a list of both.

# The address of a trend: `plan=…&target=host/slug&metric=…&direction=…&factor.block_size=4k`.
#
# A choice that no longer fits is dropped, so changing one choice never ends in an error.


@dataclass(frozen=True)
class Chosen:
    """The points and the direction ("" for all) of the trend, and the controls to change them."""

    keys: frozenset[str]
    direction: str
    choices: tuple[Choice, ...]


def plan_and_target(query: QueryDict) -> tuple[Plan | None, Target | None]:
    """None for one that is missing or unknown."""
    plan = Plan.objects.filter(slug=query.get("plan", "")).first()
    host, _, slug = query.get("target", "").partition("/")
    target = Target.objects.select_related("host").filter(host__in=hosts_called([host]), slug=slug)
    return plan, target.order_by("-in_policy").first()


def metrics_of(newest: Sequence[Run], target: Target) -> tuple[list[Metric], Metric]:
    """The metrics of the newest run's engines, and the default one. `newest`: that run, if there is one."""
    trials = Trial.objects.filter(run__in=newest, target=target).order_by("point_key").distinct("point_key")
    points = list(trials.values_list("point", flat=True))
    workloads = {engine_of(point).WORKLOAD for point in points}
    of_engines = {metric.name for workload in workloads for metric in ENGINES[workload].METRICS}
    metrics = [metric for metric in METRICS.values() if metric.column or metric.key in of_engines]
    return metrics, default_metric(points)


def choose(query: QueryDict, history: History, metrics: list[Metric], metric: Metric) -> Chosen:
    """`metrics` are all that can be chosen, `metric` is the chosen one."""
    cells = {cell for run in history.runs for cell in run.values.cells}
    points = {key: history.points[key] for key, *_ in cells}
    names = varying(points.values())
    levels: dict[str, str] = {}
    chosen_points = points
    for name in names:
        text = query.get(f"{FACTOR_PREFIX}{name}", "")
        matching = {key: point for key, point in chosen_points.items() if text and _text(point, name) == text}
        if matching:
            chosen_points, levels[name] = matching, text
    directions = sorted({direction for key, direction, _ in cells if key in chosen_points})
    direction = query.get("direction", "")
    direction = direction if direction in directions else ""
    metric_options = options_of([(option.key, option.label) for option in metrics], metric.key)
    choices = (
        Choice("id-metric", "metric", "Metric", (Group("", metric_options),)),
        *(_factor(name, points, levels.get(name, "")) for name in names),
        *([_directions(directions, direction)] if len(directions) > 1 else []),
    )
    return Chosen(frozenset(chosen_points), direction, choices)


def _text(point: Point, name: str) -> str:
    """A level as it is written in addresses."""
    return write_level(name, point[name]) if name in point else NOT_SET.value


def _factor(name: str, points: Mapping[str, Point], chosen: str) -> Choice:
    values = {_text(point, name): point.get(name) for point in points.values()}
    ordered = sorted(values.items(), key=lambda item: point_words.sort_key(item[1]))
    options = tuple(
        Option(text, point_words.level(name, value) if text != NOT_SET.value else text, text == chosen)
        for text, value in ordered
    )
    key = f"{FACTOR_PREFIX}{name}"
    return Choice(f"id-{key}", key, point_words.label(name), (Group("", options),), "all")


def _directions(directions: list[str], chosen: str) -> Choice:
    options = options_of([(name, name) for name in directions], chosen)
    return Choice("id-direction", "direction", "Direction", (Group("", options),), "all")


def cell_address(point: Point, direction: str, names: tuple[str, ...]) -> dict[str, str]:
    """The parameters that select one cell."""
    return {f"{FACTOR_PREFIX}{name}": _text(point, name) for name in names} | {"direction": direction}


@dataclass(frozen=True)
class StepRow:
    step: Step
    size: str
    mark: str  # better | worse
    levels: str

    @property
    def cause(self) -> str:
        return cause_of([change.label for change in self.step.changed])


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


@dataclass(frozen=True)
class TrendAnswer:
    """What the page shows of results."""

    metric: Metric
    choices: tuple[Choice, ...]
    trend: Trend
    picture_title: str
    picture_note: str
    chart: TrendChart
    steps: list[StepRow]
    rows: list[RunRow]
    cell_labels: list[str]
    cells: list[CellRow]
    form: BaselineForm


def show(request: HttpRequest, plan: Plan, target: Target, refused: BaselineForm | None = None) -> HttpResponse:
    """`refused`: a form of a baseline run that was not accepted."""
    answer = trend_answer(plan, target, request.GET)
    baseline = baselines().filter(plan=plan, target=target).first()
    fall = _step_row(answer.trend.fall, answer.metric) if answer.trend.fall else None
    steps = [*answer.steps, *([fall] if fall else [])]
    context = {
        **vars(answer),
        "plan": plan,
        "target": target,
        "chart": msgspec.to_builtins(answer.chart),
        "drawing": _drawing(answer),
        "key": " ".join(marks_drawn(answer.chart)),
        "has_zeros": any(value.zeros for value in answer.trend.runs),
        "fall": fall,
        "changes": steps,
        "last": steps[-1] if steps else None,
        "gradual": _gradual(answer.trend),
        "line": _line(answer.trend),
        "baseline": baseline,
        "acceptance": address_of(baseline) if baseline and baseline.imported else "",
        "form": refused or answer.form,
        "false_alarms": f"{100 * FALSE_ALARMS:g} %",
        "false_alarms_dependent": f"{100 * FALSE_ALARMS_DEPENDENT:g} %",
        "min_runs": MIN_RUNS,
        "max_runs": MAX_RUNS,
    }
    return render(request, "screens/trend.html", context, status=422 if refused else 200)


def trend_answer(plan: Plan, target: Target, address: QueryDict) -> TrendAnswer:
    """It stays until one of its own runs changes, or another run of the plan has ended at the target."""
    runs = ended_ids(plan, target)
    choices = sorted((key, text) for key, text in address.items() if key not in ("plan", "target"))
    texts = (str(plan.pk), str(target.pk), urlencode(choices), *map(str, runs))
    compute = partial(_answer, address, plan.pk, target.pk, runs)
    return answered(Question(texts, scopes_of_runs(runs), TrendAnswer, compute, names_times=False))


def _answer(address: QueryDict, plan_id: UUID, target_id: UUID, run_ids: Sequence[UUID]) -> TrendAnswer:
    """Reads all rows itself, because a row that was read before the seal may be older than the seal."""
    plan, target = Plan.objects.get(pk=plan_id), Target.objects.select_related("host").get(pk=target_id)
    runs = runs_of(run_ids)
    metrics, default = metrics_of(runs[-1:], target)
    metric = next((metric for metric in metrics if metric.key == address.get("metric")), default)
    history = read_history(runs, target, metric)
    chosen = choose(address, history, metrics, metric)
    line = trend(history, metric, chosen.keys, chosen.direction)
    baseline = baselines().filter(plan=plan, target=target).first()
    in_trend = {value.run.pk for value in line.runs}
    outcomes = outcomes_on([_with_plan(run, plan) for run in runs if run.pk in in_trend], target)
    names = varying([cell.point for cell in line.cells])
    part_label = ["Part"] if any(cell.part for cell in line.cells) else []
    return TrendAnswer(
        metric=metric,
        choices=chosen.choices,
        trend=line,
        picture_title=f"{metric.label}: {plan.title} at {target}",
        picture_note=_picture_note(line),
        chart=_chart(line, baseline, outcomes),
        steps=[_step_row(step, metric) for step in line.steps],
        rows=[_run_row(value, line, outcomes) for value in reversed(line.runs)],
        cell_labels=[*(point_words.label(name) for name in names), *part_label],
        cells=_cell_rows(line, names, plan, target),
        form=baseline_form(runs, target, baseline, address.get("baseline", "")),
    )


def _drawing(answer: TrendAnswer) -> Drawing | None:
    """None without runs."""
    chart = answer.chart
    return Drawing(answer.picture_title, [trend_picture(chart)], answer.picture_note) if chart.points else None


def _picture_note(line: Trend) -> str:
    """What the values of a saved picture are."""
    of = "the repeats of one cell" if len(line.cells) == 1 else f"{len(line.cells)} cells"
    return f"Each run: geometric mean over {of}, with its 95 % confidence interval over repeats."


def _with_plan(run: Run, plan: Plan) -> Run:
    run.version.plan = plan
    return run


def _chart(line: Trend, baseline: Baseline | None, outcomes: Mapping[UUID, Outcome]) -> TrendChart:
    levels = [line.steps[0].old_level, *(step.new_level for step in line.steps)] if line.steps else []
    steps = [TrendStep(at_ms=(_ms(step.before) + _ms(step.after)) // 2, text=_size(step)) for step in line.steps]
    value_by_run = {value.run.pk: value.value for value in line.runs}
    return TrendChart(
        label=line.metric.label,
        shown_as=line.metric.shown_as,
        points=tuple(_point(value, outcomes.get(value.run.pk)) for value in line.runs),
        steps=tuple(steps),
        levels=tuple(levels),
        baseline=value_by_run.get(baseline.run_id) if baseline and baseline.run_id else None,
    )


def _point(value: RunValue, outcome: Outcome | None) -> TrendPoint:
    return TrendPoint(
        run=value.run.number, at_ms=_ms(value), value=value.value, low=value.low, high=value.high,
        verdict=LABELS[outcome] if outcome else "",
    )  # fmt: skip


def _ms(value: RunValue) -> int:
    return round(1000 * value.at.timestamp())


def _size(step: Step) -> str:
    return shown(step.ratio, PERCENT)


def _step_row(step: Step, metric: Metric) -> StepRow:
    better = (step.ratio < 1) == metric.lower_is_better
    levels = f"{metric.format(step.old_level)} → {metric.format(step.new_level)}"
    return StepRow(step, _size(step), "better" if better else "worse", levels)


@dataclass(frozen=True)
class Gradual:
    """`levels` are the ends of the line."""

    size: str
    mark: str  # better | worse
    levels: str
    runs: int
    first: RunValue


def _gradual(line: Trend) -> Gradual | None:
    drift = line.drift
    if drift is None:
        return None
    ratio = math.exp(drift.change)
    ends = (math.exp(drift.start), math.exp(drift.start + drift.change))
    mark = "better" if (ratio < 1) == line.metric.lower_is_better else "worse"
    levels = " → ".join(map(line.metric.format, ends))
    return Gradual(shown(ratio, PERCENT), mark, levels, drift.runs, line.runs[-drift.runs])


def _line(line: Trend) -> str:
    """What the runs since the last step say of a gradual change that is not certain or small."""
    drift = line.line
    if drift is None or line.drift:
        return ""
    interval = f"{shown(math.exp(drift.low), PERCENT)} to {shown(math.exp(drift.high), PERCENT)}"
    words = f"Any gradual change is within ±{100 * MARGIN:g} %" if line.is_steady else "No certain gradual change"
    return f"{words} over {len(line.since_step)} runs: 95 % interval {interval}."


def _run_row(value: RunValue, line: Trend, outcomes: Mapping[UUID, Outcome]) -> RunRow:
    show = line.metric.format
    interval = f"{show(value.low)} to {show(value.high)}" if value.low is not None else "–"
    step = next((_size(step) for step in line.steps if step.after is value), "")
    return RunRow(value, show(value.value), interval, outcomes.get(value.run.pk), value.changed, step)


def _cell_rows(line: Trend, names: tuple[str, ...], plan: Plan, target: Target) -> list[CellRow]:
    base = {"plan": plan.slug, "target": str(target), "metric": line.metric.key}
    show = line.metric.format
    in_parts = any(cell.part for cell in line.cells)
    return [
        CellRow(
            [*point_words.levels(cell.point, names), *([cell.part] if in_parts else [])],
            cell.direction, show(cell.first), show(cell.last),
            shown(cell.last / cell.first, PERCENT),
            urlencode(base | cell_address(cell.point, cell.direction, names)),
        )
        for cell in line.cells
    ]  # fmt: skip


def _list(request: HttpRequest) -> HttpResponse:
    """Every plan at every target with an ended run, or those that fit the address; one alone is opened. At most five
    queries."""
    plan, target = plan_and_target(request.GET)
    all_rows = summaries()
    rows = [row for row in all_rows if plan in (None, row.plan) and target in (None, row.target)]
    if (plan or target) and len(rows) == 1:
        return redirect(trend_address(rows[0].plan, rows[0].target))
    context = {
        "plan": plan, "target": target, "has_others": bool(all_rows),
        "is_making": not all_rows and Run.objects.filter(state=RunState.DONE).exists(),
    }  # fmt: skip
    return render(request, "screens/trends.html", context | trend_list(request.GET, rows))


@page
def baseline_page(request: HttpRequest, pk: int) -> HttpResponse:  # noqa: ARG001 - the framework gives it
    """The trend that the baseline belongs to."""
    baseline = get_object_or_404(baselines(), pk=pk)
    return redirect(trend_address(baseline.plan, baseline.target))


@operator_action
def set_baseline_run(request: HttpRequest) -> HttpResponse:
    """`plan`, `target` (host/target), `run` (number), `tolerance.<metric>` in percent."""
    given = request.POST
    plan, target = plan_and_target(given)
    if plan is None or target is None:
        raise Http404("There is no such plan or target.")
    before = baselines().filter(plan=plan, target=target).first()
    try:
        made = set_baseline(
            run=_run(plan, target, given.get("run", "")), target=target,
            tolerances=read_tolerances(given.dict()), by=person(request),
        )  # fmt: skip
    except Refusal as refusal:
        return show(request, plan, target, refused_form(plan, target, given.dict(), refusal.message))
    return _is_set(request, made, before)


@operator_action
def set_import(request: HttpRequest) -> HttpResponse:
    """Runs of `plan` at `target` are judged like the candidate of the acceptance test with the address `test`, whose
    baseline is an import."""
    plan, target = plan_and_target(request.POST)
    if plan is None or target is None:
        raise Http404("There is no such plan or target.")
    before = baselines().filter(plan=plan, target=target).first()
    address = request.POST.get("test", "")
    question = read_address(QueryDict(address))
    side = question.sides[0]
    try:
        made = set_import_baseline(
            plan=plan, target=target, imported=_import(imported_in(side)), levels=side.levels, ignored=question.ignored,
            single_values=question.single_values, by=person(request),
            tolerances=read_tolerances({f"{PREFIX}{key}": text for key, text in question.typed.items()}),
        )  # fmt: skip
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect(f"{reverse('acceptance')}?{address}")
    return _is_set(request, made, before)


def _is_set(request: HttpRequest, made: Baseline, before: Baseline | None) -> HttpResponse:
    words = f"The baseline of {made} is {made.name}."
    messages.success(request, _with_undo(request, words, before) if before else words)
    return redirect(trend_address(made.plan, made.target))


def _import(number: int | None) -> Import:
    imported = Import.objects.filter(number=number).first() if number is not None else None
    if imported is None:
        raise Refusal("import_unknown", "Choose an import or a reference as the baseline.")
    return imported


def _run(plan: Plan, target: Target, number: str) -> Run:
    runs = Run.objects.filter(version__plan=plan, targets=target).select_related("version__plan")
    run = runs.filter(number=number).first() if number.isascii() and number.isdigit() and len(number) < 10 else None
    if run is None:
        raise Refusal("run_unknown", "Choose a run of this plan at this target.")
    return run


@operator_action
def remove_baseline_run(request: HttpRequest, pk: int) -> HttpResponse:
    baseline = get_object_or_404(baselines(), pk=pk)
    removed = _with_undo(request, f"{baseline} no longer has a baseline.", baseline)
    remove_baseline(baseline=baseline, by=person(request))
    messages.success(request, removed)
    return redirect(trend_address(baseline.plan, baseline.target))


def _with_undo(request: HttpRequest, words: str, before: Baseline) -> SafeString:
    """Undo sets this baseline again."""
    given = {"plan": before.plan.slug, "target": str(before.target)}
    if before.run is None:
        given["test"] = address_of(before)
        return with_undo(request, words, reverse("set_import_baseline"), given=given.items())
    given |= {"run": str(before.run.number)}
    given |= {f"{PREFIX}{key}": str(percent) for key, percent in before.tolerances.items()}
    return with_undo(request, words, reverse("set_baseline"), given=given.items())
