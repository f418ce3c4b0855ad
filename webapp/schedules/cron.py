"""Cron lines: five fields, read as Debian's cron reads them, in a time zone of their own; also L and MON#1.

Clocks are set forward: a line with a fixed minute and hour that does not exist is due right after the gap. Clocks are
set back: such a time that exists twice is due once, at its first. A line with `*` in its minute or hour follows the
clock: it is not due in an hour that is left out, and due twice in an hour that is repeated.
https://manpages.debian.org/bookworm/cron/cron.8.en.html (“local time changes”)
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from webapp.core.errors import Refusal

FIELDS = "minute, hour, day of the month, month and day of the week"


def due_times(line: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The due times after a moment, ascending, in UTC.

    Raises Refusal cron_refused where the line cannot be read. Ends where the line matches nothing within 50 years.
    """
    for local in _read(line, after.astimezone(zone)):
        due = local.astimezone(UTC)
        if due > after:  # the search begins at the wall clock, which the second of two equal hours shows again
            yield due


def checked_line(line: str) -> str:
    """The line with single spaces. Raises Refusal cron_refused where it cannot be read or never matches a date."""
    written, now = " ".join(line.split()), datetime.now(UTC)
    if next(due_times(written, ZoneInfo("UTC"), now), None) is None:
        raise Refusal("cron_refused", f"The cron line “{written}” matches no date in the next 50 years.")
    return written


def in_words(line: str) -> str:
    """The line in English: “At 22:00 on Monday through Friday”."""
    text: str = _read(line, datetime.now(UTC)).explain()
    return text


def has_fixed_time(line: str) -> bool:
    """Whether neither minute nor hour holds a wildcard, so that the line keeps its due times when clocks are set."""
    minute, hour = line.split(" ")[:2]
    return "*" not in minute + hour


def _read(line: str, at: datetime) -> CronSim:
    try:
        if len(line.split(" ")) != 5:  # CronSim takes a sixth, for seconds
            raise CronSimError("Wrong number of fields")
        return CronSim(line, at)
    except CronSimError as error:
        why = str(error).removeprefix("Bad ").lower()
        what = f"its {why} is not valid" if str(error).startswith("Bad ") else f"it needs five fields: {FIELDS}"
        raise Refusal("cron_refused", f"The cron line “{line}” cannot be used: {what}.") from error
