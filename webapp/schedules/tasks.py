"""Starts what is due: the periodic tasks. They are safe to run twice; only one process at a time runs the tick."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import takewhile
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from webapp.celery import app
from webapp.core import health
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.hosts.models import GroupMember, Target
from webapp.runs.actions.run_actions import pause_run, resume_run
from webapp.runs.models import Priority, Run, RunState
from webapp.runs.reasons import AT_DEADLINE, WINDOW_CLOSED
from webapp.runs.services import StartOptions, cancel_run, start_run
from webapp.schedules.arming import drives_overwritten, listed, unarmed
from webapp.schedules.due import after_occurrence, create_due, for_each_logged, miss_all, realign
from webapp.schedules.models import (
    OPEN_OCCURRENCE_STATES,
    AtDeadline,
    GroupOrder,
    Occurrence,
    OccurrenceState,
    Overlap,
    Schedule,
    SchedulerTick,
)
from webapp.schedules.reasons import NOT_ARMED, Reason, timed
from webapp.schedules.selectors import all_targets, lock_schedules
from webapp.schedules.timing import deadline_of, notify_late, start_within, window_of

# Starts waiting occurrences, or records why they wait or were missed.
#
# An occurrence waits while its host is away or in maintenance, the window is closed, an earlier run of the schedule is
# not over (if the schedule says so), or the run of another host of its group must end first. It is missed at its
# latest start. Starting means that the run enters the queue of its hosts.

START_LIMIT_S = 20.0  # windows and deadlines are checked between two ticks
# Temporary refusals of a start: the occurrence waits until its latest start.
PASSING = frozenset({"host_unavailable", "target_unavailable"})


class Missed(Exception):
    """The occurrence can no longer start."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def start_waiting(*, now: datetime) -> None:
    """Start all startable occurrences in the order of priority and due time, for up to START_LIMIT_S.

    If the time runs out, the next tick begins with the occurrences that this one did not reach: those that cannot start
    yet do not keep others from starting.
    """
    until = time.monotonic() + START_LIMIT_S
    keys, tried = list(_waiting().values_list("pk", flat=True)), []

    def start_one(key: UUID) -> None:
        tried.append(key)
        _start_one(key, now)

    for_each_logged(takewhile(lambda _: time.monotonic() < until, keys), start_one)
    _note_tried(tried if len(tried) < len(keys) else [], now)


def _waiting() -> QuerySet[Occurrence]:
    """In the order in which a tick tries to start them."""
    waiting = Occurrence.objects.filter(state=OccurrenceState.WAITING)
    return waiting.order_by(F("tried_at").asc(nulls_first=True), "-schedule__priority", "due_at", "position")


@transaction.atomic
def _note_tried(keys: Sequence[UUID], now: datetime) -> None:
    """Tried by a tick that ran out of time. If there are none, all were tried, and priority decides again."""
    lock_schedules()
    waiting = Occurrence.objects.filter(state=OccurrenceState.WAITING)
    if keys:
        waiting.filter(pk__in=keys).update(tried_at=now)
    else:
        waiting.exclude(tried_at=None).update(tried_at=None)


@transaction.atomic
def _start_one(key: UUID, now: datetime) -> None:
    occurrence = _locked(key)
    if occurrence is None:
        return
    try:
        _refuse_invalid(occurrence, now)
        waits_for = _waits_for(occurrence, now)
        if not waits_for:
            _refuse_late(occurrence, now, _waited_for(occurrence))
            waits_for = _start(occurrence, now)
        if waits_for:
            _refuse_late(occurrence, now, waits_for)
            _note(occurrence, waits_for)
    except Missed as missed:
        miss_all([occurrence], missed.reason, now=now)


def _locked(key: UUID) -> Occurrence | None:
    """The occurrence with its schedule, locked against changes. None if it no longer waits."""
    lock_schedules()
    occurrences = Occurrence.objects.select_related(
        "host", "requested_by", "schedule__owner", "schedule__version__plan", "schedule__group", "schedule__armed_by"
    )
    return occurrences.filter(pk=key, state=OccurrenceState.WAITING).first()


def _waited_for(occurrence: Occurrence) -> Reason | None:
    return Reason(occurrence.reason_code, occurrence.reason_fields) if occurrence.reason_code else None


def _note(occurrence: Occurrence, waits_for: Reason) -> None:
    if _waited_for(occurrence) != waits_for:
        occurrence.reason_code, occurrence.reason_fields = waits_for.code, waits_for.fields
        occurrence.save(update_fields=["reason_code", "reason_fields"])


def _refuse_invalid(occurrence: Occurrence, now: datetime) -> None:
    """Raises Missed if the schedule no longer allows this start."""
    schedule = occurrence.schedule
    if schedule.version.plan.deleted_at:
        raise Missed(Reason("plan_deleted", {"plan": schedule.version.plan.title}))
    _refuse_without_rights(schedule.owner, occurrence.requested_by)
    limit = deadline_of(schedule, occurrence.due_at)
    if limit and now > limit:
        raise Missed(timed("deadline_passed", schedule, deadline=limit))
    earlier = _earlier_open(occurrence) if schedule.overlap == Overlap.SKIP else None
    if earlier is not None:
        raise Missed(_about_earlier("still_going", earlier))


