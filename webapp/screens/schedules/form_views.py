"""The form of a schedule, with a live preview."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.contrib import messages
from django.db import transaction
from django.db.models import F, Max
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.windows import DAYS, zone_names
from webapp.hosts.models import HostGroup, Target
from webapp.plans.models import PlanVersion
from webapp.runs.models import Priority
from webapp.schedules.models import AtDeadline, Condition, GroupOrder, Overlap, Schedule, Trigger
from webapp.schedules.selectors import group_targets, locked_present, schedules_list
from webapp.schedules.services import change_schedule, create_schedule
from webapp.screens.access import operator_action, own_action, page, person
from webapp.screens.plans.library import version_or_404
from webapp.screens.plans.previewing import PlanAnswer, PlanProblem
from webapp.screens.schedules.form import (
    PLACES_OF_TRIGGER,
    Checked,
    ScheduleForm,
    base_of,
    check,
    other_schedules,
    place_of,
    runs_to_follow,
    schedulable_targets,
    values_of,
    values_of_new,
)
from webapp.screens.schedules.views import ShownDue, next_dues
from webapp.screens.schedules.words import Rule, RunCost, rules, run_cost, too_often, when_in_words

# The live preview of a schedule.


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


SEVERAL = ("target", "window_days")  # fields with several values
PRESETS = (
    ("Every hour", "0 * * * *"),
    ("Every night at 22:00", "0 22 * * *"),
    ("Weekdays at 22:00", "0 22 * * 1-5"),
    ("Every Saturday at 06:00", "0 6 * * 6"),
    ("First of the month at 06:00", "0 6 1 * *"),
)


def new_schedule(request: HttpRequest) -> HttpResponseBase:
    return save_new_schedule(request) if request.method == "POST" else show_new_schedule(request)


def edit_schedule(request: HttpRequest, pk: int) -> HttpResponseBase:
    return save_edited_schedule(request, pk) if request.method == "POST" else show_edited_schedule(request, pk)


@page
def show_new_schedule(request: HttpRequest) -> HttpResponse:
    values = values_of_new(timezone.get_current_timezone_name(), timezone.now())
    if slug := request.GET.get("plan", ""):
        version = version_or_404(slug, request.GET.get("version", ""))
        values |= {"version": version.pk, "name": version.plan.title}
    wanted = set(request.GET.getlist("target"))
    values["target"] = [str(target.pk) for target in schedulable_targets(None) if str(target) in wanted]
    return _shown(request, values, None)


@page
def show_edited_schedule(request: HttpRequest, pk: int) -> HttpResponse:
    """`?version=5` chooses that version of its plan."""
    schedule = _editable(pk)
    values = values_of(schedule)
    if number := request.GET.get("version", ""):
        values["version"] = version_or_404(schedule.version.plan.slug, number).pk
    return _shown(request, values, schedule)


def _editable(pk: int) -> Schedule:
    return get_object_or_404(schedules_list(), pk=pk)


def _shown(request: HttpRequest, values: dict[str, Any], schedule: Schedule | None) -> HttpResponse:
    """The first display of the form, which does not report missing values."""
    checked = _checked(request, _as_typed(values), schedule)
    return _page(request, checked, values, schedule, problems={})


def _as_typed(values: dict[str, Any]) -> QueryDict:
    """The values as a form would send them."""
    data = QueryDict(mutable=True)
    for name, value in values.items():
        if isinstance(value, list):
            data.setlist(name, [str(item) for item in value])
        elif value is True:
            data[name] = "on"
        elif value is not None and value is not False:
            data[name] = str(value)
    return data


def _checked(request: HttpRequest, data: QueryDict, schedule: Schedule | None) -> Checked:
    form = ScheduleForm(data, schedule=schedule)
    return check(form, schedule, by=person(request), now=timezone.now())


@operator_action
def save_new_schedule(request: HttpRequest) -> HttpResponse:
    checked = _checked(request, request.POST, None)
    if checked.problems or "do" in request.POST:
        return _page(request, checked, _typed(request.POST), None, problems=checked.problems)
    try:
        schedule = create_schedule(spec=checked.spec, by=person(request))
    except Refusal as refusal:
        return _refused(request, checked, None, refusal)
    if schedule.enabled:
        messages.success(request, f"The schedule “{schedule}” is saved and switched on.")
    else:
        message = (
            f"The schedule “{schedule}” is saved, but switched off: it overwrites drives. Arm it, then switch it on."
        )
        messages.warning(request, message)
    return redirect("schedule", pk=schedule.pk)


@operator_action
def save_edited_schedule(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _editable(pk)
    checked = _checked(request, request.POST, schedule)
    if checked.problems or "do" in request.POST:
        return _page(request, checked, _typed(request.POST), schedule, problems=checked.problems)
    try:
        saved = _change(request, schedule, checked)
    except Refusal as refusal:
        return _refused(request, checked, schedule, refusal)
    if schedule.enabled and not saved.enabled:
        messages.warning(request, f"The schedule “{saved}” is saved. It is now switched off: {saved.off_reason}")
    else:
        messages.success(request, f"The schedule “{saved}” is saved.")
    return redirect("schedule", pk=pk)


@transaction.atomic
def _change(request: HttpRequest, schedule: Schedule, checked: Checked) -> Schedule:
    """Raises Refusal schedule_changed if another person saved the schedule after this form was opened."""
    if request.POST.get("base", "") not in ("", base_of(locked_present(schedule))):
        raise Refusal(
            "schedule_changed",
            "Nothing was saved: another person changed this schedule after you opened this form. Look at the schedule "
            "in a second window. To replace those changes with what this form shows, save again.",
        )
    return change_schedule(schedule=schedule, spec=checked.spec, by=person(request))


def _refused(request: HttpRequest, checked: Checked, schedule: Schedule | None, refusal: Refusal) -> HttpResponse:
    """Something changed between the check and the saving."""
    place = place_of(refusal, checked.spec)
    again = refusal.code == "schedule_changed"
    return _page(request, checked, _typed(request.POST), schedule, problems={place: refusal.message}, new_base=again)


def _typed(data: QueryDict) -> dict[str, Any]:
    """The sent input, to be shown again unchanged."""
    return {name: data.getlist(name) if name in SEVERAL else data.get(name) for name in ScheduleForm.base_fields}


@own_action
def preview_schedule(request: HttpRequest) -> HttpResponse:
    """JSON: the problems by field, and the preview as HTML. Changes nothing."""
    key = request.POST.get("schedule", "")
    schedule = _editable(int(key)) if key.isdecimal() and len(key) < 10 else None
    checked = _checked(request, request.POST, schedule)
    shown = shown_preview(checked, timezone.now())
    # msgspec needs plain str; a SafeString plus a str is a plain str
    html = render_to_string("screens/parts/schedule_preview.html", {"shown": shown}, request) + ""
    problems = tuple(PlanProblem(place=place, message=message) for place, message in checked.problems.items())
    sentence = shown.when or "The trigger cannot be read yet."
    answer = PlanAnswer(problems=problems, warnings=(), html=html, said=sentence)
    return HttpResponse(msgspec.json.encode(answer), content_type="application/json")


def _page(
    request: HttpRequest,
    checked: Checked,
    values: dict[str, Any],
    schedule: Schedule | None,
    *,
    problems: dict[str, str],
    new_base: bool = False,
) -> HttpResponse:
    """`new_base`: the next save replaces another person's changes."""
    values = _as_text(values)
    plan_is_fixed = schedule is not None or "plan" in request.GET
    context = {
        "schedule": schedule,
        "base": _base(request, schedule, new=new_base),
        "unsaved": request.method == "POST",
        "values": values,
        "problems": problems,
        "problem": problems.get("", ""),
        "shown": shown_preview(checked, timezone.now()),
        "plan_is_fixed": plan_is_fixed,
        "versions": _versions_of_plan(values["version"], schedule) if plan_is_fixed else _newest_versions(),
        "targets": schedulable_targets(schedule),
        "groups": HostGroup.objects.all(),
        "group_orders": GroupOrder.choices,
        "triggers": Trigger.choices,
        "presets": PRESETS,
        "schedules": other_schedules(schedule),
        "runs": runs_to_follow(schedule),
        "conditions": Condition.choices,
        "zones": sorted(zone_names()),
        "days": [(str(number), name) for number, name in enumerate(DAYS)],
        "units": _units(values),
        "at_deadlines": AtDeadline.choices,
        "overlaps": Overlap.choices,
        "priorities": [(str(value), text) for value, text in Priority.choices],
    }
    refused = bool(problems) and "do" not in request.POST
    return render(request, "screens/schedule_form.html", context, status=422 if refused else 200)


