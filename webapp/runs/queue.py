"""The order in which hosts take up runs: one list for all hosts, each takes from it what is for it.

`Run.queue_place` is the place, smallest first; no two runs share one. A run that already works on a host goes on
there whatever stands before it in the queue, unless it is paused. A run's priority decides where it enters.
"""

from django.db import connection, transaction
from django.db.models import F, Max, Min, QuerySet

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
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


@transaction.atomic
def place_run(*, run: Run, before: Run | None = None, after: Run | None = None, by: User | None) -> None:
    """Put a run right before, or right after, another one. Twice is the same as once.

    Raises Refusal not_waiting where one of them is not in the queue any more.
    """
    other = before or after
    if other is None:
        raise Refusal("place_missing", "Say which run it is to go before or after.")
    lock_queue()
    order = list(queued_runs().select_for_update(no_key=True, of=("self",)))
    for each in (run, other):
        if each not in order:
            raise Refusal("not_waiting", f"Run {each.number} is not in the queue any more.")
    if run == other:
        return
    moved = [each for each in order if each != run]
    moved.insert(moved.index(other) + (before is None), next(each for each in order if each == run))
    if moved == order:
        return
    for place, each in enumerate(moved, start=1):
        each.queue_place = place
    Run.objects.bulk_update(moved, ["queue_place"])
    audit(by=by, action="run.move", on=run, detail={"before" if before else "after": other.number})
