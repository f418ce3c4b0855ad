"""When a schedule is due: its due times, its window and its time limits, and whether they can fit together."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression

from webapp.core.errors import FIRST_YEAR, Refusal
from webapp.core.windows import WeeklyWindow, local_time, time_zone, weekly_window
from webapp.notices.models import Event
from webapp.notices.services import announce
from webapp.schedules.models import Condition, Occurrence, Schedule, Trigger

# Notices about schedules: a due time was missed, a run is late, a schedule was switched off.


def notify_missed(schedule: Schedule, due_at: datetime, *, key: str, count: int, reason: str) -> None:
    """Tell subscribers that one or several due times were missed, the latest at `due_at`. The same `key` once."""
    due = local_time(due_at, schedule.time_zone)
    text = f"Schedule “{schedule}” did not start its run due {due}. {reason}"
    if count > 1:
        text += f" {count:,} due times were missed."
    announce(
        event=Event.MISSED,
        plan=schedule.version.plan,
        key=f"missed:{key}",
        subject=f"Missed: {schedule}, due {due}",
        text=text,
        path=f"/schedules/{schedule.pk}/",
        detail={"schedule": schedule.name, "due_at": due_at.isoformat(), "missed": count, "reason": reason},
    )


def notify_late(occurrence: Occurrence, deadline: datetime) -> None:
    """Tell subscribers that a run has passed its deadline."""
    schedule, run = occurrence.schedule, occurrence.run
    assert run is not None
    end = local_time(deadline, schedule.time_zone)
    announce(
        event=Event.LATE,
        plan=schedule.version.plan,
        key=f"late:{occurrence.pk}",
        subject=f"Late: run {run.number} of schedule {schedule}",
        text=f"Run {run.number} of schedule “{schedule}” has not ended by its deadline, {end}.",
        path=f"/runs/{run.number}/",
        detail={"schedule": schedule.name, "run": run.number, "deadline": deadline.isoformat()},
    )


def notify_switched_off(schedule: Schedule, reason: str, *, now: datetime) -> None:
    """Notify subscribers of missed starts that the schedule has no more due times although nobody switched it off."""
    announce(
        event=Event.MISSED,
        plan=schedule.version.plan,
        key=f"switched_off:{schedule.pk}:{now.isoformat()}",
        subject=f"Switched off: {schedule}",
        text=f"Sweetspot switched off schedule “{schedule}”. {reason} Switch it on again on its page.",
        path=f"/schedules/{schedule.pk}/",
        detail={"schedule": schedule.name, "reason": reason},
    )


# Cron lines: five fields, with the rules of Debian's cron, each in its own time zone; also L and MON#1.
#
# When clocks are set forward, a fixed time that does not exist is due right after the gap. When clocks are set back,
# a fixed time that exists twice is due once, the first time. A line with `*` in its minute or hour follows the clock:
# it is not due in a skipped hour, and due twice in a repeated hour.
# https://manpages.debian.org/bookworm/cron/cron.8.en.html (“local time changes”)

DAYS_AHEAD = 50 * 366
_STEP_OF_ONE = re.compile(r"\b(\w+)-\1/[1-9]\d*(?![^,\s])")  # 5-5/2 is 5: CronSim takes it for 5/2
FIELDS = "minute, hour, day of the month, month and day of the week"


def due_times(line: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The due times after a moment, ascending, in UTC.

    Raises Refusal cron_refused if the line cannot be read. Ends if the line matches nothing within 50 years.
    """
    read = _read(line, after.astimezone(zone))
    if not has_fixed_time(line):
        yield from _following_the_clock(read, zone, after)
        return
    for local in read:
        due = local.astimezone(UTC)
        if due > after:  # the search starts at the wall-clock time, which occurs again in the second of two equal hours
            yield due


