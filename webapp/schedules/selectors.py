"""Selectors of schedules."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import islice
from operator import or_

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from webapp.core.errors import Refusal
from webapp.hosts.models import HostGroup, Target
from webapp.schedules.models import (
    OPEN_OCCURRENCE_STATES,
    Occurrence,
    OccurrenceState,
    Schedule,
    ScheduleState,
    Trigger,
)
from webapp.schedules.timing import due_after

# The lock on schedules: every change of schedules or occurrences holds it until the commit.
#
# Every transaction takes its locks in this order, so no two wait for each other:
#
#     rows of people ──► schedules (here) ──► queue of runs (runs.queue) ──► rows of runs
#
# One lock covers all schedules, because one change can reach many of them: an occurrence that is missed is followed
# by other schedules, which are missed too. Locks on single rows would follow these chains in one transaction and go
# by name in another. A transaction holds the lock for as long as it takes to start one run.

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


def all_targets(schedule: Schedule) -> list[Target]:
    """The targets of a schedule, or of all hosts of its group."""
    if schedule.group is None:
        return in_order(schedule, schedule.targets.all())
    return group_targets(schedule.group)


def in_order(schedule: Schedule, targets: Iterable[Target]) -> list[Target]:
    """Targets of a schedule in the order in which they were chosen."""
    places = {pk: place for place, pk in enumerate(schedule.target_order)}
    return sorted(targets, key=lambda target: places.get(str(target.pk), len(places)))


def group_targets(group: HostGroup) -> list[Target]:
    targets = Target.objects.filter(memberships__group=group).select_related("host")
    return list(targets.order_by("memberships__place", "slug"))


def schedules_list(*, deleted: bool = False) -> QuerySet[Schedule]:
    """By name, with the columns of lists; deleted ones only on request.

    `hosts` counts the hosts of its group. `finished`: see `is_finished`.
    """
    schedules = Schedule.objects.select_related(
        "owner", "version__plan", "group", "after_schedule", "after_run", "armed_by"
    ).prefetch_related("targets__host")
    schedules = schedules.annotate(hosts=Count("group__members"), finished=is_finished()).order_by("name", "id")
    return schedules if deleted else schedules.filter(deleted_at=None)


def is_finished() -> Q:
    """Condition on schedules: switched on, its only due time or its last day has passed, and its runs have ended."""
    occurrences = Occurrence.objects.filter(schedule=OuterRef("pk"))
    after_run = Q(trigger=Trigger.AFTER_RUN, after_run__ended_at__isnull=False) & Exists(occurrences)
    is_open = Exists(occurrences.filter(state__in=OPEN_OCCURRENCE_STATES))
    past_last_day = Q(trigger=Trigger.CRON, last_day__isnull=False)
    return Q(enabled=True, next_due_at=None) & (Q(trigger=Trigger.ONCE) | past_last_day | after_run) & ~is_open


def state_of(schedule: Schedule) -> ScheduleState:
    """`schedule` comes from `schedules_list`."""
    if schedule.deleted_at:
        return ScheduleState.DELETED
    if not schedule.enabled:
        return ScheduleState.OFF
    return ScheduleState.FINISHED if getattr(schedule, "finished", False) else ScheduleState.ON


def occurrences_list() -> QuerySet[Occurrence]:
    """Latest first, with host and run."""
    return Occurrence.objects.select_related("run__version", "host", "missed_by")


def last_occurrences(schedules: Iterable[Schedule]) -> dict[int, list[Occurrence]]:
    """By schedule, the occurrences of its latest due time; several for a group of hosts. Two queries.

    The latest due times are read first: as a condition of each occurrence, PostgreSQL would look them up again for
    every occurrence of these schedules, and a schedule that is due every minute has half a million of them a year.
    """
    latest = Occurrence.objects.filter(schedule=OuterRef("pk")).order_by("-due_at").values("due_at")[:1]
    rows = Schedule.objects.filter(pk__in=[schedule.pk for schedule in schedules]).values_list("pk", Subquery(latest))
    last = [Q(schedule=key, due_at=due_at) for key, due_at in rows if due_at is not None]
    occurrences: dict[int, list[Occurrence]] = defaultdict(list)
    if last:
        for occurrence in occurrences_list().filter(reduce(or_, last)):
            occurrences[occurrence.schedule_id].append(occurrence)
    return occurrences


@dataclass(frozen=True)
class NextDue:
    """A future due time."""

    schedule: Schedule
    at: datetime


def next_due(count: int) -> Sequence[NextDue]:
    """The next due times over all schedules, soonest first. Two queries."""
    soonest = schedules_list().filter(enabled=True, next_due_at__isnull=False).order_by("next_due_at", "pk")[:count]
    dues = [
        NextDue(schedule, at)
        for schedule in soonest
        if schedule.next_due_at
        for at in (schedule.next_due_at, *islice(due_after(schedule, schedule.next_due_at), count - 1))
    ]
    return sorted(dues, key=lambda due: due.at)[:count]


def occurrences_waiting() -> QuerySet[Occurrence]:
    """Occurrences that have not started yet, the one that is due longest first."""
    return (
        Occurrence.objects.filter(state=OccurrenceState.WAITING).select_related("schedule", "host").order_by("due_at")
    )


# Codes of occurrences that a person caused to be missed.
_BY_PEOPLE = ("skipped", "switched_off", "deleted", "owner_lost_rights", "armer_lost_rights", "changed")


def missed_since(at: datetime) -> QuerySet[Occurrence]:
    """Due times after a moment that were missed, latest first, without those that a person skipped or switched off."""
    missed = Occurrence.objects.filter(state=OccurrenceState.MISSED, due_at__gte=at)
    missed = missed.exclude(reason_code__in=_BY_PEOPLE)
    return missed.select_related("schedule__version__plan", "host", "missed_by")
