"""Turns due times into occurrences, marks missed ones, and starts the schedules that follow.

A missed due time is stored with its reason. Of the due times while the scheduler does not run, only the latest is
started, and only until its latest start.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeVar

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from webapp.hosts.models import Host
from webapp.runs.models import RunState
from webapp.schedules.models import (
    OPEN_OCCURRENCE_STATES,
    Condition,
    GroupOrder,
    Occurrence,
    OccurrenceState,
    Schedule,
    Trigger,
)
from webapp.schedules.reasons import NOT_FOLLOWED, Reason, timed
from webapp.schedules.selectors import lock_schedules
from webapp.schedules.timing import due_after, notify_missed, start_within

# Calls a step for each key; one failure does not stop the others.

log = logging.getLogger(__name__)
K = TypeVar("K")


def for_each_logged(keys: Iterable[K], step: Callable[[K], None]) -> None:
    """Call `step` for each key. A failure is logged; the next tick tries again."""
    for key in keys:
        try:
            step(key)
        except Exception:
            log.exception("%s failed for %s; the next tick tries again.", step.__name__, key)


MAX_MISSED_ROWS = 100  # rows for one outage of a schedule; the first of them counts the rest
COUNTED_BACK = timedelta(days=35)  # due times before are not counted


def create_due(*, now: datetime, down_since: datetime | None) -> None:
    """Create occurrences for every due time that has come. `down_since`: the scheduler did not run from then on."""
    due = Schedule.objects.filter(enabled=True, next_due_at__lte=now).values_list("pk", flat=True)
    for_each_logged(due, lambda key: _create_due(key, now, down_since))
    for_each_logged(_due_after_runs().values_list("pk", flat=True), lambda key: _create_after_run(key, now))


@transaction.atomic
def _create_due(key: int, now: datetime, down_since: datetime | None) -> None:
    lock_schedules()
    schedule = Schedule.objects.get(pk=key)
    if not schedule.enabled or schedule.next_due_at is None or schedule.next_due_at > now:
        return
    *older, latest = _dues(schedule, schedule.next_due_at, now)
    _miss_older(schedule, older, now, down_since)
    occurrences = make_occurrences(schedule, latest)
    if down_since and latest >= down_since and now > latest + start_within(schedule):
        miss_all(occurrences, _was_down(schedule, down_since, now), now=now)
    schedule.next_due_at = next(due_after(schedule, now), None)
    schedule.save(update_fields=["next_due_at"])


def _dues(schedule: Schedule, first: datetime, now: datetime) -> list[datetime]:
    """Due times from `first` to now, ascending; of those before COUNTED_BACK only the first one."""
    since = max(first, now - COUNTED_BACK)
    return [first, *takewhile(lambda due: due <= now, due_after(schedule, since))]


def _miss_older(schedule: Schedule, dues: Sequence[datetime], now: datetime, down_since: datetime | None) -> None:
    """Due times that were followed by another one before the scheduler looked."""
    if not dues:
        return
    hosts = _hosts(schedule)
    listed = dues[-max(1, MAX_MISSED_ROWS // len(hosts)) :]
    reason = _was_down(schedule, down_since or dues[0], now, followed=True)
    left_out = len(dues) - len(listed)
    first = reason.fields | ({"not_listed": left_out} if left_out else {})
    Occurrence.objects.bulk_create(
        (
            Occurrence(
                schedule=schedule, due_at=due, position=position, host=host, ready_at=due, state=OccurrenceState.MISSED,
                reason_code=reason.code, reason_fields=first if due is listed[0] else reason.fields, finished_at=now,
            )
            for due in listed
            for position, host in enumerate(hosts)
        ),
        ignore_conflicts=True,
    )  # fmt: skip
    key = _notice_key(schedule, reason.code, now)
    notify_missed(schedule, listed[-1], key=key, count=len(dues), reason=str(reason))


def _was_down(schedule: Schedule, since: datetime, now: datetime, **more: bool) -> Reason:
    return timed("scheduler_down", schedule, since=since, until=now, **more)


@transaction.atomic
def realign(now: datetime) -> None:
    """After the clock was set back: forget what only a clock that was ahead caused.

    A due time that was missed before it came is due again, unless a person skipped it or asked for it. One that waits
    is forgotten if another one comes before it, because that would be missed as long as it waits. A due time whose run
    started keeps its run, so nothing starts twice.
    """
    lock_schedules()
    for schedule in Schedule.objects.filter(enabled=True, trigger__in=(Trigger.CRON, Trigger.ONCE)):
        early = schedule.occurrences.filter(due_at__gt=now, run=None, requested_by=None, missed_by=None)
        early.filter(state=OccurrenceState.MISSED).delete()
        first = next(due_after(schedule, now), None)
        if first is not None:
            early.filter(state=OccurrenceState.WAITING, due_at__gt=first).delete()
        if schedule.next_due_at is None or schedule.next_due_at > now:
            started = set(schedule.occurrences.filter(due_at__gt=now).values_list("due_at", flat=True))
            upcoming = next((due for due in due_after(schedule, now) if due not in started), None)
            Schedule.objects.filter(pk=schedule.pk).update(next_due_at=upcoming)


def _due_after_runs() -> QuerySet[Schedule]:
    """Schedules that follow one run, which has ended, and that have no occurrence for it yet."""
    made = Occurrence.objects.filter(schedule=OuterRef("pk"), due_at=OuterRef("after_run__ended_at"))
    ended = Schedule.objects.filter(trigger=Trigger.AFTER_RUN, after_run__ended_at__isnull=False)
    return ended.filter(~Exists(made), enabled=True)


@transaction.atomic
def _create_after_run(key: int, now: datetime) -> None:
    lock_schedules()
    schedule = _due_after_runs().select_related("after_run").filter(pk=key).first()
    if schedule is None or schedule.after_run is None or schedule.after_run.ended_at is None:
        return
    run = schedule.after_run
    occurrences = make_occurrences(schedule, schedule.after_run.ended_at)
    if schedule.condition == Condition.DONE and run.state != RunState.DONE:
        miss_all(occurrences, Reason(NOT_FOLLOWED, {"run": run.number, "state": run.state}), now=now)


def _hosts(schedule: Schedule) -> Sequence[Host | None]:
    """The hosts of its group in their order; one None if all targets are of one run, or if the group is empty."""
    members = schedule.group.members.select_related("host") if schedule.group and schedule.run_for_each_host else []
    return [member.host for member in members] or [None]


def make_occurrences(schedule: Schedule, due_at: datetime) -> list[Occurrence]:
    """One waiting occurrence, or one for each host of the group. Existing ones are not changed."""
    hosts = _hosts(schedule)
    one_by_one = schedule.group_order == GroupOrder.ONE_BY_ONE
    made = []
    for position, host in enumerate(hosts):
        ready_at = None if one_by_one and position else due_at
        occurrence, new = Occurrence.objects.get_or_create(
            schedule=schedule, due_at=due_at, position=position, defaults={"host": host, "ready_at": ready_at}
        )
        made += [occurrence] if new else []
    return made


def make_occurrences_due(schedule: Schedule, now: datetime) -> None:
    """A change does not lose a due time that came after the last tick."""
    if schedule.enabled and schedule.next_due_at and schedule.next_due_at <= now:
        make_occurrences(schedule, schedule.next_due_at)


def turn_off(schedule: Schedule, reason: Reason, *, now: datetime) -> None:
    """Clear the next due time and mark waiting occurrences as missed. The caller saves `enabled` and `next_due_at`."""
    make_occurrences_due(schedule, now)
    schedule.enabled, schedule.next_due_at = False, None
    miss_waiting(schedule, reason, now=now)


def miss_waiting(schedule: Schedule, reason: Reason, *, now: datetime) -> None:
    """Mark all occurrences that have not started as missed. Inside the caller's transaction."""
    waiting = schedule.occurrences.filter(state=OccurrenceState.WAITING).order_by("due_at", "position")
    miss_all(list(waiting), reason, now=now)


