"""The list of runs, and the page of one run."""

import uuid

import msgspec
from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import F, Prefetch, QuerySet
from django.db.models.functions import Extract
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from webapp.hosts.models import Target
from webapp.plans.points import on_virtual_drives
from webapp.plans.varying import varying
from webapp.results.metrics import default_metric
from webapp.results.rounds import tracked_points
from webapp.results.validity import marks_changed
from webapp.runs.arming import arming_state, overwritten
from webapp.runs.dispatch.failure_limit import STOPPED
from webapp.runs.models import OPEN_RUN_STATES, Run, RunState, Transition, Trial, TrialState
from webapp.runs.selectors import runs_list
from webapp.screens.access import page
from webapp.screens.arming import drives_to_arm
from webapp.screens.hosts.differences import since_run_before
from webapp.screens.outcome import outcome
from webapp.screens.payloads import LiveRun
from webapp.screens.runs.filters import filter_choices, filtered_runs
from webapp.screens.runs.grid import build_grid, in_plan_order
from webapp.screens.runs.live import NOT_RUN, live_run
from webapp.screens.runs.pivot import build_pivot
from webapp.screens.runs.shares import share_rows
from webapp.screens.runs.story import counted, observed, put_back_at, setting_rows
from webapp.screens.runs.wear import wear_rows

PER_PAGE = 50
TRANSITIONS_SHOWN = 100


def listed_runs() -> QuerySet[Run]:
    """Newest first, with all data for a row."""
    targets = Prefetch("targets", Target.objects.select_related("host"))
    runs = runs_list().select_related("occurrence__schedule").prefetch_related(targets)
    return runs.annotate(took_s=Extract(F("ended_at") - F("started_at"), "epoch"))


@page
def runs_page(request: HttpRequest) -> HttpResponse:
    shown = Paginator(filtered_runs(listed_runs(), request.GET), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "runs": shown,
        "choices": filter_choices(request.GET),
        "text": request.GET.get("text", ""),
        "filtered": any(value for key, value in request.GET.items() if key != "page"),
    }
    return render(request, "screens/runs.html", context)


def _run(number: int) -> Run:
    people = ("created_by", "paused_by", "armed_by")
    related = Run.objects.select_related("version__plan", *people, "again_of", "occurrence__schedule")
    return get_object_or_404(related, number=number)


@page
def run_page(request: HttpRequest, number: int) -> HttpResponse:
    run = _run(number)
    payload = live_run(run, with_samples=False)
    trials = list(
        run.trials.defer("workload", "further_workloads", "settings")
        .prefetch_related("host", "target__host", "skipped_by")
        .order_by("index")
    )
    distinct = {trial.point_key: trial.point for trial in trials}.values()
    metric, names = default_metric(distinct), varying(distinct)
    ordered, own_metric = in_plan_order(run, trials, names), not metric.column
    transitions = Transition.objects.filter(run=run).select_related("trial", "by").order_by("-at", "-id")
    transitions = transitions.only("at", "before", "after", "code", "fields", "trial__index", "by__username")
    context = {
        "run": run,
        "live": payload,
        "picture_title": f"Run {run.number}: {run.version.plan.title}",
        "picture_note": "Time: min:s since the run began.",
        "payload": msgspec.to_builtins(payload),
        "open": run.state in OPEN_RUN_STATES,
        "grid": build_grid(run, ordered, names, payload.cells, own_metric=own_metric),
        "pivot": build_pivot(run, ordered, names, payload.cells, own_metric=own_metric),
        "own_metric": metric.label if own_metric else "",
        "failures": [trial for trial in trials if trial.reason and trial.reason_code not in NOT_RUN],
        "transitions": transitions[:TRANSITIONS_SHOWN],
        "targets": run.targets.select_related("host"),
        "notes": run.notes.select_related("by", "trial"),
        "counted": counted(run, payload),
        "outcome": outcome(run, marks=marks_changed(str(run.number))) if payload.ended else None,
        "setting_rows": setting_rows(run),
        "observed": observed(run),
        "virtual_drives": on_virtual_drives(distinct),
        "since_before": since_run_before(run),
        "wear_rows": wear_rows(run),
        "shares": share_rows(run) if any(trial.stream_names for trial in trials) else (),
        "tracked": tracked_points(run),
        **_actions(run, payload, trials),
    }
    return render(request, "screens/run.html", context)


def _actions(run: Run, live: LiveRun, trials: list[Trial]) -> dict[str, object]:
    """Data for the action buttons and their dialogs."""
    changeable = run.state in (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED) and run.cancel_requested_at is None
    arming = arming_state(run) if changeable else None
    destroyed = overwritten(trials) if live.ended else []
    return {
        "changeable": changeable,
        "planned": sum(trial.state == TrialState.PLANNED for trial in trials),
        "left_out": sum(trial.reason_code == STOPPED for trial in trials),
        "arming": arming,
        "drives": drives_to_arm(arming.drives) if arming and not arming.holds else [],
        "destroyed": destroyed,
        "drives_again": drives_to_arm(destroyed) if destroyed else [],
        "put_back_at": put_back_at(run) if run.state == RunState.PAUSED else None,
        "keeps_s": settings.PAUSE_RESTORE_SECONDS,
        "request_id": uuid.uuid4(),
    }
