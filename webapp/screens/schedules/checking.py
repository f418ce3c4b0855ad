"""Checks the form of a schedule and assigns each refusal to a field."""

import copy
import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.plans.models import Plan, PlanVersion
from webapp.schedules.models import Schedule, Trigger
from webapp.schedules.services import MAX_LIMIT_S, ScheduleSpec, drafted
from webapp.screens.schedules.form import ScheduleForm, spec_from

_FIELD_OF = {  # code of a refusal -> field; trigger_refused and limit_refused depend on the values
    "name_refused": "name",
    "plan_deleted": "version",
    "targets_refused": "on",
    "plan_too_large": "version",
    "cron_refused": "cron",
    "time_zone_refused": "time_zone",
    "window_refused": "window",
    "deadline_refused": "deadline",
    "time_passed": "once",
    "time_refused": "once",
    "once_refused": "once",
    "note_too_long": "note",
}
_FIELD_OF_TRIGGER = {
    Trigger.ONCE: "once",
    Trigger.CRON: "cron",
    Trigger.AFTER_SCHEDULE: "after_schedule",
    Trigger.AFTER_RUN: "after_run",
}
# Several inputs share one message.
_PLACE_OF = {
    "target": "on", "group": "on", "group_order": "on", "once_date": "once", "once_time": "once",
    "window_opens": "window", "window_closes": "window", "window_days": "window", "windowed": "window",
    "start_unit": "start_within", "deadline_unit": "deadline", "at_deadline": "deadline",
}  # fmt: skip
# Without these, no due times can be shown, or wrong ones.
PLACES_OF_TRIGGER = frozenset({"trigger", "time_zone", *_FIELD_OF_TRIGGER.values()})
MAX_REFUSALS = 12


@dataclass(frozen=True)
class Checked:
    """`spec` has the readable values. `schedule` is unsaved and has harmless values instead of wrong ones."""

    spec: ScheduleSpec
    schedule: Schedule
    problems: dict[str, str]  # by field
    grouped: bool  # a host group is required, chosen or not


def check(form: ScheduleForm, schedule: Schedule | None, *, by: User, now: datetime) -> Checked:
    """Read the form and collect its problems by field."""
    form.full_clean()
    problems: dict[str, str] = {}
    for name, errors in form.errors.items():
        problems.setdefault(_PLACE_OF.get(name, name), " ".join(str(error) for error in errors))
    form.cleaned_data.setdefault("version", PlanVersion(plan=Plan()))  # shows the due times before a plan is chosen
    spec = _spec(form, problems)
    tried, draft = spec, Schedule(owner=by)
    for _ in range(MAX_REFUSALS):
        draft = copy.copy(schedule) if schedule else Schedule(owner=by)
        try:
            drafted(tried, draft, now=now)
            break
        except Refusal as refusal:
            place = place_of(refusal, tried)
            problems.setdefault(place, refusal.message)
            if place == "version":
                break
            tried = _harmless(tried, place)
    return Checked(spec, draft, problems, grouped=form.data.get("on") == "group")


def _spec(form: ScheduleForm, problems: dict[str, str]) -> ScheduleSpec:
    try:
        return spec_from(form)
    except Refusal as refusal:
        problems.setdefault("once", refusal.message)
        form.cleaned_data["once_date"] = None
        return spec_from(form)


def place_of(refusal: Refusal, spec: ScheduleSpec) -> str:
    """The field next to which a refusal is shown; "" for none."""
    if refusal.code == "trigger_refused":
        return _FIELD_OF_TRIGGER[spec.trigger]
    if refusal.code == "limit_refused":
        return "deadline" if 60 <= spec.start_within_s <= MAX_LIMIT_S else "start_within"
    return _FIELD_OF.get(refusal.code, "")


def _harmless(spec: ScheduleSpec, place: str) -> ScheduleSpec:
    """The specification without the refused value, so that the next refusal can be found."""
    match place:
        case "name":
            return replace(spec, name=uuid.uuid4().hex)
        case "on":
            return replace(spec, targets=(Target(),), group=None)
        case "once" | "cron" | "after_schedule" | "after_run":
            return replace(spec, trigger=Trigger.CRON, cron="* * * * *")
        case "time_zone":
            return replace(spec, time_zone="UTC")
        case "window":
            return replace(spec, window=None)
        case "start_within":
            return replace(spec, start_within_s=3600, deadline_s=None)
        case "deadline":
            return replace(spec, deadline_s=None)
    return replace(spec, note="")
