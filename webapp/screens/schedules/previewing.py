"""What a schedule would do, while it is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from webapp.hosts.models import Target
from webapp.schedules.models import Trigger
from webapp.schedules.services import overwritten_by
from webapp.screens.schedules.checking import PLACES_OF_TRIGGER, Checked
from webapp.screens.schedules.dues import ShownDue, next_dues
from webapp.screens.schedules.words import Rule, rules, when_in_words


@dataclass(frozen=True)
class ShownPreview:
    """`when` is "" while the trigger cannot be read; `has_dates` is false for one that follows something."""

    when: str
    has_dates: bool
    dues: Sequence[ShownDue]
    zone: str  # the schedule's, where it is not the viewer's
    rules: Sequence[Rule]
    drives: Sequence[Target]
    problems: int


def shown_preview(checked: Checked, now: datetime) -> ShownPreview:
    schedule = checked.schedule
    readable = not PLACES_OF_TRIGGER & set(checked.problems)
    has_dates = schedule.trigger in (Trigger.CRON, Trigger.ONCE)
    return ShownPreview(
        when=when_in_words(schedule) if readable else "",
        has_dates=has_dates,
        dues=next_dues(schedule, now) if readable and has_dates else (),
        zone="" if schedule.time_zone == timezone.get_current_timezone_name() else schedule.time_zone,
        rules=rules(schedule),
        drives=overwritten_by(checked.spec) if checked.spec else (),
        problems=len(checked.problems),
    )
