"""The periodic tasks. They are safe to run twice; only one process at a time runs the tick."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from webapp.celery import app
from webapp.core import heartbeats
from webapp.schedules.due import create_due, realign
from webapp.schedules.models import SchedulerTick
from webapp.schedules.retention import delete_old_occurrences
from webapp.schedules.running import end_finished, keep_deadlines, keep_windows
from webapp.schedules.starting import start_waiting

log = logging.getLogger(__name__)

TICK_SECONDS = 5
OUTAGE_AFTER = timedelta(seconds=60)  # without a tick
_LOCK = 0x73_6368_6564


@app.task(name="webapp.schedules.tasks.tick")
def tick() -> None:
    run_schedules(timezone.now())
    heartbeats.note(heartbeats.SCHEDULES)  # not after a failure: then /healthz says so


@app.task(name="webapp.schedules.tasks.tidy")
def tidy() -> None:
    """Once a day."""
    if heartbeats.note_daily(heartbeats.TIDY_SCHEDULES):
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
