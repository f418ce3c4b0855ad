"""Runs: the list, one run, and cancelling it."""

import msgspec
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, F, Prefetch, Q, QuerySet
from django.db.models.functions import Extract
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from webapp.hosts.models import Target
from webapp.runs.models import OPEN_RUN_STATES, Move, Run, RunState, TrialState
from webapp.runs.services import cancel_run
from webapp.screens.access import operator_action, page, person
from webapp.screens.runs.grid import build_grid
from webapp.screens.runs.live import live_run

PER_PAGE = 50
MOVES_SHOWN = 100


def listed_runs() -> QuerySet[Run]:
    """Newest first, with everything a line about a run says."""
    return (
        Run.objects.select_related("version__plan", "created_by")
        .prefetch_related(Prefetch("targets", Target.objects.select_related("host")))
        .annotate(
            done_count=Count("trials", filter=Q(trials__state=TrialState.DONE)),
            failed_count=Count("trials", filter=Q(trials__state=TrialState.FAILED)),
            ended_count=Count("trials", filter=Q(trials__ended_at__isnull=False)),
            took_s=Extract(F("ended_at") - F("started_at"), "epoch"),
        )
        .order_by("-number")
    )


@page
def runs_page(request: HttpRequest) -> HttpResponse:
    runs = listed_runs()
    state = request.GET.get("state", "")
    if state in RunState.values:
        runs = runs.filter(state=state)
    shown = Paginator(runs, PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "screens/runs.html", {"runs": shown, "state": state, "states": RunState.choices})


def _run(number: int) -> Run:
    return get_object_or_404(Run.objects.select_related("version__plan", "created_by"), number=number)


def _cancellable(run: Run) -> bool:
    return run.state in (RunState.QUEUED, RunState.RUNNING) and run.cancel_requested_at is None


@page
def run_page(request: HttpRequest, number: int) -> HttpResponse:
    run = _run(number)
    payload = live_run(run, with_samples=False)
    trials = list(run.trials.select_related("host", "target").order_by("index"))
    moves = Move.objects.filter(run=run).select_related("trial").order_by("-at", "-id")
    context = {
        "run": run,
        "live": payload,
        "payload": msgspec.to_builtins(payload),
        "open": run.state in OPEN_RUN_STATES,
        "cancellable": _cancellable(run),
        "grid": build_grid(run, trials, payload.cells),
        "failures": [trial for trial in trials if trial.reason],
        "moves": moves[:MOVES_SHOWN],
        "targets": run.targets.select_related("host"),
    }
    return render(request, "screens/run.html", context)


@operator_action
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    run = _run(number)
    if _cancellable(run):
        cancel_run(run=run, by=person(request))
        messages.info(request, f"Run {run.number} is being cancelled; changed settings are put back.")
    else:
        messages.warning(request, f"Run {run.number} has already ended or is being cancelled.")
    return redirect("run", number=run.number)