def _following_the_clock(read: CronSim, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Of a line with a wildcard in its time: every moment at which the local clock shows a matching time.

    CronSim takes steps of an hour, so it misses times after a change of half an hour (Australia/Lord_Howe), and
    midnight counts although it does not exist where clocks are set forward at midnight (America/Havana).
    """
    first = after.astimezone(zone).date()
    for day in (first + timedelta(days=number) for number in range(DAYS_AHEAD)):
        if day.month not in read.months or not read.match_day(day):
            continue
        clock = (time(hour, minute) for hour in sorted(read.hours) for minute in sorted(read.minutes))
        if _clocks_change(day, zone):
            twice = (datetime.combine(day, at, zone).replace(fold=fold) for at in clock for fold in (0, 1))
            dues: Iterable[datetime] = sorted({local.astimezone(UTC) for local in twice if _exists(local)})
        else:
            dues = (datetime.combine(day, at, zone).astimezone(UTC) for at in clock)
        yield from (due for due in dues if due > after)


def _exists(local: datetime) -> bool:
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(fold=0) == local.replace(fold=0)


def just_before(moment: datetime) -> datetime:
    """In UTC, because subtraction in local time can give the wrong one of two equal hours."""
    return moment.astimezone(UTC) - timedelta(microseconds=1)


# Names of usual lines, as in https://manpages.debian.org/bookworm/cron/crontab.5.en.html
NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_RANGES = ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6))  # of H, by field; each month has 28 days
_SPREAD = re.compile(r"H(?:\((\d{1,2})-(\d{1,2})\))?(?:/(\d{1,2}))?", re.ASCII)


def checked_line(line: str, name: str = "") -> str:
    """The line with single spaces, without nicknames and H. Raises Refusal cron_refused if it cannot be read or never
    matches a date.

    H is a number that follows from the `name` of the schedule, so that schedules do not all start at full hours:
    `H 2 * * *`, `H/15 * * * *`, `H(0-29) H(1-4) * * *`, as in Jenkins. The same name gives the same number.
    """
    words = NICKNAMES.get(line.strip().lower(), line).split()
    written, now = " ".join(_spread(word, place, name) for place, word in enumerate(words)), datetime.now(UTC)
    if next(due_times(written, ZoneInfo("UTC"), now), None) is None:
        raise Refusal("cron_refused", f"The cron line “{written}” matches no date in the next 50 years.")
    return written


def _spread(word: str, place: int, name: str) -> str:
    """A field without H; unchanged if it has none, or if it cannot be read."""
    chosen = _SPREAD.fullmatch(word)
    if chosen is None or place >= len(_RANGES):
        return word
    lowest, highest = _RANGES[place]
    first, last = int(chosen[1] or lowest), int(chosen[2] or highest)
    step = int(chosen[3] or 0)
    if not lowest <= first <= last <= highest or (chosen[3] and not step):
        return word
    number = int.from_bytes(hashlib.sha256(f"{place} {name}".encode()).digest()[:8])
    if not step:
        return str(first + number % (last - first + 1))
    return f"{first + number % min(step, last - first + 1)}-{last}/{step}"


def in_words(line: str) -> str:
    """The line in English: “At 22:00 on Monday through Friday”.

    If both day of the month and day of the week are given, cron runs on days that match either of them: “At 03:00 on
    the 13th day of every month, and also on every Friday”.
    """
    read = _read(line, datetime.now(UTC))
    minute, hour, day, month, weekday = line.split(" ")
    if "*" in (day[0], weekday[0]):  # cron runs on days that match both
        return _plainly(read.explain())
    on_days = _plainly(_read(f"{minute} {hour} {day} {month} *", datetime.now(UTC)).explain())
    on_weekdays: str = Expression([minute, hour, "*", month.upper(), weekday.upper()]).translate_date(False)
    return f"{on_days}, and also {_every(on_weekdays)}"


def _plainly(text: str) -> str:
    return text.replace("if it's on ", "if it is ").replace("day of month", "day of the month")


def _every(on_weekdays: str) -> str:
    """“on every Friday” for “on Friday”; a range and the first Friday of a month stay as they are."""
    plain = not on_weekdays.startswith(("on the ", "on every ")) and " through " not in on_weekdays
    return on_weekdays.replace("on ", "on every ", 1) if plain else on_weekdays


def count_between(schedule: Schedule, start: datetime, end: datetime) -> int:
    """The number of due times from `start` to `end` (exclusive)."""
    if schedule.first_day or schedule.last_day or schedule.except_days or schedule.paused_until:
        return sum(1 for _ in takewhile(lambda due: due < end, due_after(schedule, just_before(start))))
    return count_of_line(schedule.cron, time_zone(schedule.time_zone), start, end)


def count_of_line(line: str, zone: ZoneInfo, start: datetime, end: datetime) -> int:
    """As `count_between`. A line for every minute is counted by day."""
    total, here = 0, start.astimezone(zone)
    while here < end:
        midnight = datetime.combine(here.date() + timedelta(days=1), time.min, zone)
        until = min(midnight, end.astimezone(zone))
        total += _count_in_day(line, zone, here, until)
        here = midnight
    return total


def _count_in_day(line: str, zone: ZoneInfo, start: datetime, end: datetime) -> int:
    """Of one day in `zone`."""
    if _clocks_change(start.date(), zone):
        dues = due_times(line, zone, just_before(start))
        return sum(1 for _ in takewhile(lambda due: due < end, dues))
    midnight = datetime.combine(start.date(), time.min, zone)
    first = next(due_times(line, zone, just_before(midnight)), None)
    if first is None or first.astimezone(zone).date() != start.date():
        return 0
    read = _read(line, midnight)
    first_s, end_s = (start - midnight).total_seconds(), (end - midnight).total_seconds()
    return sum(first_s <= (hour * 60 + minute) * 60 < end_s for hour in read.hours for minute in read.minutes)


def _clocks_change(day: date, zone: ZoneInfo) -> bool:
    """On this day, or at its beginning."""
    midnight, next_midnight = (datetime.combine(day + timedelta(days=step), time.min, zone) for step in (0, 1))
    before = just_before(midnight).astimezone(zone)
    return len({moment.utcoffset() for moment in (before, midnight, next_midnight)}) > 1


def has_fixed_time(line: str) -> bool:
    """Whether minute and hour have no wildcard, so that the due times stay when clocks are set."""
    minute, hour = line.split(" ")[:2]
    return "*" not in minute + hour


def _read(line: str, at: datetime) -> CronSim:
    try:
        if len(line.split(" ")) != 5:  # CronSim takes a sixth, for seconds
            raise CronSimError("Wrong number of fields")
        return CronSim(_STEP_OF_ONE.sub(r"\1", line), at)
    except CronSimError as error:
        why = str(error).removeprefix("Bad ").lower()
        what = f"its {why} is not valid" if str(error).startswith("Bad ") else f"it needs five fields: {FIELDS}"
        raise Refusal("cron_refused", f"The cron line “{line}” cannot be used: {what}.") from error


TRIED_OPENINGS = 1000  # of a window, when its due times are checked: nearly three years of a daily one
FARTHEST = timedelta(days=3653)
HORIZON = timedelta(days=30 * 365)  # every cron line that matches a date does so within 28 years


def due_after(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """Due times after a moment, ascending. None for a schedule without a time.

    A recurring one is due from its first to its last day, except on some days and before the end of its pause; days
    are those of its time zone.
    """
    if schedule.trigger == Trigger.CRON:
        yield from _on_its_days(schedule, after)
    elif schedule.trigger == Trigger.ONCE and schedule.once_at and schedule.once_at > after:
        yield schedule.once_at


def _on_its_days(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    zone, left_out = time_zone(schedule.time_zone), frozenset(schedule.except_days)
    begins = [after]
    if schedule.paused_until:
        begins.append(just_before(schedule.paused_until))
    if schedule.first_day:
        begins.append(just_before(datetime.combine(schedule.first_day, time.min, zone)))
    for due in due_times(schedule.cron, zone, max(begins)):
        day = due.astimezone(zone).date()
        if schedule.last_day and day > schedule.last_day:
            return
        if day.isoformat() not in left_out:
            yield due


MAX_EXCEPT_DAYS = 400


def refuse_days(first_day: date | None, last_day: date | None, except_days: Collection[date], now: datetime) -> None:
    """Raises Refusal days_refused."""
    latest = (now + FARTHEST).date()
    if any(day and not FIRST_YEAR <= day.year <= latest.year for day in (first_day, last_day)):
        raise Refusal("days_refused", f"The first and last day must be in the years {FIRST_YEAR} to {latest.year}.")
    if first_day and last_day and last_day < first_day:
        raise Refusal("days_refused", f"The last day, {last_day}, is before the first day, {first_day}.")
    if len(except_days) > MAX_EXCEPT_DAYS:
        words = f"{len(except_days):,} excluded days are too many; the maximum is {MAX_EXCEPT_DAYS}."
        raise Refusal("days_refused", words)


def read_days(text: str) -> tuple[date, ...]:
    """`2026-12-24..2026-12-26, 2027-01-01`, ascending, each once. Raises Refusal days_refused."""
    days: set[date] = set()
    for word in re.split(r"[,;\s]+", text.strip()):
        first, _, last = word.partition("..")
        if not word:
            continue
        try:
            start, end = date.fromisoformat(first), date.fromisoformat(last or first)
        except ValueError as error:
            raise Refusal(
                "days_refused", f"“{word[:40]}” is no date. Write 2026-12-24 or 2026-12-24..2026-12-26."
            ) from error
        if not 0 <= (end - start).days < MAX_EXCEPT_DAYS:
            raise Refusal("days_refused", f"“{word[:40]}” must be 1 to {MAX_EXCEPT_DAYS} days, the first day first.")
        days |= {start + timedelta(days=number) for number in range((end - start).days + 1)}
    return tuple(sorted(days))


def written_days(days: Iterable[str], to: str = "..") -> str:
    """As `read_days` reads them."""
    spans: list[list[date]] = []
    for day in sorted(map(date.fromisoformat, days)):
        if spans and day - spans[-1][1] == timedelta(days=1):
            spans[-1][1] = day
        else:
            spans.append([day, day])
    return ", ".join(f"{first}" if first == last else f"{first}{to}{last}" for first, last in spans)


def window_of(schedule: Schedule) -> WeeklyWindow | None:
    if not schedule.window_days:
        return None
    assert schedule.window_opens is not None
    assert schedule.window_closes is not None
    zone = time_zone(schedule.time_zone)
    return weekly_window(schedule.window_days, schedule.window_opens, schedule.window_closes, zone)


def start_within(schedule: Schedule) -> timedelta:
    return timedelta(seconds=schedule.start_within_s)


def deadline_of(schedule: Schedule, due_at: datetime) -> datetime | None:
    return None if schedule.deadline_s is None else due_at + timedelta(seconds=schedule.deadline_s)


def refuse_impossible(schedule: Schedule, now: datetime, *, kept_trigger: bool = False) -> None:
    """Raises Refusal if trigger, window and limits can never lead to a run.

    `kept_trigger`: it had this trigger before, so a past time is allowed.
    """
    if not kept_trigger:
        _refuse_past(schedule, now)
    if schedule.deadline_s is not None and schedule.deadline_s < schedule.start_within_s:
        words = (
            "The deadline must not be shorter than the latest start. Increase the deadline or reduce the latest start."
        )
        raise Refusal("deadline_refused", words)
    if window := window_of(schedule):
        _refuse_closed(schedule, window, now)


def _refuse_past(schedule: Schedule, now: datetime) -> None:
    if schedule.trigger == Trigger.AFTER_RUN and schedule.after_run and schedule.after_run.ended_at:
        raise Refusal("trigger_refused", f"Run {schedule.after_run.number} has ended. Choose a run that has not ended.")
    if schedule.trigger == Trigger.AFTER_SCHEDULE and schedule.after_schedule and schedule.after_schedule.deleted_at:
        raise Refusal("trigger_refused", f"Schedule “{schedule.after_schedule}”, which it follows, was deleted.")
    if schedule.trigger != Trigger.ONCE or schedule.once_at is None:
        return
    if abs(schedule.once_at - now) > FARTHEST:
        raise Refusal("time_refused", "Choose a time within the next ten years.")
    if schedule.once_at <= now:
        raise Refusal(
            "time_passed", f"{local_time(schedule.once_at, schedule.time_zone)} has passed. Choose a later time."
        )


def _refuse_closed(schedule: Schedule, window: WeeklyWindow, now: datetime) -> None:
    """Check one due time for each opening of the window: those in between cannot start either."""
    within, after, tried = start_within(schedule), now, 0
    while tried < TRIED_OPENINGS and (due := next(due_after(schedule, after), now + HORIZON)) < now + HORIZON:
        if opens_in_time(window, due, within):
            return
        span = window.next_span(due)
        assert span is not None
        after, tried = span.opens - within - timedelta(seconds=1), tried + 1
    if tried:
        raise Refusal(
            "window_refused",
            f"The window ({window}) does not open between any due time and its latest start. Change the time, the "
            "window or the latest start.",
        )


def opens_in_time(window: WeeklyWindow, due: datetime, within: timedelta) -> bool:
    """Whether the window is open at some moment from the due time to the latest start."""
    span = window.span_at(due) or window.next_span(due)
    return span is not None and span.opens <= due + within


@dataclass(frozen=True)
class Outlook:
    """Shown by a form before it is saved: the trigger in words and the next due times."""

    words: str
    dues: tuple[datetime, ...]


def outlook(schedule: Schedule, now: datetime, *, count: int = 5) -> Outlook:
    """Raises Refusal if the cron line cannot be read."""
    return Outlook(trigger_in_words(schedule), tuple(islice(due_after(schedule, now), count)))


def trigger_in_words(schedule: Schedule) -> str:
    """“At 22:00 every day (Europe/Berlin)”, “After each run of schedule fill”."""
    how = " if it is done" if schedule.condition == Condition.DONE else ", with any result"
    match schedule.trigger:
        case Trigger.CRON:
            return f"{in_words(schedule.cron)}{_days_in_words(schedule)} ({schedule.time_zone})"
        case Trigger.AFTER_SCHEDULE:
            return f"After each run of schedule “{schedule.after_schedule}”{how}"
        case Trigger.AFTER_RUN:
            return f"Once, after run {schedule.after_run.number if schedule.after_run else ''}{how}"
    return "Once"


def _days_in_words(schedule: Schedule) -> str:
    """“, from 2026-12-01 to 2026-12-31, not on 2026-12-24..2026-12-26”"""
    ends = [f" from {schedule.first_day}"] if schedule.first_day else []
    ends += [f" {'to' if ends else 'until'} {schedule.last_day}"] if schedule.last_day else []
    left_out = f", not on {written_days(schedule.except_days, ' to ')}" if schedule.except_days else ""
    return ("," + "".join(ends) if ends else "") + left_out
