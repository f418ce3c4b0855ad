"""The form of a schedule: its fields, their values, and each refusal at its field."""

import copy
import hashlib
import uuid
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.db.models import Q, QuerySet

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.windows import time_zone
from webapp.hosts.models import HostGroup, HostState, Target
from webapp.plans.models import Plan, PlanVersion
from webapp.runs.models import OPEN_RUN_STATES, Priority, Run
from webapp.schedules.models import AtDeadline, Condition, GroupOrder, Overlap, Schedule, Trigger
from webapp.schedules.services import MAX_LIMIT_S, MAX_NOTE, ScheduleSpec, Window, drafted
from webapp.schedules.timing import read_days, written_days

# The form of a schedule: its fields, and their values as a `ScheduleSpec`.

UNITS = {"min": 60, "h": 3600, "s": 1}
WHERE = (("targets", "Targets"), ("group", "Host group"))
MAX_DURATION_VALUE = 10**7


def schedulable_targets(schedule: Schedule | None) -> QuerySet[Target]:
    """Targets of all hosts that are not removed, also offline ones, and the current targets of the schedule."""
    usable = Q(in_policy=True) & ~Q(host__state=HostState.REVOKED) & ~Q(kind="slot")
    targets = Target.objects.filter(usable | Q(schedules=schedule) if schedule else usable)
    return targets.select_related("host").distinct()


