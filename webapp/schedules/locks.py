"""The lock on schedules: every change of schedules or occurrences holds it until the commit.

Every transaction takes its locks in this order, so no two wait for each other:

    rows of people ──► schedules (here) ──► queue of runs (runs.queue) ──► rows of runs

One lock covers all schedules, because one change can reach many of them: an occurrence that is missed is followed by
other schedules, which are missed too. Locks on single rows would follow these chains in one transaction and go by name
in another. A transaction holds the lock for as long as it takes to start one run.
"""

from django.db import connection

from webapp.core.errors import Refusal
from webapp.schedules.models import Schedule

_SCHEDULES_LOCK = 0x73_6368_6169


def lock_schedules() -> None:
    """Lock all schedules and occurrences until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SCHEDULES_LOCK])


def locked_schedule(schedule: Schedule) -> Schedule:
    """The current row of the schedule, locked until this transaction ends."""
    lock_schedules()
    return Schedule.objects.get(pk=schedule.pk)


def locked_present(schedule: Schedule) -> Schedule:
    """The same. Raises Refusal schedule_deleted."""
    locked = locked_schedule(schedule)
    if locked.deleted_at:
        raise Refusal("schedule_deleted", f"The schedule “{locked}” was deleted. Restore it first.")
    return locked
