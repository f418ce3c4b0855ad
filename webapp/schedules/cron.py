"""Cron lines: five fields, with the rules of Debian's cron, each in its own time zone; also L and MON#1.

When clocks are set forward, a fixed time that does not exist is due right after the gap. When clocks are set back, a
fixed time that exists twice is due once, the first time. A line with `*` in its minute or hour follows the clock: it is
not due in a skipped hour, and due twice in a repeated hour.
https://manpages.debian.org/bookworm/cron/cron.8.en.html (“local time changes”)
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression

from webapp.core.errors import Refusal

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


def checked_line(line: str) -> str:
    """The line with single spaces. Raises Refusal cron_refused if it cannot be read or never matches a date."""
    written, now = " ".join(line.split()), datetime.now(UTC)
    if next(due_times(written, ZoneInfo("UTC"), now), None) is None:
        raise Refusal("cron_refused", f"The cron line “{written}” matches no date in the next 50 years.")
    return written


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


def count_between(line: str, zone: ZoneInfo, start: datetime, end: datetime) -> int:
    """The number of due times from `start` to `end` (exclusive). A line for every minute is counted by day."""
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