def miss_all(occurrences: Sequence[Occurrence], reason: Reason, *, now: datetime) -> None:
    """Mark these occurrences of one schedule as missed, send one notice, and inform its followers."""
    for occurrence in occurrences:
        _miss(occurrence, reason, now)
    if occurrences:
        last = occurrences[-1]
        key = _notice_key(last.schedule, reason.code, now)
        notify_missed(last.schedule, last.due_at, key=key, count=len(occurrences), reason=str(reason))
        for due_at in dict.fromkeys(occurrence.due_at for occurrence in occurrences):
            after_occurrence(last.schedule, due_at, now=now)


def _notice_key(schedule: Schedule, code: str, now: datetime) -> str:
    """Each reason is sent once per clock hour: a line for every minute, or a large group, must not fill a mailbox."""
    return f"{schedule.pk}:{code}:{now:%Y-%m-%dT%H}"


def _miss(occurrence: Occurrence, reason: Reason, now: datetime) -> None:
    occurrence.state, occurrence.finished_at = OccurrenceState.MISSED, now
    occurrence.reason_code, occurrence.reason_fields, occurrence.missed_by = reason.code, reason.fields, reason.by
    occurrence.save(update_fields=["state", "finished_at", "reason_code", "reason_fields", "missed_by"])


def after_occurrence(schedule: Schedule, due_at: datetime, *, now: datetime) -> None:
    """One occurrence of this due time has ended: continue with the next host of the group, or the next schedule."""
    occurrences = list(schedule.occurrences.filter(due_at=due_at).select_related("run").order_by("position"))
    still_open = [occurrence for occurrence in occurrences if occurrence.state in OPEN_OCCURRENCE_STATES]
    if not still_open:
        _follow(schedule, occurrences, now)
    elif all(occurrence.ready_at is None for occurrence in still_open):
        Occurrence.objects.filter(pk=still_open[0].pk).update(ready_at=now)


def _follow(schedule: Schedule, ended: Sequence[Occurrence], now: datetime) -> None:
    for follower in schedule.followers.filter(enabled=True, trigger=Trigger.AFTER_SCHEDULE):
        due_at = now
        while follower.occurrences.filter(due_at=due_at).exists():  # two due times ended at the same moment
            due_at += timedelta(microseconds=1)
        occurrences = make_occurrences(follower, due_at)
        if why := _not_followed(follower, ended):
            miss_all(occurrences, why, now=now)


def _not_followed(follower: Schedule, ended: Sequence[Occurrence]) -> Reason | None:
    """Why a schedule is not started after these occurrences; None if it is."""
    runs = [occurrence.run for occurrence in ended if occurrence.run is not None]
    if follower.condition == Condition.ANY and runs:
        return None
    for occurrence in ended:
        before: dict[str, object] = {"schedule": occurrence.schedule.name}
        if occurrence.run is None:
            because = {"code": occurrence.reason_code, "fields": occurrence.reason_fields}
            return Reason(NOT_FOLLOWED, before | {"because": because})
        if occurrence.run.state != RunState.DONE:
            return Reason(NOT_FOLLOWED, before | {"run": occurrence.run.number, "state": occurrence.run.state})
    return None
