"""Ten kinds of schedules through a simulated month: clocks set forward, an outage of the server, a host away.

15 March to 15 April 2026 in Berlin. The simulation jumps from one moment at which something can happen to the next;
runs last as long as each schedule says here, counted while they are not paused. The table it writes
(.build/schedules-month.md) is what the assertions look at.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings

from webapp.hosts.maintenance_windows import add_single_window, add_weekly_window, next_span, span_at
from webapp.hosts.models import MaintenanceWindow, Target
from webapp.runs.models import RunState
from webapp.runs.reasons import sentence
from webapp.schedules.models import (
    OPEN_OCCURRENCE_STATES,
    AtDeadline,
    Condition,
    GroupOrder,
    Occurrence,
    OccurrenceState,
    Schedule,
    Trigger,
)
from webapp.schedules.services import Window
from webapp.schedules.tests.clock import Clock, clock, finish
from webapp.schedules.timing import deadline_of, start_within, window_of
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.schedules import a_group, a_schedule

pytestmark = pytest.mark.django_db
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def berlin(month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN).astimezone(UTC)


BEGIN, END = berlin(3, 15), berlin(4, 15)
OUTAGE = (berlin(3, 24, 21, 30), berlin(3, 25, 0, 20))
AWAY = (berlin(4, 2, 4), berlin(4, 3, 4))
FAILED_ON = berlin(3, 20, 18)  # due time of the fill that fails
SLOW_ON = {berlin(4, 1, 1), berlin(4, 8, 1)}  # due times of runs that last longer than their deadline


@dataclass
class Month:
    """The state of the simulation."""

    clock: Clock
    away: Target
    lengths: dict[str, Callable[[datetime], timedelta]] = field(default_factory=dict)
    worked: defaultdict[object, float] = field(default_factory=lambda: defaultdict(float))  # s, of each run

    def add(self, name: str, length: timedelta | Callable[[datetime], timedelta], **fields: Any) -> Schedule:
        self.lengths[name] = length if callable(length) else lambda _due: length
        return a_schedule(self.owner, name=name, version=self.version, **fields)

    def __post_init__(self) -> None:
        self.owner, self.version = a_user(), a_version()

    def run(self) -> None:
        while (at := self._next_moment()) < END:
            before = self.clock.now
            self._work((at - before).total_seconds())
            self.clock.set(at)
            self._end_runs()
            self.clock.away = {self.away.host.slug} if AWAY[0] <= at < AWAY[1] else set()
            if not OUTAGE[0] <= at < OUTAGE[1]:
                self.clock.to(at)

    def _going(self) -> Iterator[Occurrence]:
        found = Occurrence.objects.filter(state=OccurrenceState.STARTED, run__ended_at=None)
        yield from found.select_related("schedule", "run")

    def _work(self, seconds: float) -> None:
        for one in self._going():
            if one.run and one.run.state != RunState.PAUSED:
                self.worked[one.run_id] += seconds

    def _left(self, one: Occurrence) -> timedelta:
        return self.lengths[one.schedule.name](one.due_at) - timedelta(seconds=self.worked[one.run_id])

    def _end_runs(self) -> None:
        for one in self._going():
            assert one.run is not None  # `_going` looks for open runs
            if one.run.cancel_requested_at:
                finish(one.run, RunState.CANCELLED, sentence(one.run.cancel_code, one.run.cancel_fields))
            elif self._left(one) <= timedelta(0):
                failed = one.due_at == FAILED_ON and one.schedule.name.startswith("chain 1")
                finish(one.run, RunState.FAILED if failed else RunState.DONE, "The drive was full." if failed else "")

    def _next_moment(self) -> datetime:
        now = self.clock.now
        moments = {
            END,
            *OUTAGE,
            *AWAY,
            *filter(None, Schedule.objects.values_list("next_due_at", flat=True)),
        }
        for one in Occurrence.objects.filter(state__in=OPEN_OCCURRENCE_STATES).select_related("schedule", "run"):
            moments |= set(self._moments_of(one, now))
        for span in self._maintenance:
            moments |= set(span)
        later = [at for at in moments if at > now]
        return min(min(later), now + 6 * HOUR)

    def _moments_of(self, one: Occurrence, now: datetime) -> Iterator[datetime]:
        yield (one.ready_at or one.due_at) + start_within(one.schedule) + SECOND
        if limit := deadline_of(one.schedule, one.due_at):
            yield limit + SECOND
        if window := window_of(one.schedule):
            span = window.span_at(now) or window.next_span(now)
            yield from (span.opens, span.closes) if span else ()
        if one.run and one.run.ended_at is None and one.run.state != RunState.PAUSED:
            yield now + (SECOND if one.run.cancel_requested_at else max(self._left(one), SECOND))

    @property
    def _maintenance(self) -> Iterator[tuple[datetime, datetime]]:
        for window in MaintenanceWindow.objects.all():
            span = span_at(window, self.clock.now) or next_span(window, self.clock.now)
            if span:
                yield span.opens, span.closes


@dataclass(frozen=True)
class Line:
    """What became of the due times of one schedule; for a group each host counts."""

    due: int
    on_time: int
    late_start: int
    missed: dict[str, int]
    past_deadline: int = 0


def line_of(schedule: Schedule) -> Line:
    rows = list(schedule.occurrences.select_related("run"))
    starts = [(one.run.created_at - (one.ready_at or one.due_at)) for one in rows if one.run]
    return Line(
        due=len(rows),
        on_time=sum(delay <= timedelta(seconds=5) for delay in starts),
        late_start=sum(delay > timedelta(seconds=5) for delay in starts),
        missed=dict(Counter(one.reason_code for one in rows if one.state == OccurrenceState.MISSED)),
        past_deadline=sum(one.late_at is not None for one in rows),
    )


def write_table(path: Path) -> None:
    """What was due, started and missed, and why, as Markdown."""
    text = [
        "| schedule | due | started on time | started late | missed | past its deadline |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for schedule in Schedule.objects.order_by("id"):
        one = line_of(schedule)
        missed = ", ".join(f"{count} {code}" for code, count in one.missed.items()) or "0"
        cells = (schedule.name, one.due, one.on_time, one.late_start, missed, one.past_deadline)
        text.append(f"| {' | '.join(map(str, cells))} |")
    text += ["", "| due (Berlin) | schedule | on | missed: why |", "| --- | --- | --- | --- |"]
    shown = Occurrence.objects.filter(state=OccurrenceState.MISSED).exclude(reason_code="still_going")
    for row in shown.select_related("schedule", "host").order_by("due_at", "schedule", "position"):
        due = f"{row.due_at.astimezone(BERLIN):%a %d %b %H:%M %Z}"
        text.append(f"| {due} | {row.schedule.name} | {row.host or ''} | {row.reason} |")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(text) + "\n")


def test_a_month_of_ten_schedules() -> None:
    with clock(BEGIN) as set_clock:
        targets = [a_target(a_host(slug=f"lab{letter}")) for letter in "abc"]
        month = Month(set_clock, away=targets[2])
        _ten_schedules(month, targets)
        month.run()
        lines = {schedule.name: line_of(schedule) for schedule in Schedule.objects.all()}
        write_table(Path(settings.BASE_DIR) / ".build" / "schedules-month.md")
        _the_clock_change_moved_one_due_time_only(month)
    assert lines == {
        "once": Line(1, 1, 0, {}),
        # two days, one of 23 hours; the outage held 22:00 and 23:00
        "hourly": Line(24 + 23, 45, 1, {"scheduler_down": 1}),
        # every second night: a run works 11 hours, and a night has 8
        "nightly window": Line(31, 16, 0, {"still_going": 15}),
        "weekly": Line(5, 5, 0, {}),
        "after weekly": Line(5, 5, 0, {}),
        "chain 1 fill": Line(31, 31, 0, {}),
        "chain 2 read": Line(31, 30, 0, {"run_before_not_done": 1}),
        "chain 3 verify": Line(31, 30, 0, {"run_before_not_done": 1}),
        "deadline": Line(31, 31, 0, {}, past_deadline=2),
        # four Thursdays, three hosts, one away on the third
        "group one after another": Line(12, 11, 0, {"latest_start_passed": 1}),
        "group side by side": Line(12, 11, 0, {"latest_start_passed": 1}),
        # Wednesdays start 45 minutes late; one day is a single window
        "maintenance": Line(31, 26, 4, {"latest_start_passed": 1}),
    }
    cancelled = Occurrence.objects.filter(run__state=RunState.CANCELLED)
    assert {one.due_at for one in cancelled} == SLOW_ON


def _ten_schedules(month: Month, targets: list[Target]) -> None:
    month.add("once", HOUR, targets=[a_target()], trigger=Trigger.ONCE, once_at=berlin(3, 20, 14))
    month.add("hourly", HOUR / 6, targets=[a_target()], cron="0 * 24,29 3 *", start_within_s=5400)
    night = Window(tuple(range(7)), time(22), time(6))
    month.add("nightly window", 11 * HOUR, targets=[a_target()], cron="0 22 * * *", window=night, start_within_s=14400)
    weekly = month.add("weekly", HOUR, targets=[a_target()], cron="30 2 * * 0")
    month.add("after weekly", HOUR, targets=[a_target()], trigger=Trigger.AFTER_SCHEDULE, after_schedule=weekly)
    fill = month.add("chain 1 fill", HOUR, targets=[a_target()], cron="0 18 * * *")
    after: dict[str, Any] = {"targets": [a_target()], "trigger": Trigger.AFTER_SCHEDULE}
    read = month.add("chain 2 read", HOUR, after_schedule=fill, **after)
    month.add("chain 3 verify", HOUR, after_schedule=read, condition=Condition.ANY, **after)
    slow: dict[str, Any] = {"deadline_s": 3 * 3600, "at_deadline": AtDeadline.CANCEL}
    lasts = lambda due: (4 if due in SLOW_ON else 2) * HOUR  # noqa: E731 - one expression, used once
    month.add("deadline", lasts, targets=[a_target()], cron="0 1 * * *", **slow)
    group = a_group(*targets)
    row = GroupOrder.ONE_BY_ONE
    month.add("group one after another", HOUR / 2, group=group, group_order=row, cron="0 5 * * 4")
    month.add("group side by side", HOUR / 2, group=group, cron="0 12 * * 4")
    serviced = a_target()
    month.add("maintenance", HOUR, targets=[serviced], cron="30 3 * * *")
    closes = time(4, 15)
    add_weekly_window(
        host=serviced.host, days=[2], opens=time(3), closes=closes, zone="Europe/Berlin", note="", by=None
    )
    add_single_window(host=serviced.host, starts_at=berlin(4, 7), ends_at=berlin(4, 8), note="new fans", by=None)


def _the_clock_change_moved_one_due_time_only(month: Month) -> None:
    weekly = Occurrence.objects.filter(schedule__name="weekly").order_by("due_at")
    local = [f"{one.due_at.astimezone(BERLIN):%d %b %H:%M %Z}" for one in weekly]
    assert local == [
        "15 Mar 02:30 CET",
        "22 Mar 02:30 CET",
        "29 Mar 03:00 CEST",
        "05 Apr 02:30 CEST",
        "12 Apr 02:30 CEST",
    ]
