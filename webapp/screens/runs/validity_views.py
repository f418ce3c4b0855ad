"""Mark results as invalid or valid."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.results.validity import mark_run, mark_trial, trust_run, trust_trial
from webapp.runs.models import Run, Trial
from webapp.screens.access import operator_action, person
from webapp.screens.undo import with_undo


def _trial(run: int, number: int) -> Trial:
    return get_object_or_404(Trial.objects.select_related("run").numbered(number), run__number=run)


@operator_action
def trial_invalid(request: HttpRequest, number: int, trial: int) -> HttpResponse:
    found = _trial(number, trial)
    try:
        mark_trial(trial=found, reason=request.POST.get("reason", ""), by=person(request))
        words = f"The results of trial {trial} are marked as invalid and left out of comparisons."
        messages.info(request, with_undo(request, words, reverse("trial_valid", args=[number, trial])))
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("trial", number=number, trial=trial)


@operator_action
def trial_valid(request: HttpRequest, number: int, trial: int) -> HttpResponse:
    found = _trial(number, trial)
    try:
        trust_trial(trial=found, by=person(request))
        messages.info(request, f"The results of trial {trial} are valid again.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("trial", number=number, trial=trial)


@operator_action
def run_invalid(request: HttpRequest, number: int) -> HttpResponse:
    run = get_object_or_404(Run, number=number)
    try:
        mark_run(run=run, reason=request.POST.get("reason", ""), by=person(request))
        words = f"All results of run {number} are marked as invalid and left out of comparisons."
        messages.info(request, with_undo(request, words, reverse("run_valid", args=[number])))
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("run", number=number)


@operator_action
def run_valid(request: HttpRequest, number: int) -> HttpResponse:
    trust_run(run=get_object_or_404(Run, number=number), by=person(request))
    messages.info(request, f"Run {number} is valid again, except for trials that were marked on their own.")
    return redirect("run", number=number)
