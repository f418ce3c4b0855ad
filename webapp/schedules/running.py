"""Controls started runs of schedules: the window, the deadline, and the actions after their end."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from webapp.runs.actions.pause import pause_run, resume_run
from webapp.runs.models import Run, RunState
from webapp.runs.reasons import AT_DEADLINE, WINDOW_CLOSED
from webapp.runs.services import cancel_run
from webapp.schedules.due import after_occurrence
from webapp.schedules.for_each_logged import for_each_logged
from webapp.schedules.locks import lock_schedules
from webapp.schedules.models import AtDeadline, Occurrence, OccurrenceState
from webapp.schedules.notify import notify_late
from webapp.schedules.reasons import timed
from webapp.schedules.timing import deadline_of, window_of


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


def _for_each_locked(found: QuerySet[Occurrence], step: Callable[[Occurrence, datetime], None], now: datetime) -> None:
    """Each in its own transaction; occurrences that have ended in the meantime are skipped."""

    @transaction.atomic
    def take(key: UUID) -> None:
        lock_schedules()
        occurrence = Occurrence.objects.select_related("schedule", "run").filter(pk=key, finished_at=None).first()
        if occurrence is not None:
            step(occurrence, now)

    for_each_logged(found.order_by("due_at", "position").values_list("pk", flat=True), take)


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