def _refuse_without_rights(owner: User, requester: User | None) -> None:
    if not (owner.is_active and owner.is_operator):
        raise Missed(Reason("owner_left"))
    if requester and not (requester.is_active and requester.is_operator):
        raise Missed(Reason("requester_left"))


def _waits_for(occurrence: Occurrence, now: datetime) -> Reason | None:
    """What prevents its start now; None if nothing does."""
    schedule = occurrence.schedule
    if now < occurrence.due_at:
        return timed("not_due", schedule, due=occurrence.due_at)  # the clock was set back
    if occurrence.ready_at is None:
        return Reason("host_before")
    if (earlier := _earlier_open(occurrence)) is not None:
        return _about_earlier("run_before", earlier)
    window = window_of(schedule)
    if window is None or window.span_at(now):
        return None
    span = window.next_span(now)
    return timed("window_opens", schedule, opens=span.opens) if span else Reason("window_over")


def _refuse_late(occurrence: Occurrence, now: datetime, waited_for: Reason | None) -> None:
    """Raises Missed once the latest start has passed."""
    if occurrence.ready_at is not None and now > (latest := _latest_start(occurrence)):
        why = {"waited_for": waited_for.as_fields()} if waited_for else {}
        raise Missed(timed("latest_start_passed", occurrence.schedule, latest=latest, **why))


def _latest_start(occurrence: Occurrence) -> datetime:
    return (occurrence.ready_at or occurrence.due_at) + start_within(occurrence.schedule)


def _earlier_open(occurrence: Occurrence) -> Occurrence | None:
    """An earlier occurrence of the schedule that is not over.

    Side by side, each host is independent; an occurrence without a host is older than the group.
    """
    earlier = Occurrence.objects.filter(
        schedule=occurrence.schedule, due_at__lt=occurrence.due_at, state__in=OPEN_OCCURRENCE_STATES
    )
    if occurrence.host_id and occurrence.schedule.group_order == GroupOrder.SIDE_BY_SIDE:
        earlier = earlier.filter(Q(host=occurrence.host_id) | Q(host=None))
    return earlier.select_related("run", "schedule").first()


def _about_earlier(code: str, earlier: Occurrence) -> Reason:
    if earlier.run is not None:
        return Reason(code, {"run": earlier.run.number})
    return timed(code, earlier.schedule, due=earlier.due_at)


def _start(occurrence: Occurrence, now: datetime) -> Reason | None:
    """Start its run; return None, or what it waits for. Raises Missed if the refusal is permanent."""
    schedule, (targets, label) = occurrence.schedule, targets_of(occurrence)
    options = StartOptions(
        request_id=occurrence.pk,
        priority=Priority(schedule.priority),
        label=label,
        armed_by=schedule.armed_by,
        armed_until=schedule.armed_until,
    )
    try:
        with timezone.override(schedule.time_zone):  # of the times in a refusal, which becomes the reason
            run = start_run(
                version=schedule.version, targets=targets, by=occurrence.requested_by or schedule.owner,
                armed=_armed_serials(schedule, targets, now),
                note=schedule.note, options=options,
            )  # fmt: skip
    except Refusal as refusal:
        if refusal.code in PASSING:
            return Reason(refusal.code, {"message": str(refusal)})
        raise Missed(_why_refused(schedule, targets, refusal, now)) from refusal
    occurrence.run, occurrence.state = run, OccurrenceState.STARTED
    occurrence.reason_code, occurrence.reason_fields = "", {}
    occurrence.save(update_fields=["run", "state", "reason_code", "reason_fields"])
    return None


def _armed_serials(schedule: Schedule, targets: Sequence[Target], now: datetime) -> list[str]:
    """The serials of drives that this run would overwrite and the schedule is armed for.

    None if one of them is not armed: two targets may have the same serial.
    """
    drives = drives_overwritten(schedule.version, targets)
    return [] if unarmed(schedule, drives, now) else [target.arming_serial for target in drives]


def _why_refused(schedule: Schedule, targets: Sequence[Target], refusal: Refusal, now: datetime) -> Reason:
    if refusal.code != NOT_ARMED:
        return Reason(refusal.code, {"message": str(refusal)})
    missing = listed(unarmed(schedule, drives_overwritten(schedule.version, targets), now))
    if schedule.armed_until and schedule.armed_until <= now:
        return timed(NOT_ARMED, schedule, ended=schedule.armed_until, drives=missing)
    return Reason(NOT_ARMED, {"drives": missing})


def targets_of(occurrence: Occurrence) -> tuple[list[Target], str]:
    """The targets in their order, and the label of the host in its group. Raises Missed if it left the group."""
    schedule = occurrence.schedule
    if occurrence.host_id is None:
        targets = [] if schedule.run_for_each_host else all_targets(schedule)
        if not targets:
            raise Missed(Reason("group_empty", {"group": str(schedule.group)}))
        return targets, ""
    member = GroupMember.objects.filter(group=schedule.group, host=occurrence.host_id).first()
    if member is None:
        raise Missed(Reason("left_group", {"host": str(occurrence.host)}))
    return list(member.targets.select_related("host").order_by("slug")), member.label


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
