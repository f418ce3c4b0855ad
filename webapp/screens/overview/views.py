"""The overview: what needs a person, the drives, what the last day found, what runs, and what comes next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from webapp.analysis.equals import BLOCK
from webapp.analysis.seals import COMPLETE_RESULTS
from webapp.bench.picking import Pair, pairs
from webapp.bench.products import Kind
from webapp.bench.side_by_side import Row, Selection, side_by_side
from webapp.bench.workloads import in_words
from webapp.core import formatting
from webapp.core.answers import Question, answered, answered_or_earlier
from webapp.core.health import readiness
from webapp.hosts.models import Host
from webapp.plans.models import Plan
from webapp.results.models import Import
from webapp.runs.dispatch.host_queues import Entry, HostQueue, queues
from webapp.runs.models import Attempt, Run
from webapp.schedules.selectors import next_due, occurrences_waiting
from webapp.screens.access import page
from webapp.screens.bench.address import bench_address
from webapp.screens.bench.rows import ShownRow, shown_row
from webapp.screens.hosts.presence import phase_words
from webapp.screens.hosts.views import active_attempts, host_rows, listed_hosts
from webapp.screens.overview.attention import situation
from webapp.screens.overview.drives import drives
from webapp.screens.overview.news import news
from webapp.screens.schedules.words import on_in_words
from webapp.screens.trend.sparkline import Scale
from webapp.trends.summaries import summaries, worst_by_target

# The first comparable pairs of Bench with a headline number of each.

PAIRS_SHOWN = 3
# Drives of own runs and imports come before references, which are of the kind IMPORT. Two targets or runs may be of one
# drive.
HARDWARE = (Kind.MODEL, Kind.IMPORT)


@dataclass(frozen=True)
class ShownPair:
    address: str
    names: tuple[str, str]
    row: ShownRow  # with a value of both
    confounded: str  # a warning if they were measured in different hosts, else ""


@dataclass(frozen=True)
class ShownPairs:
    pairs: tuple[ShownPair, ...]


def compared() -> tuple[ShownPair, ...]:
    """Until the next run has ended: the results of up to six pairs are read, which takes too long after each trial. The
    periodic task computes it then (`screens.tasks`)."""
    return answered(_comparison()).pairs


def _comparison() -> Question[ShownPairs]:
    return Question((), COMPLETE_RESULTS, ShownPairs, _compared, names_times=False)


def _compared() -> ShownPairs:
    hardware = [pair for pair in pairs() if all(offer.product.kind in HARDWARE for offer in pair.offers)]
    hardware.sort(key=lambda pair: any(offer.product.kind is Kind.IMPORT for offer in pair.offers))
    return ShownPairs(tuple(islice(_shown(iter(hardware)), PAIRS_SHOWN)))


def _shown(found: Iterator[Pair]) -> Iterator[ShownPair]:
    for pair in found:
        products = tuple(offer.product for offer in pair.offers)
        page = side_by_side(Selection(products, products[0]))
        if row := _headline([row for row in page.headlines if all(row.cells)]):
            shown = shown_row(page, row, in_words(row.workload, [BLOCK]))  # both have the same other factors
            names = pair.offers[0].text, pair.offers[1].text
            yield ShownPair(bench_address(products), names, shown, page.confounded)


def _headline(rows: Sequence[Row]) -> Row | None:
    """The first pattern at its lowest load: at their highest rate, drives may be equal at the limit of a link."""
    return [row for row in rows if row.panel == rows[0].panel][-1] if rows else None


# What runs and what comes next.

NEXT = 4
SERVER_PROBLEMS = {
    "database": "The database cannot write: its disk is full. Free space on the server.",
    "broker": "Redis does not answer, so no trial can start. Start it on the server.",
    "tasks": "The background tasks do not run. Start beat and the Celery worker of the queue server.",
}


@dataclass(frozen=True)
class Working:
    """A busy host."""

    host: Host
    run: Run
    attempt: Attempt
    phase: str


@dataclass(frozen=True)
class Coming:
    """A waiting run, a due time of a schedule, or one that waits. `why` is the reason to wait, or the duration."""

    at: datetime | None
    title: str
    address: str
    on: str
    why: str


@page
def overview_page(request: HttpRequest) -> HttpResponse:
    host_queues, active = queues(), active_attempts()
    hosts = host_rows(listed_hosts().filter(archived_at=None), active)
    trends = summaries()
    rows = worst_by_target(trends)
    scale = Scale.of(row.summary for row in rows)
    working = list(_working(host_queues, active))
    coming = _coming(host_queues)
    shown_pairs, as_of = answered_or_earlier(_comparison(), renew=lambda: None)  # the periodic task computes them
    compared_pairs = shown_pairs.pairs
    works = readiness(without=["migrations"])
    context = {
        "server_problems": [words for part, words in SERVER_PROBLEMS.items() if not works[part]],
        "is_empty": not hosts and not rows and not Import.objects.filter(slug=None).exists(),
        "has_hosts": bool(hosts),
        "now": timezone.now(),
        "situation": situation(trends, hosts, scale),
        "scale": scale,
        "drives": drives(rows, hosts, scale),
        "news": news(),
        "working": working,
        "coming": coming[:NEXT],
        "compared": compared_pairs,
        "compared_as_of": as_of,
        "compared_workload": _shared_workload(compared_pairs),
        "first_plan": Plan.objects.filter(deleted_at=None).order_by("created_at").first(),
    }
    return render(request, "screens/overview.html", context)


def _shared_workload(shown: Sequence[ShownPair]) -> str:
    """The workload of all pairs; "" if they differ."""
    workloads = {f"{pair.row.title}, {pair.row.words}" for pair in shown}
    return workloads.pop() if len(workloads) == 1 else ""


def _working(host_queues: Sequence[HostQueue], active: Mapping[UUID, Attempt]) -> Iterator[Working]:
    for queue in host_queues:
        attempt = active.get(queue.host.pk)
        if attempt is not None and attempt.run is not None:
            yield Working(queue.host, attempt.run, attempt, phase_words(attempt))


def _coming(host_queues: Sequence[HostQueue]) -> list[Coming]:
    """Waiting runs, the first of each host before the second of any; then schedules."""
    waiting = [
        (place, _waiting(queue, entry))
        for queue in host_queues
        for place, entry in enumerate(each for each in queue.entries if not each.working and not each.load.active)
    ]
    listed = [coming for _, coming in sorted(waiting, key=lambda each: each[0])]
    for occurrence in occurrences_waiting()[:NEXT]:
        on = occurrence.host.slug if occurrence.host else ""
        address = reverse("schedule", args=[occurrence.schedule_id])
        listed.append(Coming(occurrence.due_at, occurrence.schedule.name, address, on, occurrence.reason))
    for due in next_due(NEXT):
        address = reverse("schedule", args=[due.schedule.pk])
        listed.append(Coming(due.at, due.schedule.name, address, on_in_words(due.schedule), ""))
    return listed


def _waiting(queue: HostQueue, entry: Entry) -> Coming:
    why = queue.trouble or entry.waits_for or (formatting.duration(entry.load.seconds) if entry.load.seconds else "")
    address = reverse("run", args=[entry.run.number])
    return Coming(entry.starts_at, entry.run.version.plan.title, address, queue.host.slug, why)
