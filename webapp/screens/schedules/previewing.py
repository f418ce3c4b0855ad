"""The live preview of a schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from webapp.hosts.models import Target
from webapp.schedules.models import GroupOrder, Trigger
from webapp.schedules.selectors import group_targets
from webapp.screens.schedules.checking import PLACES_OF_TRIGGER, Checked
from webapp.screens.schedules.cost import RunCost, run_cost, too_often
from webapp.screens.schedules.dues import ShownDue, next_dues
from webapp.screens.schedules.words import Rule, rules, when_in_words


@dataclass(frozen=True)
class ShownPreview:
    """Based on the valid fields only.

    `when` is "" while the trigger cannot be read; `has_dates` is false without fixed times.
    """

    when: str
    has_dates: bool
    dues: Sequence[ShownDue]
    window_unread: bool  # the window or the latest start is refused, so `dues` ignore it
    zone: str  # the schedule's, if it is not the viewer's
    rules: Sequence[Rule]  # empty while a field that they depend on is refused
    cost: RunCost | None  # None until plan and targets are chosen
    warning: str  # "" unless runs are due more often than they can run
    drives: Sequence[Target]


def shown_preview(checked: Checked, now: datetime) -> ShownPreview:
    schedule = checked.schedule
    readable = not PLACES_OF_TRIGGER & set(checked.problems)
    has_dates = schedule.trigger in (Trigger.CRON, Trigger.ONCE)
    cost = _cost(checked)
    return ShownPreview(
        when=when_in_words(schedule) if readable else "",
        has_dates=has_dates,
        dues=next_dues(schedule, now) if readable and has_dates else (),
        window_unread=bool({"window", "start_within"} & set(checked.problems)),
        zone="" if schedule.time_zone == timezone.get_current_timezone_name() else schedule.time_zone,
        rules=rules(schedule) if _rules_readable(checked) else (),
        cost=cost,
        warning=too_often(schedule, cost, now) if cost and readable else "",
        drives=cost.drives if cost else (),
    )


def _rules_readable(checked: Checked) -> bool:
    of_no_rule = {"name", "version", "note", *(() if checked.grouped else ("on",))}
    return not set(checked.problems) - of_no_rule


def _cost(checked: Checked) -> RunCost | None:
    if {"version", "on"} & set(checked.problems):
        return None
    spec, order = checked.spec, GroupOrder(checked.schedule.group_order)
    if spec.group is None:
        return run_cost(spec.version, spec.targets, None)
    return run_cost(spec.version, group_targets(spec.group), order if checked.schedule.run_for_each_host else None)
