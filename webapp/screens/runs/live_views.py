"""Requests of open pages: a run's live data once a second, its sections that change when a trial ends, and whether
results were marked as invalid."""

import msgspec
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache

from webapp.results.validity import marks_changed
from webapp.runs.models import OPEN_RUN_STATES, Run
from webapp.screens.access import page
from webapp.screens.payloads import Marks
from webapp.screens.runs.live import BadCursor, live_run
from webapp.screens.runs.shared import SharedAnswers
from webapp.screens.runs.story import observed, setting_rows
from webapp.screens.runs.wear import wear_rows

_answers = SharedAnswers()


@never_cache
@page
def live(request: HttpRequest, number: int) -> HttpResponse:
    run = get_object_or_404(Run, number=number)
    after = request.GET.get("after", "")
    try:
        body = _answers.get((run.pk, after), lambda: msgspec.json.encode(live_run(run, after)))
    except BadCursor as error:
        return JsonResponse({"code": "bad_cursor", "message": str(error)}, status=422)
    return HttpResponse(body, content_type="application/json")


@never_cache
@page
def wear(request: HttpRequest, number: int) -> HttpResponse:
    """The section about bytes written to drives; the page fetches it again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    context = {"wear_rows": wear_rows(run), "open": run.state in OPEN_RUN_STATES}
    return render(request, "screens/parts/wear.html", context)


@never_cache
@page
def settings(request: HttpRequest, number: int) -> HttpResponse:
    """The section about settings and configuration; the page fetches it again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    context = {"run": run, "setting_rows": setting_rows(run), "observed": observed(run)}
    return render(request, "screens/parts/run_settings.html", context)


@never_cache
@page
def marks(request: HttpRequest) -> HttpResponse:
    """The number of validity changes in `?run=17`, or in all runs."""
    found = Marks(count=marks_changed(request.GET.get("run", "")[:60]))
    return HttpResponse(msgspec.json.encode(found), content_type="application/json")