def _base(request: HttpRequest, schedule: Schedule | None, *, new: bool) -> str:
    if schedule is None:
        return ""
    if request.method == "POST" and not new:
        return request.POST.get("base", "")
    return base_of(Schedule.objects.get(pk=schedule.pk))


def _as_text(values: dict[str, Any]) -> dict[str, Any]:
    """Each field in the form that the template compares: a text, or a list of texts; "" for nothing."""
    texts: dict[str, Any] = {}
    for name in ScheduleForm.base_fields:
        value = values.get(name)
        if name in SEVERAL:
            texts[name] = [str(item) for item in value or ()]
        else:
            texts[name] = "" if value is None or value is False else str(value)
    return texts


def _units(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Seconds are offered only if they are set."""
    in_seconds = "s" in (values["start_unit"], values["deadline_unit"])
    return [("min", "minutes"), ("h", "hours"), *([("s", "seconds")] if in_seconds else [])]


def _versions_of_plan(key: str, schedule: Schedule | None) -> list[PlanVersion]:
    """The schedule's current version, the chosen one and the newest one of its plan."""
    known = PlanVersion.objects.select_related("plan")
    chosen = known.filter(pk=int(key)).first() if key.isdecimal() and len(key) < 18 else None
    has = schedule.version if schedule else chosen
    newest = known.filter(plan=has.plan_id).order_by("-number").first() if has else None
    versions = {
        version.pk: version for version in (has, chosen, newest) if version and has and version.plan_id == has.plan_id
    }
    return list(versions.values())


def _newest_versions() -> list[PlanVersion]:
    """The newest version of every plan."""
    versions = PlanVersion.objects.select_related("plan").filter(plan__deleted_at=None)
    newest = versions.annotate(newest=Max("plan__versions__number")).filter(number=F("newest"))
    return list(newest.order_by("plan__title"))
