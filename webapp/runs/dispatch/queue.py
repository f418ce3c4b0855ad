"""The order in which hosts take up runs: one list for all hosts, each takes from it what is for it.

`Run.queue_place` is the place, smallest first; no two runs share one. A run that already works on a host goes on
there whatever stands before it in the queue, unless it is paused. A run's priority decides where it enters.
"""

from django.db import connection
from django.db.models import F, Max, Min, QuerySet

from webapp.runs.models import OPEN_RUN_STATES, Run, RunState

_QUEUE_LOCK = 0x71_7565_7565


def queued_runs() -> QuerySet[Run]:
    """Open runs in the order of the queue."""
    open_runs = Run.objects.filter(state__in=OPEN_RUN_STATES)
    return open_runs.order_by(F("queue_place").asc(nulls_last=True), "number")


def lock_queue() -> None:
    """Held until the commit by whoever adds a run or changes the order: no gaps in numbers, no twins."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_QUEUE_LOCK])


def place_for(priority: int) -> int:
    """A place before all waiting runs of a lower priority, else the last one. Call with the queue locked."""
    lower = Run.objects.filter(state=RunState.QUEUED, priority__lt=priority, queue_place__isnull=False)
    place: int | None = lower.aggregate(first=Min("queue_place"))["first"]
    if place is None:
        last: int | None = Run.objects.aggregate(last=Max("queue_place"))["last"]
        return (last or 0) + 1
    Run.objects.filter(queue_place__gte=place).update(queue_place=F("queue_place") + 1)
    return place
