"""The trends of the schedules whose runs ended last."""

from dataclasses import dataclass

from django.db.models import Max

from webapp.schedules.models import Schedule
from webapp.screens.schedules.trend import Line, trend

SCHEDULES_SHOWN = 3


@dataclass(frozen=True)
class ShownTrend:
    schedule: Schedule
    metric: str
    line: Line


def latest_trends() -> list[ShownTrend]:
    """One for each host of a schedule, if at least two of its runs have a value. Two queries for each schedule."""
    ended = Max("occurrences__run__ended_at")
    schedules = Schedule.objects.filter(deleted_at=None).annotate(ended=ended).exclude(ended=None)
    found = [(each, trend(each)) for each in schedules.select_related("version").order_by("-ended")[:SCHEDULES_SHOWN]]
    return [
        ShownTrend(schedule, made.metric, line)
        for schedule, made in found
        if made is not None
        for line in made.lines
        if line.change
    ]
