"""Which old runs may be deleted, the space that this frees, and their deletion.

A run is old if it ended before the age of its plan (SWEETSPOT_RUN_DAYS_OF_PLANS), else of all plans
(SWEETSPOT_RUN_DAYS); 0 keeps runs for ever. An old run is kept if

- it is a baseline,
- a schedule starts after it,
- it has the tag `keep`, or
- a saved comparison shows results of it; if its numbers are frozen, if it names the run.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from django.db.models import Count, Exists, Model, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncMonth

from webapp.analysis.models import SavedComparison
from webapp.analysis.question import read_query, split
from webapp.bench.products import Kind
from webapp.bench.saved import is_bench, selection_of
from webapp.core.errors import Refusal
from webapp.plans.models import Plan
from webapp.results.models import Attachment, Result, StreamRun
from webapp.results.reading.filter import ResultFilter, read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.retention import Partition, delete_run
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run, Transition, Trial
from webapp.schedules.models import Schedule
from webapp.storage.sizes import tables
from webapp.trends.models import Baseline

log = logging.getLogger(__name__)

KEEP_TAG = "keep"
MAX_DAYS = 36_500
MAX_DELETED = 1_000  # of one day; the next day goes on
_REFERRED = (
    Exists(Baseline.objects.filter(run=OuterRef("pk")))
    | Exists(Schedule.objects.filter(after_run=OuterRef("pk")))
    | Q(tags__contains=[KEEP_TAG])
)
# Tables in which a run has rows, and how they lead to it. Samples are counted by month.
_ROWS: tuple[tuple[type[Model], str], ...] = (
    (Trial, "run"), (Attempt, "run"), (Transition, "run"), (Result, "run"), (StreamRun, "attempt__run"),
    (Attachment, "stream_run__attempt__run"),
)  # fmt: skip


@dataclass(frozen=True)
class Ages:
    """Days after which ended runs are deleted; 0: never."""

    days: int
    of_plans: Mapping[str, int]  # by slug

    def of(self, plan: str) -> int:
        return self.of_plans.get(plan, self.days)


@dataclass(frozen=True)
class PlanProposal:
    plan: str  # slug
    days: int
    runs: tuple[int, ...]  # numbers of the runs that would be deleted, oldest first
    kept: tuple[int, ...]  # numbers of the old runs that something refers to
    bytes: int  # estimated space of `runs`


def proposals(ages: Ages, *, now: datetime) -> list[PlanProposal]:
    """Of each plan with old runs. Nothing is deleted."""
    compared = _compared_runs()
    return [
        PlanProposal(
            plan=plan,
            days=ages.of(plan),
            runs=tuple(deletable.values_list("number", flat=True)),
            kept=tuple(old.exclude(pk__in=deletable.values("pk")).values_list("number", flat=True)),
            bytes=_bytes_of(deletable.values("pk")),
        )
        for plan, old, deletable in _old_runs(ages, compared, now)
    ]


def delete_old_runs(ages: Ages, *, now: datetime) -> list[int]:
    """Delete the oldest runs that `proposals` names; their numbers. Each deletion is in the audit log."""
    deleted: list[int] = []
    compared = _compared_runs()
    for _, _, deletable in _old_runs(ages, compared, now):
        for run in deletable[: MAX_DELETED - len(deleted)]:
            if deletable.filter(pk=run.pk).exists():  # nothing has referred to it since
                delete_run(run=run, by=None)
                deleted.append(run.number)
    return deleted


def delete_old_transitions(days: int, *, now: datetime) -> int:
    """Delete the changes of state of trials whose run ended so many days ago; their number. Those of runs stay."""
    if not days:
        return 0
    old = Transition.objects.filter(trial__isnull=False, run__ended_at__lt=now - timedelta(days=days))
    old = old.exclude(run__state__in=OPEN_RUN_STATES)
    return int(old._raw_delete(old.db))  # nothing refers to them


def _old_runs(
    ages: Ages, compared: Collection[Any], now: datetime
) -> Iterator[tuple[str, QuerySet[Run], QuerySet[Run]]]:
    """The slug of each plan with old runs, its old runs, and those that may be deleted; oldest first."""
    for plan in Plan.objects.order_by("slug").values_list("slug", flat=True):
        if days := ages.of(plan):
            old = (
                Run.objects.filter(version__plan__slug=plan, ended_at__lt=now - timedelta(days=days))
                .exclude(state__in=OPEN_RUN_STATES)
                .order_by("ended_at", "number")
            )
            if old.exists():
                yield plan, old, old.exclude(_REFERRED).exclude(pk__in=compared)


def _compared_runs() -> set[Any]:
    """Ids of the runs that saved comparisons show, also of comparisons that can be restored."""
    run_ids: set[Any] = set()
    for saved in SavedComparison.objects.all():
        for wanted in _filters(saved):
            results = ResultQuery.of(replace(wanted, invalid=True)).results.filter(run__isnull=False)
            run_ids |= set(results.order_by().values_list("run", flat=True).distinct())
    return run_ids


def _filters(saved: SavedComparison) -> Iterator[ResultFilter]:
    """What it shows. If this version cannot read its query, the runs that the query names."""
    try:
        if is_bench(saved.query):
            products = [product for product in selection_of(saved.query).products if product.kind is not Kind.IMPORT]
            filters = [read_filter([(product.kind, product.value)]) for product in products]
        else:
            filters = [read_query(split(parse_qsl(saved.query))[0]).results]
    except Refusal as refusal:
        log.warning("The saved comparison %s cannot be read: %s", saved, refusal)
        numbers = [text for key, text in parse_qsl(saved.query) if key == "run" and re.fullmatch(r"[0-9]{1,9}", text)]
        filters = [ResultFilter(runs=tuple(map(int, numbers)))] if numbers else []
    for wanted in filters:
        if saved.frozen_at is None:
            yield wanted
        elif wanted.runs:
            yield ResultFilter(runs=wanted.runs)


def _bytes_of(runs: QuerySet[Run, Any]) -> int:
    """Their share of each table. Deleted space is used again by new rows; files do not shrink before VACUUM FULL."""
    bytes_of = {table.name: table.bytes for table in tables()}
    total = 0.0
    for model, lookup in _ROWS:
        counts = model._default_manager.aggregate(all=Count("pk"), old=Count("pk", filter=Q(**{f"{lookup}__in": runs})))
        total += bytes_of[model._meta.db_table] * counts["old"] / max(1, counts["all"])
    months = (
        StreamRun.objects.annotate(month=TruncMonth("attempt__created_at", tzinfo=UTC))
        .values("month")
        .annotate(all=Sum("samples_sent"), old=Sum("samples_sent", filter=Q(attempt__run__in=runs), default=0))
        .filter(old__gt=0)
    )
    for month in months:
        for thinned in (False, True):
            partition = Partition(month["month"].date(), thinned=thinned)
            total += bytes_of.get(partition.table, 0) * month["old"] / month["all"]
    return round(total)
