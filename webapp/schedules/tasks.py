"""The periodic tasks. They are safe to run twice; only one process at a time runs the tick."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from webapp.celery import app
from webapp.core import health
from webapp.runs.actions.run_actions import pause_run, resume_run
from webapp.runs.models import Run, RunState
from webapp.runs.reasons import AT_DEADLINE, WINDOW_CLOSED
from webapp.runs.services import cancel_run
from webapp.schedules.due import after_occurrence, create_due, for_each_logged, realign
from webapp.schedules.execution import start_waiting
from webapp.schedules.models import OPEN_OCCURRENCE_STATES, AtDeadline, Occurrence, OccurrenceState, SchedulerTick
from webapp.schedules.reasons import timed
from webapp.schedules.selectors import lock_schedules
from webapp.schedules.timing import deadline_of, notify_late, window_of

# Controls started runs of schedules: the window, the deadline, and the actions after their end.


def end_finished(*, now: datetime) -> None:
    """End the occurrences whose runs have ended or were deleted."""
    started = Occurrence.objects.filter(state=OccurrenceState.STARTED)
    _for_each_locked(started.filter(run__ended_at__isnull=False) | started.filter(run=None), _end, now)


def keep_windows(*, now: datetime) -> None:
    """Pause runs when their window closes, and resume them when it opens.

    This happens only at these two times, so a person can resume a run outside its window or pause it inside.
    """
    _for_each_locked(_going().exclude(schedule__window_days=[], paused_by_window_at=None), _keep_window, now)


def keep_deadlines(*, now: datetime) -> None:
    """Mark runs past their deadline as late: send a notice, and cancel the run if the schedule says so."""
    _for_each_locked(_going().filter(schedule__deadline_s__isnull=False, late_at=None), _keep_deadline, now)


def _going() -> QuerySet[Occurrence]:
    going = Occurrence.objects.filter(state=OccurrenceState.STARTED, run__ended_at=None)
    return going.filter(run__cancel_requested_at=None).exclude(run__state=RunState.CLOSING)


def _for_each_locked(
    occurrences: QuerySet[Occurrence], step: Callable[[Occurrence, datetime], None], now: datetime
) -> None:
    """Each in its own transaction; occurrences that have ended in the meantime are skipped."""

    @transaction.atomic
    def take(key: UUID) -> None:
        lock_schedules()
        occurrence = Occurrence.objects.select_related("schedule", "run").filter(pk=key, finished_at=None).first()
        if occurrence is not None:
            step(occurrence, now)

    for_each_logged(occurrences.order_by("due_at", "position").values_list("pk", flat=True), take)


def _end(occurrence: Occurrence, now: datetime) -> None:
    occurrence.state, occurrence.finished_at = OccurrenceState.ENDED, now
    occurrence.save(update_fields=["state", "finished_at"])
    after_occurrence(occurrence.schedule, occurrence.due_at, now=now)


def _keep_window(occurrence: Occurrence, now: datetime) -> None:
    schedule, run = occurrence.schedule, _run(occurrence)
    window = window_of(schedule)
    is_open = window is None or window.span_at(now) is not None
    if not is_open and occurrence.paused_by_window_at is None:
        if run.state != RunState.PAUSED:
            pause_run(run=run, by=None, code=WINDOW_CLOSED, fields={"window": str(window)})
        _hold(occurrence, now)
    elif is_open and occurrence.paused_by_window_at is not None:
        if run.state == RunState.PAUSED and run.pause_code:
            resume_run(run=run, by=None)
        _hold(occurrence, None)


def _hold(occurrence: Occurrence, at: datetime | None) -> None:
    occurrence.paused_by_window_at = at
    occurrence.save(update_fields=["paused_by_window_at"])


def _keep_deadline(occurrence: Occurrence, now: datetime) -> None:
    schedule = occurrence.schedule
    limit = deadline_of(schedule, occurrence.due_at)
    if limit is None or now <= limit:
        return
    occurrence.late_at = now
    occurrence.save(update_fields=["late_at"])
    notify_late(occurrence, limit)
    if schedule.at_deadline == AtDeadline.CANCEL:
        why = timed(AT_DEADLINE, schedule, schedule=schedule.name, deadline=limit)
        cancel_run(run=_run(occurrence), by=None, code=why.code, fields=why.fields)


def _run(occurrence: Occurrence) -> Run:
    assert occurrence.run is not None
    return occurrence.run


# Deletes old occurrences: a schedule that is due every minute creates 525,600 of them per year.
#
# An occurrence is kept as long as its run exists. Others are kept for 13 months, so that a year can be compared with
# the year before.

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


TICK_SECONDS = 5
OUTAGE_AFTER = timedelta(seconds=60)  # without a tick
_LOCK = 0x73_6368_6564


@app.task(name="webapp.schedules.tasks.tick")
def tick() -> None:
    run_schedules(timezone.now())
    health.note(health.SCHEDULES)  # not after a failure: then /healthz says so


@app.task(name="webapp.schedules.tasks.tidy")
def tidy() -> None:
    """Once a day."""
    if health.note_daily(health.TIDY_SCHEDULES):
        delete_old_occurrences(now=timezone.now())


def run_schedules(now: datetime) -> None:
    """Process all schedules up to now."""
    with _alone() as mine:
        if not mine:
            return
        last = SchedulerTick.objects.filter(pk=1).values_list("at", flat=True).first()
        if last and now < last - OUTAGE_AFTER:
            realign(now)
        end_finished(now=now)
        keep_windows(now=now)
        keep_deadlines(now=now)
        create_due(now=now, down_since=last if last and now - last > OUTAGE_AFTER else None)
        start_waiting(now=now)
        SchedulerTick.objects.update_or_create(pk=1, defaults={"at": timezone.now()})


@contextmanager
def _alone() -> Iterator[bool]:
    """False if another process holds the lock, which ends at the latest with its connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        mine = bool(cursor.fetchone()[0])
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
