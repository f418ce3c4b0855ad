"""The overview: current trials, the queue, hardware compared, recent results, health, schedules, and first steps."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from uuid import UUID

from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from webapp.bench.picking import Pair, pairs
from webapp.bench.products import Kind
from webapp.bench.side_by_side import Asked, Row, side_by_side
from webapp.core.health import readiness
from webapp.hosts.models import Host
from webapp.plans.models import Plan
from webapp.results.models import Import, KernelLine, Origin, Result
from webapp.results.validity import marks_changed
from webapp.runs.dispatch.host_queues import Entry, HostQueue, queues
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run, Trial, TrialState
from webapp.runs.selectors import marks_of
from webapp.schedules.models import Schedule
from webapp.schedules.selectors import missed_since, next_due, occurrences_waiting
from webapp.screens.access import page
from webapp.screens.bench.address import bench_address
from webapp.screens.bench.rows import ShownRow, shown_row
from webapp.screens.hosts.presence import phase_words
from webapp.screens.hosts.views import HostRow, active_attempts, host_rows, listed_hosts
from webapp.screens.outcome import Outcome, outcome
from webapp.screens.runs.views import listed_runs
from webapp.screens.schedules.trend import Line, trend
from webapp.screens.schedules.words import on_in_words
from worker.contract.steadiness import LABELS, NOT_STEADY, Verdict

# The first comparable pairs of Bench with a headline number of each.

PAIRS_SHOWN = 3
HARDWARE = (Kind.MODEL, Kind.IMPORT)  # not two targets or runs, which may be of one drive


@dataclass(frozen=True)
class ShownPair:
    address: str
    names: tuple[str, str]
    row: ShownRow  # with a value of both
    confounded: str  # a warning if they were measured in different hosts, else ""


def compared() -> tuple[ShownPair, ...]:
    """Four queries, unless an import was made or undone, a reference was loaded again, a run has ended, or results were
    marked since the last time."""
    imports = Import.objects.aggregate(newest=Max("pk"), count=Count("pk"), results=Sum("results_made"))
    tests = Origin.objects.aggregate(newest=Max("pk"))
    ended = Run.objects.exclude(ended_at=None).order_by("-ended_at").values_list("pk", flat=True).first()
    made = imports["count"], imports["results"], tests["newest"]
    return _compared(imports["newest"], made, ended, marks_changed())


@lru_cache(maxsize=1)
def _compared(
    newest: int | None, _imports: tuple[int, int | None, int | None], ended: UUID | None, _marks: int
) -> tuple[ShownPair, ...]:
    """The results of up to six pairs are read, which takes too long for each request."""
    if newest is None and ended is None:
        return ()
    hardware = (pair for pair in pairs() if all(offer.product.kind in HARDWARE for offer in pair.offers))
    return tuple(islice(_shown(hardware), PAIRS_SHOWN))


def _shown(found: Iterator[Pair]) -> Iterator[ShownPair]:
    for pair in found:
        products = tuple(offer.product for offer in pair.offers)
        page = side_by_side(Asked(products, products[0]))
        if row := _headline([row for row in page.headlines if all(row.cells)]):
            words = page.matched.texts[row.workload.key]
            shown = shown_row(page, row, words)
            names = pair.offers[0].text, pair.offers[1].text
            yield ShownPair(bench_address(products), names, shown, page.confounded)


def _headline(rows: Sequence[Row]) -> Row | None:
    """The first pattern at its lowest load: at their highest rate, drives may be equal at the limit of a link."""
    return [row for row in rows if row.panel == rows[0].panel][-1] if rows else None


# What to do next: suggestions that depend on what the product already has.

MAX_ADVICE = 3


@dataclass(frozen=True)
class Advice:
    """`link` is the text of the link, `why` one sentence after it."""

    link: str
    address: str
    why: str


def advice(hosts: Iterable[HostRow], latest: Sequence[Run], *, has_schedules: bool) -> list[Advice]:
    return list(islice(_all(list(hosts), latest, has_schedules), MAX_ADVICE))


def _all(hosts: list[HostRow], latest: Sequence[Run], has_schedules: bool) -> Iterator[Advice]:
    for row in hosts:
        if not row.usable:
            address = reverse("host", args=[row.host.slug])
            yield Advice(f"Allow a target on {row.host.slug}", address, "Its policy file allows no usable target.")
    if not latest:
        yield Advice("Start a plan", reverse("plans"), "The plan First look takes about three minutes.")
        return
    if found := _failed(latest):
        number, failed = found
        trials = "trial" if failed == 1 else "trials"
        link = f"Repeat the {failed} failed {trials} of run {number}"
        yield Advice(link, reverse("run", args=[number]), "Press Run again on its page.")
    yield Advice(
        "Explore the latest results", f"{reverse('explore')}?run={latest[0].number}", "Choose series and axes."
    )
    if not has_schedules:
        yield Advice("Schedule a plan", reverse("plans"), "Repeated runs show changes over time.")
    yield Advice("Compare with references or other tools", reverse("imports"), "Import files, or open the references.")
    if len(hosts) == 1:
        yield Advice("Add a second host", reverse("hosts"), "Runs of one plan can then compare two hosts.")


def _failed(latest: Sequence[Run]) -> tuple[int, int] | None:
    """The number of the newest valid run with failed trials that was not run again, and how many they are."""
    failed = Trial.objects.filter(run__in=latest, run__invalid_reason="", run__again=None, state=TrialState.FAILED)
    counted = failed.order_by("-run__number").values_list("run__number").annotate(Count("pk"))
    return counted.first()


# Finished runs whose numbers need a second look: unsteady results and storage errors in the kernel log.


@dataclass(frozen=True)
class Doubted:
    run: Run
    sentences: tuple[str, ...]


def doubted(runs: Iterable[Run]) -> list[Doubted]:
    """Those of the runs with a doubt, in their order. Two queries."""
    listed = list(runs)
    sentences: defaultdict[object, list[str]] = defaultdict(list)
    for run, counts in _unsteady(listed).items():
        sentences[run] += [
            _count(counts[verdict], LABELS[Verdict(verdict)]) for verdict in NOT_STEADY if counts[verdict]
        ]
    for run, trials in _storage_errors(listed).items():
        sentences[run].append(_count(trials, "with storage errors in the kernel log"))
    return [Doubted(run, tuple(sentences[run.pk])) for run in listed if run.pk in sentences]


def _unsteady(runs: list[Run]) -> dict[object, Counter[str]]:
    """Trials by run and verdict."""
    found = Result.objects.filter(run__in=runs, invalid=False, steadiness__in=NOT_STEADY).order_by()
    by_run: defaultdict[object, Counter[str]] = defaultdict(Counter)
    for run, verdict, trials in found.values_list("run", "steadiness").annotate(Count("trial", distinct=True)):
        by_run[run][verdict] = trials
    return by_run


def _storage_errors(runs: list[Run]) -> dict[object, int]:
    """The number of trials by run."""
    lines = KernelLine.objects.filter(attempt__run__in=runs, elsewhere=False).order_by()
    return dict(lines.values_list("attempt__run").annotate(Count("attempt__trial", distinct=True)))


def _count(trials: int, what: str) -> str:
    return f"{trials} trial{'' if trials == 1 else 's'} {what}"


# Problems of the server and of its hosts, for the overview.

HOSTS_SHOWN = 6
_SERVER_PROBLEMS = {
    "database": "The database cannot write: its disk is full. Free space on the server.",
    "broker": "Redis does not answer, so no trial can start. Start it on the server.",
    "tasks": "The background tasks do not run. Start beat and the Celery worker of the queue server.",
}


@dataclass(frozen=True)
class Health:
    """`rows` are hosts, those with problems first; `more` is the number of further ones."""

    server: tuple[str, ...]
    rows: tuple[HostRow, ...]
    more: int
    more_with_problems: int


def health(active: Mapping[UUID, Attempt]) -> Health:
    """`active` attempts by host id. A fixed number of queries."""
    rows = sorted(host_rows(listed_hosts().filter(archived_at=None), active), key=_has_no_problem)
    rest = rows[HOSTS_SHOWN:]
    works = readiness(without=["migrations"])
    return Health(
        server=tuple(words for part, words in _SERVER_PROBLEMS.items() if not works[part]),
        rows=tuple(rows[:HOSTS_SHOWN]),
        more=len(rest),
        more_with_problems=sum(not _has_no_problem(row) for row in rest),
    )


def _has_no_problem(row: HostRow) -> bool:
    return not row.warnings and row.presence.state in ("done", "running")


# The trends of the schedules whose runs ended last.

SCHEDULES_SHOWN = 3


@dataclass(frozen=True)
class ShownTrend:
    schedule: Schedule
    metric: str
    line: Line


def latest_trends() -> list[ShownTrend]:
    """One for each host of a schedule, if at least two of its runs have a value. Two queries for each schedule."""
    ended = Max("occurrences__run__ended_at")
    schedules = Schedule.objects.filter(deleted_at=None).annotate(ended=ended).exclude(ended=None)
    found = [(each, trend(each)) for each in schedules.select_related("version").order_by("-ended")[:SCHEDULES_SHOWN]]
    return [
        ShownTrend(schedule, made.metric, line)
        for schedule, made in found
        if made is not None
        for line in made.lines
        if line.change
    ]


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
