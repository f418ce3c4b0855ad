"""Findings of ended runs, stored once and read by the overview, lists, notices and the API.

A periodic task (`analysis.tasks`) makes them: of runs that have ended since, of runs with results that were marked as
invalid or valid since, of the runs after these, and of all runs when the rules change. `store` is the only writer. A
fault of the rules is logged and noted, so that it is not repeated at each tick.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from time import monotonic

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.analysis.answer import FindingKind
from webapp.analysis.evidence import RunFinding
from webapp.analysis.models import FindingReview, FindingsMade, StoredFinding
from webapp.analysis.past_findings import next_runs
from webapp.analysis.reviews import with_review
from webapp.analysis.run_answer import MOST_FINDINGS, VERSION, run_answer
from webapp.core.models import Counter
from webapp.results.validity import marks_changed
from webapp.runs.models import Run

log = logging.getLogger(__name__)

NEWS_OF_RUN = 3  # of one run among the newest of all
NO_NEWS = (FindingKind.UNCERTAIN, FindingKind.GROWTH, FindingKind.UNCHANGED)


def make_due(budget_s: float) -> int:
    """Make the findings of runs whose findings are missing or outdated, the newest first, until the time is used up.
    Return the number of runs. A started run is finished; its size is bounded by `comparing.MAX_RESULTS`."""
    until, made = monotonic() + budget_s, 0
    for run in _due_runs():
        if monotonic() >= until:
            break
        make(run)
        made += 1
    return made


def make(run: Run) -> None:
    """Make and store the findings of an ended run."""
    marks = marks_changed(str(run.number))
    try:
        store(run, run_answer(run).findings, seal=str(marks))
    except Exception:
        log.exception("the findings of run %s could not be made.", run.number)
        store(run, (), seal=str(marks), failed=True)


@transaction.atomic
def store(run: Run, findings: Sequence[RunFinding], *, seal: str, failed: bool = False) -> None:
    """Replace the findings of a run."""
    values = {"version": VERSION, "seal": seal, "made_at": timezone.now(), "failed": failed}
    FindingsMade.objects.update_or_create(run=run, defaults=values)  # locks the row: one writer at a time
    StoredFinding.objects.filter(run=run).delete()
    StoredFinding.objects.bulk_create(
        StoredFinding(run=run, place=place, key=each.key, content=msgspec.to_builtins(each))
        for place, each in enumerate(findings)
    )


def _due_runs() -> Iterator[Run]:
    ended = Run.objects.filter(ended_at__isnull=False).select_related("version__plan").order_by("-ended_at")
    yield from ended.filter(~_of_these_rules("pk"))[:100]
    for marked in ended.filter(number__in=_marked_since()):
        yield from next_runs(marked)  # first, because the seal of the marked run is outdated until it is made
        yield marked


def _marked_since() -> list[int]:
    """The numbers of runs whose marks have changed since their findings were made. Few runs have any mark."""
    marks = dict(Counter.objects.filter(name=Counter.MARKS).exclude(label="").values_list("label", "value"))
    made = FindingsMade.objects.filter(run__number__in=map(int, marks), version=VERSION)
    return [number for number, seal in made.values_list("run__number", "seal") if seal != str(marks[str(number)])]


def newest(since: datetime, limit: int) -> list[RunFinding]:
    """What the runs that have ended since found: first what changed since the previous run, then the rest, the last run
    first, the most important of each first. Without what is dismissed, not certain or no claim, without invalid runs,
    and without runs whose findings are of other rules (`are_due`). Two queries."""
    ended = StoredFinding.objects.filter(_of_these_rules(), run__ended_at__gte=since, run__invalid_reason="")
    is_change = Q(content__kind=FindingKind.CHANGED)
    rows = ended.alias(is_change=is_change).order_by("-is_change", "-run__ended_at", "place")[: limit * MOST_FINDINGS]
    news = (finding for finding in _read(rows) if not finding.is_dismissed and finding.kind not in NO_NEWS)
    return [
        finding
        for _, of_run in groupby(news, key=lambda finding: finding.run)
        for finding in list(of_run)[:NEWS_OF_RUN]
    ][:limit]


def findings_of(runs: Iterable[Run]) -> dict[int, list[RunFinding]]:
    """By number of the run, the most important first, also the dismissed ones. Runs whose findings are not made yet by
    these rules are missing. Three queries."""
    listed = list(runs)
    made = FindingsMade.objects.filter(run__in=listed, version=VERSION).values_list("run__number", flat=True)
    by_run: dict[int, list[RunFinding]] = {number: [] for number in made}
    for finding in _read(StoredFinding.objects.filter(_of_these_rules(), run__in=listed).order_by("run", "place")):
        by_run[finding.run].append(finding)
    return by_run


def are_due(since: datetime) -> bool:
    """Whether findings of runs that have ended since are not made yet by these rules."""
    return Run.objects.filter(~_of_these_rules("pk"), ended_at__gte=since, invalid_reason="").exists()


def _of_these_rules(run: str = "run") -> Exists:
    """Findings of two versions of the rules never stand side by side."""
    return Exists(FindingsMade.objects.filter(run=OuterRef(run), version=VERSION))


def _read(rows: QuerySet[StoredFinding]) -> Iterator[RunFinding]:
    """With their reviews. The rows are of these rules."""
    listed = list(rows.select_related("run__version"))
    reviews = {(each.plan_id, each.key): each for each in _reviews(listed)}
    for row in listed:
        finding = msgspec.convert(row.content, RunFinding)
        yield with_review(finding, reviews.get((row.run.version.plan_id, row.key)))


def _reviews(rows: Sequence[StoredFinding]) -> QuerySet[FindingReview]:
    plans = {row.run.version.plan_id for row in rows}
    return FindingReview.objects.filter(plan__in=plans, key__in={row.key for row in rows}).select_related("by")
