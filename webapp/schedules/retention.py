"""Deletes old occurrences: a schedule that is due every minute creates 525,600 of them per year.

An occurrence is kept as long as its run exists. Others are kept for 13 months, so that a year can be compared with the
year before.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from webapp.schedules.locks import lock_schedules
from webapp.schedules.models import OPEN_OCCURRENCE_STATES, Occurrence

log = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=396)  # 13 months
BATCH = 1000  # rows of one transaction: the scheduler waits for it
MAX_BATCHES = 1000  # of one call; the next day goes on


def delete_old_occurrences(*, now: datetime) -> int:
    """Return the number of deleted occurrences."""
    deleted = 0
    for _ in range(MAX_BATCHES):
        batch = _delete_batch(now)
        deleted += batch
        if batch < BATCH:
            break
    if deleted:
        log.info("%d occurrences that were due before %s were deleted.", deleted, (now - KEPT_FOR).date())
    return deleted


@transaction.atomic
def _delete_batch(now: datetime) -> int:
    lock_schedules()
    keys = list(_old(now).order_by("due_at").values_list("pk", flat=True)[:BATCH])
    return Occurrence.objects.filter(pk__in=keys).delete()[0]


def _old(now: datetime) -> QuerySet[Occurrence]:
    """Keeps the occurrence that a schedule created after a run: without it, the schedule would be due again."""
    old = Occurrence.objects.filter(run=None, due_at__lt=now - KEPT_FOR).exclude(state__in=OPEN_OCCURRENCE_STATES)
    return old.exclude(schedule__after_run__ended_at=F("due_at"))
