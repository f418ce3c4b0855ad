"""What is happening now, what came of it lately, and how to begin."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.hosts.models import Host
from webapp.plans.models import Plan
from webapp.runs.models import OPEN_RUN_STATES
from webapp.screens.access import page
from webapp.screens.runs.views import listed_runs

LATEST = 10


@page
def overview_page(request: HttpRequest) -> HttpResponse:
    runs = listed_runs()
    context = {
        "running": list(runs.filter(state__in=OPEN_RUN_STATES).order_by("number")),
        "latest": list(runs.exclude(state__in=OPEN_RUN_STATES)[:LATEST]),
        "hosts": Host.objects.count(),
        "first_plan": Plan.objects.filter(deleted_at=None).order_by("created_at").first(),
    }
    return render(request, "screens/overview.html", context)
