"""The arming of a schedule, for its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from webapp.hosts.models import Target
from webapp.schedules.arming import MAX_ARMING, drives_to_be_armed, unarmed
from webapp.schedules.models import Schedule
from webapp.schedules.timing import due_after
from webapp.screens.arming import DriveToArm, drives_to_arm

MAX_COUNTED = 1000


@dataclass(frozen=True)
class ArmingCard:
    """`armed` and `unarmed` are its drives. `before` counts due times until the arming ends."""

    drives: Sequence[DriveToArm]
    armed: Sequence[Target]
    unarmed: Sequence[Target]
    fixed: Sequence[Target]  # drives that their host's policy does not allow to overwrite
    ended: bool
    before: int
    more_before: bool  # only MAX_COUNTED are counted
    first_after: datetime | None  # the first due time after the end
    latest_day: date
    until: str  # the last day in the form: as typed, else in 30 days
    until_problem: str

    @property
    def refused(self) -> bool:
        """The form was sent with an error."""
        return bool(self.until_problem) or any(drive.problem for drive in self.drives)

    @property
    def holds(self) -> bool:
        """Whether all of its drives are armed now."""
        return not self.unarmed


@dataclass(frozen=True)
class TypedArming:
    """A refused form."""

    serials: Sequence[str]
    until: str
    until_problem: str


NOT_TYPED = TypedArming((), "", "")


def arming_card(schedule: Schedule, now: datetime, typed: TypedArming = NOT_TYPED) -> ArmingCard | None:
    """None if it overwrites nothing."""
    drives = [] if schedule.deleted_at else drives_to_be_armed(schedule)
    if not drives:
        return None
    until = schedule.armed_until
    in_time = until is not None and until > now
    missing = unarmed(schedule, drives, now)
    end = until if until and in_time else now
    before = list(takewhile(lambda due: due < end, islice(due_after(schedule, now), MAX_COUNTED)))
    today = now.astimezone(ZoneInfo(schedule.time_zone)).date()
    return ArmingCard(
        drives=drives_to_arm(drives, typed.serials),
        fixed=[target for target in drives if not target.destroy],
        armed=[target for target in drives if target not in missing],
        unarmed=missing,
        ended=until is not None and not in_time,
        before=len(before),
        more_before=len(before) == MAX_COUNTED,
        first_after=next(due_after(schedule, end), None),
        latest_day=today + MAX_ARMING - timedelta(days=2),
        until=typed.until or (today + timedelta(days=30)).isoformat(),
        until_problem=typed.until_problem,
    )


def end_of_day(day: date, zone: str) -> datetime:
    """The end of the day in this time zone."""
    return datetime.combine(day + timedelta(days=1), datetime.min.time(), ZoneInfo(zone))
