"""Starting the occurrences that wait, or saying why they wait or were missed.

An occurrence waits while its host is away or in maintenance, the window is closed, an earlier run of the schedule is
still going (if the schedule says so), or the run of another host of its group must end first. It is missed at its
latest start. To start means that the run enters the queue of its hosts.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.hosts.models import GroupMember, Target
from webapp.runs.models import Priority
from webapp.runs.services import StartOptions, start_run
from webapp.schedules.arming import drives_overwritten, listed, unarmed
from webapp.schedules.due import miss_all
from webapp.schedules.for_each_logged import for_each_logged
from webapp.schedules.locks import lock_schedules
from webapp.schedules.models import (
    OPEN_OCCURRENCE_STATES,
    GroupOrder,
    Occurrence,
    OccurrenceState,
    Overlap,
    Schedule,
)
from webapp.schedules.notify import local_time
from webapp.schedules.selectors import all_targets
from webapp.schedules.timing import deadline_of, start_within, window_of

START_LIMIT_S = 20.0  # windows and deadlines are looked at between two ticks
# Refusals of a start that pass by themselves: the occurrence waits until its latest start.
PASSING = frozenset({"host_unavailable", "target_unavailable"})


class Missed(Exception):
    """It will not start any more; `code` and the text say why."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def start_waiting(*, now: datetime) -> None:
    """Start what may start, in the order of priority and due time, for START_LIMIT_S.

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
    """These were tried by a tick whose time ran out; without any, all were tried, and priority decides again."""
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
            _refuse_late(occurrence, now, occurrence.reason)
            waits_for = _start(occurrence, now)
        if waits_for:
            _refuse_late(occurrence, now, waits_for)
            _note(occurrence, waits_for)
    except Missed as missed:
        miss_all([occurrence], missed.code, str(missed), now=now)


def _locked(key: UUID) -> Occurrence | None:
    """The occurrence with its schedule; nobody disarms or changes it meanwhile. None if it no longer waits."""
    lock_schedules()
    found = Occurrence.objects.select_related(
        "host", "requested_by", "schedule__owner", "schedule__version__plan", "schedule__group", "schedule__armed_by"
    )
    return found.filter(pk=key, state=OccurrenceState.WAITING).first()


def _note(occurrence: Occurrence, waits_for: str) -> None:
    if occurrence.reason != waits_for:
        occurrence.reason = waits_for
        occurrence.save(update_fields=["reason"])


def _refuse_invalid(occurrence: Occurrence, now: datetime) -> None:
    """Raises Missed where the schedule no longer allows this start."""
    schedule = occurrence.schedule
    if schedule.version.plan.deleted_at:
        raise Missed("plan_deleted", f"The plan “{schedule.version.plan.title}” was deleted.")
    if not (schedule.owner.is_active and schedule.owner.is_operator):
        raise Missed("owner_left", f"The owner of the schedule, {schedule.owner.username}, may no longer start runs.")
    limit = deadline_of(schedule, occurrence.due_at)
    if limit and now > limit:
        raise Missed("deadline_passed", f"Its deadline, {local_time(schedule, limit)}, passed before it could start.")
    earlier = _earlier_open(occurrence) if schedule.overlap == Overlap.SKIP else None
    if earlier is not None:
        raise Missed("still_going", f"{_name(earlier)} {'had not ended' if earlier.run else 'was still waiting'}.")


def _waits_for(occurrence: Occurrence, now: datetime) -> str:
    """What keeps it from starting now, as a sentence; "" for nothing."""
    schedule = occurrence.schedule
    if now < occurrence.due_at:
        return f"It is due {local_time(schedule, occurrence.due_at)}."  # the clock was set back
    if occurrence.ready_at is None:
        return "The run of another host of the group must end first."
    if (earlier := _earlier_open(occurrence)) is not None:
        return f"{_name(earlier)} {'has not ended' if earlier.run else 'is still waiting'}."
    window = window_of(schedule)
    if window is None or window.span_at(now):
        return ""
    span = window.next_span(now)
    return f"The window opens {local_time(schedule, span.opens)}." if span else "The window does not open again."


def _refuse_late(occurrence: Occurrence, now: datetime, waited_for: str) -> None:
    """Raises Missed once the latest start has passed."""
    if occurrence.ready_at is not None and now > (latest := _latest_start(occurrence)):
        when = local_time(occurrence.schedule, latest)
        raise Missed("latest_start_passed", f"It could not start by its latest start, {when}. {waited_for}".strip())


def _latest_start(occurrence: Occurrence) -> datetime:
    return (occurrence.ready_at or occurrence.due_at) + start_within(occurrence.schedule)


def _earlier_open(occurrence: Occurrence) -> Occurrence | None:
    """An earlier due time of the schedule that is not over; side by side each host stands for itself."""
    earlier = Occurrence.objects.filter(
        schedule=occurrence.schedule, due_at__lt=occurrence.due_at, state__in=OPEN_OCCURRENCE_STATES
    )
    if occurrence.host_id and occurrence.schedule.group_order == GroupOrder.SIDE_BY_SIDE:
        earlier = earlier.filter(host=occurrence.host_id)
    return earlier.select_related("run", "schedule").first()


def _name(occurrence: Occurrence) -> str:
    if occurrence.run is not None:
        return f"Run {occurrence.run.number} of this schedule"
    return f"The occurrence due {local_time(occurrence.schedule, occurrence.due_at)}"


def _start(occurrence: Occurrence, now: datetime) -> str:
    """Start its run; "" where that was done, else what it waits for. Raises Missed where it is refused for good."""
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
            return str(refusal)
        raise Missed(refusal.code, _why_refused(schedule, targets, refusal, now)) from refusal
    occurrence.run, occurrence.state, occurrence.reason = run, OccurrenceState.STARTED, ""
    occurrence.save(update_fields=["run", "state", "reason"])
    return ""


def _armed_serials(schedule: Schedule, targets: Sequence[Target], now: datetime) -> list[str]:
    """Of the drives that this run would overwrite, the serials of those that the schedule is armed for.

    None where one of them is not: two targets may have one serial.
    """
    drives = drives_overwritten(schedule.version, targets)
    return [] if unarmed(schedule, drives, now) else [target.arming_serial for target in drives]


def _why_refused(schedule: Schedule, targets: Sequence[Target], refusal: Refusal, now: datetime) -> str:
    if refusal.code != "not_armed":
        return str(refusal)
    missing = listed(unarmed(schedule, drives_overwritten(schedule.version, targets), now))
    if schedule.armed_until and schedule.armed_until <= now:
        return f"The arming ended {local_time(schedule, schedule.armed_until)}. The run would overwrite {missing}."
    return f"The schedule is not armed. The run would overwrite {missing}."


def targets_of(occurrence: Occurrence) -> tuple[list[Target], str]:
    """The targets in their order, and the label of the host in its group. Raises Missed where it left the group."""
    schedule = occurrence.schedule
    if occurrence.host_id is None and schedule.group is not None:
        raise Missed("group_empty", f"The host group “{schedule.group}” has no hosts.")
    if occurrence.host_id is None:
        return all_targets(schedule), ""
    member = GroupMember.objects.filter(group=schedule.group, host=occurrence.host_id).first()
    if member is None:
        raise Missed("left_group", f"{occurrence.host} is no longer in the group.")
    return list(member.targets.select_related("host").order_by("slug")), member.label