class ScheduleForm(forms.Form):
    """Reads the input. Only unreadable values are refused here; `checking` reports what a schedule refuses."""

    name = forms.CharField(required=False, max_length=200)
    version = forms.ModelChoiceField(PlanVersion.objects.none(), error_messages={"required": "Choose a plan."})
    on = forms.ChoiceField(choices=WHERE, required=False)
    target = forms.ModelMultipleChoiceField(Target.objects.none(), required=False)
    group = forms.ModelChoiceField(HostGroup.objects.all(), required=False)
    group_order = forms.ChoiceField(choices=GroupOrder.choices, required=False)
    trigger = forms.ChoiceField(choices=Trigger.choices, error_messages={"required": "Choose when it runs."})
    once_date = forms.DateField(required=False)
    once_time = forms.TimeField(required=False)
    cron = forms.CharField(required=False, max_length=100)
    first_day = forms.DateField(required=False)
    last_day = forms.DateField(required=False)
    except_days = forms.CharField(required=False, max_length=10_000)
    after_schedule = forms.ModelChoiceField(Schedule.objects.none(), required=False)
    after_run = forms.ModelChoiceField(Run.objects.none(), required=False, to_field_name="number")
    condition = forms.ChoiceField(choices=Condition.choices, required=False)
    time_zone = forms.CharField(required=False, max_length=64)
    windowed = forms.BooleanField(required=False)
    window_opens = forms.TimeField(required=False)
    window_closes = forms.TimeField(required=False)
    window_days = forms.TypedMultipleChoiceField(
        choices=[(day, day) for day in range(7)], coerce=int, required=False
    )  # fmt: skip
    start_within = forms.IntegerField(
        min_value=1, max_value=MAX_DURATION_VALUE,
        error_messages={"required": "Enter the latest start.", "min_value": "Enter a number from 1."},
    )  # fmt: skip
    start_unit = forms.ChoiceField(choices=[(unit, unit) for unit in UNITS])
    deadline = forms.IntegerField(
        min_value=1, max_value=MAX_DURATION_VALUE, required=False,
        error_messages={"min_value": "Enter a number from 1, or leave the field empty for no deadline."},
    )  # fmt: skip
    deadline_unit = forms.ChoiceField(choices=[(unit, unit) for unit in UNITS], required=False)
    at_deadline = forms.ChoiceField(choices=AtDeadline.choices, required=False)
    overlap = forms.ChoiceField(choices=Overlap.choices, required=False)
    priority = forms.TypedChoiceField(choices=Priority.choices, coerce=int, required=False)
    note = forms.CharField(required=False, max_length=MAX_NOTE * 4, strip=False)

    def __init__(self, *args: Any, schedule: Schedule | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.schedule = schedule
        self._choose_from("target", schedulable_targets(schedule))
        self._choose_from("version", PlanVersion.objects.select_related("plan"))
        self._choose_from("after_schedule", other_schedules(schedule))
        self._choose_from("after_run", runs_to_follow(schedule))

    def _choose_from(self, name: str, rows: QuerySet[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

    def clean_except_days(self) -> tuple[date, ...]:
        try:
            return read_days(self.cleaned_data["except_days"])
        except Refusal as refusal:
            raise forms.ValidationError(refusal.message) from refusal

    def clean_window_opens(self) -> time | None:
        return self._needed_with_window("window_opens", "Enter when the window opens.")

    def clean_window_closes(self) -> time | None:
        return self._needed_with_window("window_closes", "Enter when the window closes.")

    def _needed_with_window(self, name: str, words: str) -> time | None:
        value: time | None = self.cleaned_data[name]
        if self.cleaned_data.get("windowed") and value is None:
            raise forms.ValidationError(words)
        return value


def other_schedules(schedule: Schedule | None) -> QuerySet[Schedule]:
    """The schedules that it may follow."""
    schedules = Schedule.objects.filter(deleted_at=None)
    return schedules.exclude(pk=schedule.pk) if schedule else schedules


def runs_to_follow(schedule: Schedule | None) -> QuerySet[Run]:
    """Open runs, and the run that the schedule follows now."""
    wanted = Q(state__in=OPEN_RUN_STATES) | Q(pk=schedule.after_run_id if schedule else None)
    return Run.objects.filter(wanted).select_related("version__plan")


def spec_from(form: ScheduleForm) -> ScheduleSpec:
    """The input; unreadable values have their defaults. Raises Refusal for a time that clocks skip.

    `form` must be cleaned.
    """
    data = form.cleaned_data
    grouped = data.get("on") == "group"
    zone = data.get("time_zone", "").strip() or "UTC"
    return ScheduleSpec(
        name=data.get("name", ""),
        version=data["version"],
        trigger=Trigger(data.get("trigger") or Trigger.CRON),
        targets=() if grouped else _as_listed(form, list(data.get("target") or ())),
        group=data.get("group") if grouped else None,
        group_order=GroupOrder(data.get("group_order") or GroupOrder.SIDE_BY_SIDE),
        once_at=_kept_once(form.schedule, data, zone) or _once_at(data, zone),
        cron=data.get("cron", ""),
        time_zone=zone,
        after_schedule=data.get("after_schedule"),
        after_run=data.get("after_run"),
        condition=Condition(data.get("condition") or Condition.DONE),
        window=_window(data),
        start_within_s=(data.get("start_within") or 1) * UNITS[data.get("start_unit") or "h"],
        deadline_s=_deadline(data),
        at_deadline=AtDeadline(data.get("at_deadline") or AtDeadline.NOTIFY),
        overlap=Overlap(data.get("overlap") or Overlap.SKIP),
        priority=Priority(data.get("priority") or Priority.NORMAL),
        note=data.get("note", ""),
        first_day=data.get("first_day"),
        last_day=data.get("last_day"),
        except_days=data.get("except_days") or (),
    )


def _as_listed(form: ScheduleForm, targets: list[Target]) -> tuple[Target, ...]:
    places = {key: place for place, key in enumerate(form.data.getlist("target"))}  # type: ignore[attr-defined]
    return tuple(sorted(targets, key=lambda target: places.get(str(target.pk), len(places))))


def _kept_once(schedule: Schedule | None, data: dict[str, Any], zone: str) -> datetime | None:
    """The time of the schedule, if the form still shows it.

    The form cannot show seconds or the second of two equal hours, so an unchanged time is not read again.
    """
    if (
        schedule is None
        or schedule.once_at is None
        or schedule.time_zone != zone
        or data.get("trigger") != Trigger.ONCE
    ):
        return None
    shown = schedule.once_at.astimezone(ZoneInfo(zone))
    typed = (data.get("once_date"), data.get("once_time"))
    return schedule.once_at if typed == (shown.date(), shown.time().replace(second=0, microsecond=0)) else None


def _once_at(data: dict[str, Any], zone: str) -> datetime | None:
    """Raises Refusal once_refused for a time that does not exist; a time that exists twice means the first."""
    date, at = data.get("once_date"), data.get("once_time")
    if not date or at is None or data.get("trigger") != Trigger.ONCE:
        return None
    try:
        there = datetime.combine(date, at, time_zone(zone))
    except Refusal:
        there = datetime.combine(date, at, ZoneInfo("UTC"))  # the time zone itself is refused elsewhere
    try:
        moment = there.astimezone(ZoneInfo("UTC"))
        exists = moment.astimezone(there.tzinfo).replace(tzinfo=None) == there.replace(tzinfo=None)
    except OverflowError as error:
        raise Refusal("once_refused", "Choose a date of this century.") from error
    if not exists:
        words = f"{at:%H:%M} does not exist on {date} in {zone}: clocks are set forward. Choose another time."
        raise Refusal("once_refused", words)
    return moment


def _window(data: dict[str, Any]) -> Window | None:
    opens, closes = data.get("window_opens"), data.get("window_closes")
    if not data.get("windowed") or opens is None or closes is None:
        return None
    return Window(tuple(data.get("window_days") or ()), opens, closes)


def _deadline(data: dict[str, Any]) -> int | None:
    number = data.get("deadline")
    return number * UNITS[data.get("deadline_unit") or "h"] if number else None


def values_of(schedule: Schedule) -> dict[str, Any]:
    """The fields of a schedule for editing."""
    zone = ZoneInfo(schedule.time_zone)
    once = schedule.once_at.astimezone(zone) if schedule.once_at else None
    start, start_unit = _in_units(schedule.start_within_s)
    deadline, deadline_unit = _in_units(schedule.deadline_s) if schedule.deadline_s else ("", "h")
    return {
        "name": schedule.name,
        "version": schedule.version_id,
        "on": "group" if schedule.group_id else "targets",
        "target": list(schedule.target_order),
        "group": schedule.group_id,
        "group_order": schedule.group_order,
        "trigger": schedule.trigger,
        "once_date": f"{once:%Y-%m-%d}" if once else "",
        "once_time": f"{once:%H:%M}" if once else "",
        "cron": schedule.cron,
        "first_day": f"{schedule.first_day or ''}",
        "last_day": f"{schedule.last_day or ''}",
        "except_days": written_days(schedule.except_days),
        "after_schedule": schedule.after_schedule_id,
        "after_run": schedule.after_run.number if schedule.after_run else None,
        "condition": schedule.condition,
        "time_zone": schedule.time_zone,
        "windowed": bool(schedule.window_days),
        "window_opens": f"{schedule.window_opens:%H:%M}" if schedule.window_opens else "",
        "window_closes": f"{schedule.window_closes:%H:%M}" if schedule.window_closes else "",
        "window_days": schedule.window_days,
        "start_within": start,
        "start_unit": start_unit,
        "deadline": deadline,
        "deadline_unit": deadline_unit,
        "at_deadline": schedule.at_deadline,
        "overlap": schedule.overlap,
        "priority": schedule.priority,
        "note": schedule.note,
    }


def base_of(schedule: Schedule) -> str:
    """A fingerprint of all fields, to detect that another person saved the schedule meanwhile."""
    return hashlib.sha256(repr(values_of(schedule)).encode()).hexdigest()[:16]


def _in_units(seconds: int) -> tuple[int, str]:
    unit = next(unit for unit in ("h", "min", "s") if seconds % UNITS[unit] == 0)
    return seconds // UNITS[unit], unit


def values_of_new(zone: str, now: datetime) -> dict[str, Any]:
    """The initial values: every night, in the viewer's time zone."""
    tomorrow = now.astimezone(ZoneInfo(zone)) + timedelta(days=1)
    return {
        "on": "targets",
        "target": [],
        "group_order": GroupOrder.SIDE_BY_SIDE,
        "trigger": Trigger.CRON,
        "once_date": f"{tomorrow:%Y-%m-%d}",
        "once_time": "22:00",
        "cron": "0 22 * * *",
        "condition": Condition.DONE,
        "time_zone": zone,
        "window_opens": "22:00",
        "window_closes": "06:00",
        "window_days": list(range(7)),
        "start_within": 1,
        "start_unit": "h",
        "deadline": "",
        "deadline_unit": "h",
        "at_deadline": AtDeadline.NOTIFY,
        "overlap": Overlap.SKIP,
        "priority": Priority.NORMAL,
    }


_FIELD_OF = {  # code of a refusal -> field; trigger_refused and limit_refused depend on the values
    "name_refused": "name",
    "plan_deleted": "version",
    "targets_refused": "on",
    "plan_too_large": "version",
    "cron_refused": "cron",
    "days_refused": "days",
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
    "first_day": "days", "last_day": "days", "except_days": "days",
    "start_unit": "start_within", "deadline_unit": "deadline", "at_deadline": "deadline",
}  # fmt: skip
# Without these, no due times can be shown, or wrong ones.
PLACES_OF_TRIGGER = frozenset({"trigger", "time_zone", "days", *_FIELD_OF_TRIGGER.values()})
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
        case "days":
            return replace(spec, first_day=None, last_day=None, except_days=())
        case "window":
            return replace(spec, window=None)
        case "start_within":
            return replace(spec, start_within_s=3600, deadline_s=None)
        case "deadline":
            return replace(spec, deadline_s=None)
    return replace(spec, note="")
