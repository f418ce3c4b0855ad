"""What a due time leads to: occurrences, those that were missed, and the schedules that follow.

A missed due time is kept with its reason. Of the due times that pass while the scheduler does not run, only the latest
is made up for, and only until its latest start.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice, takewhile

from django.db import transaction

from webapp.runs.models import Run, RunState
from webapp.schedules.each import each
from webapp.schedules.models import (
    OPEN_OCCURRENCE_STATES,
    Condition,
    GroupOrder,
    Occurrence,
    OccurrenceState,
    Schedule,
    Trigger,
)
from webapp.schedules.notify import local_time, notify_missed
from webapp.schedules.timing import due_after, start_within

MOST_MISSED = 100  # rows for one outage; the first of them counts the rest
LOOKED_BACK = 50_000  # due times that are counted at all: five weeks of a line for every minute


def create_due(*, now: datetime, down_since: datetime | None) -> None:
    """Create occurrences for every due time that has come. `down_since`: the scheduler did not run from then on."""
    due = Schedule.objects.filter(enabled=True, next_due_at__lte=now).values_list("pk", flat=True)
    each(due, lambda key: _create_due(key, now, down_since))
    _create_after_runs(now)


@transaction.atomic
def _create_due(key: int, now: datetime, down_since: datetime | None) -> None:
    schedule = Schedule.objects.select_for_update(no_key=True).get(pk=key)
    if not schedule.enabled or schedule.next_due_at is None or schedule.next_due_at > now:
        return
    first = schedule.next_due_at
    later = takewhile(lambda due: due <= now, due_after(schedule, first))
    *older, latest = [first, *islice(later, LOOKED_BACK)]
    _miss_older(schedule, older, now, down_since)
    occurrences = make_occurrences(schedule, latest)
    if down_since and latest >= down_since and now > latest + start_within(schedule):
        miss_all(occurrences, "scheduler_down", _was_down(schedule, down_since, now), now=now)
    schedule.next_due_at = next(due_after(schedule, now), None)
    schedule.save(update_fields=["next_due_at"])


def _miss_older(schedule: Schedule, dues: Sequence[datetime], now: datetime, down_since: datetime | None) -> None:
    """Due times that were followed by another one before the scheduler looked."""
    kept = dues[-MOST_MISSED:]
    reason = _was_down(schedule, down_since or dues[0], now) if dues else ""
    for due in kept:
        left_out = len(dues) - len(kept) if due is kept[0] else 0
        more = f" {left_out:,} due times before this one were missed too and are not listed." if left_out else ""
        for one in make_occurrences(schedule, due):
            _miss(one, "scheduler_down", f"{reason} Only the latest due time is made up for.{more}", now)
    if kept:
        notify_missed(
            schedule, kept[-1], key=_notice_key(schedule, "scheduler_down", 0, now), count=len(dues), reason=reason
        )


def _was_down(schedule: Schedule, since: datetime, now: datetime) -> str:
    return f"The scheduler did not run from {local_time(schedule, since)} to {local_time(schedule, now)}."


@transaction.atomic
def _create_after_runs(now: datetime) -> None:
    """Schedules that follow one run, which has ended."""
    ended = Schedule.objects.select_for_update(no_key=True, of=("self",)).select_related("after_run")
    for schedule in ended.filter(
        enabled=True, trigger=Trigger.AFTER_RUN, after_run__ended_at__isnull=False, occurrences=None
    ):
        run = schedule.after_run
        assert run is not None
        occurrences = make_occurrences(schedule, now)
        if schedule.condition == Condition.DONE and run.state != RunState.DONE:
            words = f"It follows run {run.number}, which {_ended(run)}."
            miss_all(occurrences, "run_before_not_done", words, now=now)


def _ended(run: Run) -> str:
    return "failed" if run.state == RunState.FAILED else "was cancelled"


def make_occurrences(schedule: Schedule, due_at: datetime) -> list[Occurrence]:
    """One waiting occurrence, or one for each host of the group. Those that exist already are left alone."""
    hosts = [None] if schedule.group is None else [one.host for one in schedule.group.members.select_related("host")]
    one_by_one = schedule.group_order == GroupOrder.ONE_BY_ONE
    made = []
    for part, host in enumerate(hosts):
        ready_at = None if one_by_one and part else due_at
        occurrence, new = Occurrence.objects.get_or_create(
            schedule=schedule, due_at=due_at, part=part, defaults={"host": host, "ready_at": ready_at}
        )
        made += [occurrence] if new else []
    return made


def miss_waiting(schedule: Schedule, code: str, reason: str, *, now: datetime) -> None:
    """Everything of a schedule that has not started is missed. Inside the caller's transaction."""
    waiting = schedule.occurrences.filter(state=OccurrenceState.WAITING).order_by("due_at", "part")
    miss_all(list(waiting.select_for_update(no_key=True)), code, reason, now=now)


def miss_all(occurrences: Sequence[Occurrence], code: str, reason: str, *, now: datetime) -> None:
    """Miss these occurrences of one schedule, send one notice, and let its followers know."""
    for one in occurrences:
        _miss(one, code, reason, now)
    if occurrences:
        last = occurrences[-1]
        key = _notice_key(last.schedule, code, last.part, now)
        notify_missed(last.schedule, last.due_at, key=key, count=len(occurrences), reason=reason)
        for due_at in dict.fromkeys(one.due_at for one in occurrences):
            after_part(last.schedule, due_at, now=now)


def _notice_key(schedule: Schedule, code: str, part: int, now: datetime) -> str:
    """The same reason is told once an hour: a line for every minute must not fill a mailbox."""
    return f"{schedule.pk}:{part}:{code}:{now:%Y-%m-%dT%H}"


def _miss(occurrence: Occurrence, code: str, reason: str, now: datetime) -> None:
    occurrence.state, occurrence.over_at = OccurrenceState.MISSED, now
    occurrence.reason_code, occurrence.reason = code, reason
    occurrence.save(update_fields=["state", "over_at", "reason_code", "reason"])


def after_part(schedule: Schedule, due_at: datetime, *, now: datetime) -> None:
    """A part of this due time is over: the next host of the group has its turn, or the schedules that follow do."""
    parts = list(schedule.occurrences.filter(due_at=due_at).select_related("run").order_by("part"))
    still_open = [one for one in parts if one.state in OPEN_OCCURRENCE_STATES]
    if not still_open:
        _follow(schedule, parts, now)
    elif all(one.ready_at is None for one in still_open):
        Occurrence.objects.filter(pk=still_open[0].pk).update(ready_at=now)


def _follow(schedule: Schedule, parts: Sequence[Occurrence], now: datetime) -> None:
    followers = schedule.followers.select_for_update(no_key=True).filter(enabled=True, trigger=Trigger.AFTER_SCHEDULE)
    for follower in followers:
        occurrences = make_occurrences(follower, now)
        if why := _not_followed(follower, parts):
            miss_all(occurrences, "run_before_not_done", why, now=now)


def _not_followed(follower: Schedule, parts: Sequence[Occurrence]) -> str:
    """Why a schedule is not started after these parts; "" where it is."""
    runs = [one.run for one in parts if one.run is not None]
    if follower.condition == Condition.ANY and runs:
        return ""
    for one in parts:
        if one.run is None:
            return f"It follows schedule “{one.schedule}”, which did not run: {one.reason}"
        if one.run.state != RunState.DONE:
            return f"It follows schedule “{one.schedule}”, whose run {one.run.number} {_ended(one.run)}."
    return ""
