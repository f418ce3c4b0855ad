"""The overview: what needs a person, the drives, what the last day found, what runs, and what comes next."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from webapp.analysis import import_findings
from webapp.analysis.equals import BLOCK
from webapp.analysis.evidence import Line, Picture, RunFinding
from webapp.analysis.run_findings import are_due, newest
from webapp.analysis.seals import COMPLETE_RESULTS
from webapp.bench.forest import telling_factors
from webapp.bench.picking import Pair, pairs
from webapp.bench.products import Kind
from webapp.bench.side_by_side import Row, Selection, side_by_side
from webapp.bench.workloads import MAIN, in_words
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
from webapp.screens.findings import address, as_heading
from webapp.screens.hosts.presence import phase_words
from webapp.screens.hosts.views import active_attempts, host_rows, listed_hosts
from webapp.screens.overview.attention import SINCE, situation
from webapp.screens.overview.drives import drives
from webapp.screens.schedules.words import on_in_words
from webapp.screens.trend.charts import Scale
from webapp.trends.summaries import summaries, worst_by_target

# What the runs and imports of the last day show: a sentence each, with a small picture of what shows it.

SHOWN = 3
AGO = timedelta(days=7)  # if the last day found nothing
WIDTH, HEIGHT, MARGIN = 236, 56, 5  # px
MOST_LINES = 4


@dataclass(frozen=True)
class Curve:
    """`pieces` are points of polylines: a level without a value breaks the line. `is_evidence`: the sentence is about
    it."""

    pieces: tuple[str, ...]
    is_evidence: bool


@dataclass(frozen=True)
class Drawing:
    """`one`: height of the ratio 1, None for a picture of values."""

    curves: tuple[Curve, ...]
    one: float | None
    label: str


@dataclass(frozen=True)
class Item:
    """`claim` has no interval; `certainty` is that, and what else may explain the claim."""

    claim: str
    certainty: str
    address: str
    title: str
    drawing: Drawing | None


@dataclass(frozen=True)
class News:
    """`ended`: runs of the last day, also invalid ones, as on the page Runs. `is_old`: the findings are of the days
    before. `are_due`: others are being made, because their runs have just ended or the rules have changed."""

    items: tuple[Item, ...]
    ended: int
    is_old: bool
    are_due: bool


def news() -> News:
    """At most eight queries."""
    now = timezone.now()
    ended = Run.objects.filter(ended_at__gte=now - SINCE).count()
    items = _items(now - SINCE)
    is_old = not items
    return News(items or _items(now - AGO), ended, is_old, are_due(now - (AGO if is_old else SINCE)))


def _items(since: datetime) -> tuple[Item, ...]:
    """Findings of runs, then one of each import."""
    of_imports = (_item_of_import(*each) for each in import_findings.newest(since, SHOWN))
    return (*map(_item, newest(since, SHOWN)), *of_imports)[:SHOWN]


def _item_of_import(imported: Import, sentence: str) -> Item:
    return Item(
        sentence, "", reverse("import", args=[imported.number]), title=f"Import {imported.number}", drawing=None
    )


def _item(finding: RunFinding) -> Item:
    return Item(
        claim=as_heading(finding.claim).partition(";")[0],
        certainty=" · ".join(filter(None, (finding.certainty, finding.doubt.partition(":")[0]))),
        address=address(finding),
        title=f"Run {finding.run}",
        drawing=drawing(finding.picture) if finding.picture else None,
    )


def drawing(picture: Picture) -> Drawing | None:
    """On a logarithmic axis; None if a value is not positive, or if nothing can be connected by a line: without labels,
    single dots say nothing."""
    lines = picture.lines[:MOST_LINES]
    values = [value for line in lines for value in line.values if value is not None]
    if not values or min(values) <= 0 or not picture.ordered:
        return None
    low, high = (pick([*values, 1.0] if picture.ratios else values) for pick in (min, max))
    span = math.log(high / low) or 1.0

    def up(value: float) -> float:
        return round(HEIGHT - MARGIN - math.log(value / low) / span * (HEIGHT - 2 * MARGIN), 1)

    reach = (WIDTH - 2 * MARGIN) / max(1, len(picture.levels) - 1)
    curves = tuple(Curve(_pieces(line, reach, up), line.first is not None) for line in lines)
    if not any(curve.pieces for curve in curves):
        return None
    names = ", ".join(line.name for line in lines if line.name)
    return Drawing(
        curves, up(1.0) if picture.ratios else None, f"{picture.metric_label} over {picture.x_label}: {names}"
    )


def _pieces(line: Line, reach: float, up: Callable[[float], float]) -> tuple[str, ...]:
    pieces: list[list[str]] = [[]]
    for place, value in enumerate(line.values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{MARGIN + place * reach:.1f},{up(value):g}")
    return tuple(" ".join(piece) for piece in pieces if len(piece) > 1)


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
    metric: str = ""  # its label; "" in answers that were stored before they held it

    @property
    def of(self) -> str:
        """IOPS · Random read, lowest load, 4 KiB."""
        return " · ".join(filter(None, (self.metric, f"{self.row.title}, {self.row.words}")))


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


def _shown(alike_pairs: Iterator[Pair]) -> Iterator[ShownPair]:
    for pair in alike_pairs:
        products = tuple(offer.product for offer in pair.offers)
        page = side_by_side(Selection(products, products[0]))
        if row := _headline([row for row in page.headlines if all(row.cells)]):
            beside = [each.workload for group in page.groups if group.panel == row.panel for each in group.rows]
            named = [BLOCK, *(name for name in telling_factors(beside) if name not in MAIN)]
            shown = shown_row(page, row, in_words(row.workload, named))
            names = pair.offers[0].text, pair.offers[1].text
            yield ShownPair(bench_address(products), names, shown, page.confounded, row.panel.metric.label)


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
    """Metric and workload of all pairs; "" if they differ."""
    workloads = {pair.of for pair in shown}
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
