"""The overview: current trials, the queue, hardware compared, recent results, health, schedules, and first steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from webapp.hosts.models import Host
from webapp.plans.models import Plan
from webapp.runs.dispatch.host_queues import Entry, HostQueue, queues
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run
from webapp.runs.selectors import marks_of
from webapp.schedules.models import Schedule
from webapp.schedules.selectors import missed_since, next_due, occurrences_waiting
from webapp.screens.access import page
from webapp.screens.hosts.presence import phase_words
from webapp.screens.hosts.views import active_attempts
from webapp.screens.outcome import Outcome, outcome
from webapp.screens.overview.advice import advice
from webapp.screens.overview.compared import compared
from webapp.screens.overview.doubted import doubted
from webapp.screens.overview.health import health
from webapp.screens.overview.trends import latest_trends
from webapp.screens.runs.views import listed_runs
from webapp.screens.schedules.words import on_in_words

LATEST = 10
NEXT = 8
DUE_NEXT = 5
MISSED_SHOWN = 3
MISSED_WITHIN = timedelta(days=7)


@dataclass(frozen=True)
class Working:
    """A busy host."""

    host: Host
    run: Run
    attempt: Attempt
    phase: str


@dataclass(frozen=True)
class Waiting:
    """A waiting run of a host."""

    queue: HostQueue
    entry: Entry


@page
def overview_page(request: HttpRequest) -> HttpResponse:
    found, active = queues(), active_attempts()
    working = [
        Working(queue.host, attempt.run, attempt, phase_words(attempt))
        for queue in found
        if (attempt := active.get(queue.host.pk)) is not None and attempt.run is not None
    ]
    waiting, latest, hosts, schedules = _waiting(found), _latest(), health(active), _schedules()
    runs = [run for run, _ in latest]
    context = {
        "working": working,
        "waiting": waiting[:NEXT],
        "more": max(0, len(waiting) - NEXT),
        "latest": latest,
        "health": hosts,
        "compared": compared(),
        "doubted": doubted(runs),
        "trends": latest_trends(),
        "advice": advice(hosts.rows, runs, has_schedules=bool(schedules["has_schedules"])),
        **schedules,
        "first_plan": Plan.objects.filter(deleted_at=None).order_by("created_at").first(),
    }
    return render(request, "screens/overview.html", context)


def _schedules() -> dict[str, object]:
    """The next due times, and those missed in the last week."""
    missed = missed_since(timezone.now() - MISSED_WITHIN)
    return {
        "due_next": [(due, on_in_words(due.schedule)) for due in next_due(DUE_NEXT)],
        "occurrences_waiting": occurrences_waiting()[:DUE_NEXT],
        "missed": missed[:MISSED_SHOWN],
        "more_missed": max(0, missed.count() - MISSED_SHOWN),
        "has_schedules": Schedule.objects.filter(deleted_at=None).exists(),
    }


def _waiting(found: Sequence[HostQueue]) -> list[Waiting]:
    """Waiting runs, the first of each host before the second of any."""
    rows = [
        (place, Waiting(queue, entry))
        for queue in found
        for place, entry in enumerate(one for one in queue.entries if not one.working and not one.load.active)
    ]
    return [row for _, row in sorted(rows, key=lambda row: row[0])]


def _latest() -> list[tuple[Run, Outcome]]:
    runs = listed_runs().exclude(state__in=OPEN_RUN_STATES).annotate(marks=marks_of("number"))[:LATEST]
    return [(run, outcome(run, marks=run.marks)) for run in runs]
