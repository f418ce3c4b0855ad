"""The queue of runs: one for all hosts.

Hosts take runs in the order of `Run.queue_position`, which is unique. A host finishes a started run first, unless it
is paused. The priority of a run decides its initial position. While a run waits for other hosts, a later one may start
ahead of it: see `backfill`.
"""

from django.db import connection
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.hosts.sessions import HEARD_WITHIN
from webapp.runs.models import OPEN_RUN_STATES, Run, RunState, Trial, TrialState

HEARD_WITHIN_SECONDS = HEARD_WITHIN.total_seconds()
_QUEUE_LOCK = 0x71_7565_7565


def queued_runs() -> QuerySet[Run]:
    """Open runs in the order of the queue."""
    open_runs = Run.objects.filter(state__in=OPEN_RUN_STATES)
    return open_runs.order_by(F("queue_position").asc(nulls_last=True), "number")


def waits_for_arming() -> Q:
    """Runs with destructive trials left that are not armed: never, no longer, or too late."""
    stale = (
        Q(armed_until=None) | Q(started_at=None, armed_until__lt=timezone.now()) | Q(started_at__gt=F("armed_until"))
    )
    left = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.PLANNED, destructive=True)
    return (Q(armed_serials=[]) | stale) & Q(Exists(left))


def lock_queue() -> None:
    """Lock the queue until the commit, to add a run or change the order. So run numbers are unique and have no gaps."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_QUEUE_LOCK])


def position_for(priority: int) -> int:
    """The position before all waiting runs of a lower priority, or the last one. Call it with the queue locked."""
    lower = Run.objects.filter(state=RunState.QUEUED, priority__lt=priority, queue_position__isnull=False)
    position: int | None = lower.aggregate(first=Min("queue_position"))["first"]
    if position is None:
        last: int | None = Run.objects.aggregate(last=Max("queue_position"))["last"]
        return (last or 0) + 1
    Run.objects.filter(queue_position__gte=position).update(queue_position=F("queue_position") + 1)
    return position
