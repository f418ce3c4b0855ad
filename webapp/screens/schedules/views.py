"""Schedules: the list, one schedule with its due times, arming and runs, and the actions on it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, islice, takewhile
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.runs.models import Run
from webapp.schedules import arming
from webapp.schedules.arming import MAX_ARMING, arm_schedule, disarm_schedule, drives_to_be_armed, unarmed
from webapp.schedules.models import GroupOrder, Occurrence, Schedule, ScheduleState, Trigger
from webapp.schedules.reasons import NOT_ARMED
from webapp.schedules.selectors import (
    all_targets,
    is_finished,
    last_occurrences,
    occurrences_list,
    schedules_list,
    state_of,
)
from webapp.schedules.services import (
    delete_schedule,
    make_due,
    pause_schedule,
    restore_schedule,
    resume_schedule,
    skip_next,
    skip_occurrence,
    switch_off,
    switch_on,
)
from webapp.schedules.timing import due_after, opens_in_time, start_within, window_of
from webapp.screens.access import operator_action, page, person
from webapp.screens.arming import DriveToArm, drives_to_arm
from webapp.screens.outcome import Outcome, outcomes
from webapp.screens.schedules.trend import trend
from webapp.screens.schedules.words import (
    heading,
    on_in_words,
    rules,
    run_cost,
    sentence,
    too_often,
    when_in_words,
    window_in_words,
)
from webapp.screens.undo import with_undo

# Schedules: the list, and one schedule with its due times and runs.

# The arming of a schedule, for its page.

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


# The next due times of a schedule, and the effect of its window on each.


@dataclass(frozen=True)
class ShownDue:
    """`there` is the time in the schedule's zone; `opens` is the opening of the window if it is closed at that time."""

    at: datetime
    there: str
    opens: datetime | None
    missed: bool  # the window opens after the latest start


def next_dues(schedule: Schedule, after: datetime, count: int = 5) -> list[ShownDue]:
    return shown_dues(schedule, islice(due_after(schedule, after), count))


def shown_dues(schedule: Schedule, times: Iterable[datetime]) -> list[ShownDue]:
    zone, window = ZoneInfo(schedule.time_zone), window_of(schedule)
    dues = []
    for at in times:
        there = f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}"
        span = window.next_span(at) if window and window.span_at(at) is None else None
        missed = window is not None and not opens_in_time(window, at, start_within(schedule))
        dues.append(ShownDue(at, there, span.opens if span else None, missed))
    return dues


# Occurrences for pages, with the outcome of their run.


@dataclass(frozen=True)
class Happened:
    """`outcome` is None until the run has ended."""

    occurrence: Occurrence
    run: Run | None
    outcome: Outcome | None


def happened(occurrences: Iterable[Occurrence]) -> list[Happened]:
    listed = list(occurrences)
    ended = [occurrence.run for occurrence in listed if occurrence.run and occurrence.run.ended_at]
    known = dict(zip((run.pk for run in ended), outcomes(ended), strict=True))
    return [
        Happened(occurrence, occurrence.run, known.get(occurrence.run.pk) if occurrence.run else None)
        for occurrence in listed
    ]


PER_PAGE = 50
RUNS_PER_PAGE = 25
SHOWS = (("", "All"), ("on", "Switched on"), ("off", "Switched off"), ("finished", "Finished"), ("mine", "Mine"))


@dataclass(frozen=True)
class Row:
    schedule: Schedule
    on: str
    when: str
    window: str
    last: list[Happened]  # of its latest due time; several for a group of hosts
    state: ScheduleState
    why_off: str  # "" if it is on or a person switched it off


@page
def schedules_page(request: HttpRequest) -> HttpResponse:
    show = request.GET.get("show", "")
    matching = _filtered(schedules_list(deleted=True), show, request)
    shown = Paginator(matching, PER_PAGE).get_page(request.GET.get("page"))
    schedules = list(shown)
    last: dict[int, list[Happened]] = defaultdict(list)
    for outcome in happened(chain.from_iterable(last_occurrences(schedules).values())):
        last[outcome.occurrence.schedule_id].append(outcome)
    context = {
        **heading(timezone.now()),
        "pages": shown,
        "rows": [_row(schedule, last[schedule.pk]) for schedule in schedules],
        "show": show,
        "shows": SHOWS,
        "any": bool(schedules) or Schedule.objects.filter(deleted_at=None).exists(),
        "deleted": Schedule.objects.exclude(deleted_at=None).count(),
    }
    return render(request, "screens/schedules.html", context)


def _filtered(schedules: QuerySet[Schedule], show: str, request: HttpRequest) -> QuerySet[Schedule]:
    if show == "deleted":
        return schedules.exclude(deleted_at=None)
    schedules = schedules.filter(deleted_at=None)
    match show:
        case "on":
            return schedules.filter(~is_finished(), enabled=True)
        case "off":
            return schedules.filter(enabled=False)
        case "finished":
            return schedules.filter(is_finished())
        case "mine":
            return schedules.filter(owner=person(request))
    return schedules


def _row(schedule: Schedule, last: list[Happened]) -> Row:
    why_off = "" if schedule.enabled or schedule.deleted_at else schedule.off_reason
    if why_off and schedule.off_code == NOT_ARMED and schedule.armed_until and schedule.armed_until > timezone.now():
        why_off = "Armed, and not switched on yet."
    return Row(
        schedule, on_in_words(schedule), when_in_words(schedule), window_in_words(schedule), last,
        state_of(schedule), why_off,
    )  # fmt: skip


@page
def schedule_page(request: HttpRequest, pk: int) -> HttpResponse:
    return shown_schedule(request, pk)


def shown_schedule(request: HttpRequest, pk: int, typed: TypedArming = NOT_TYPED) -> HttpResponse:
    """`typed`: a refused form of its arming."""
    schedule = get_object_or_404(schedules_list(deleted=True), pk=pk)
    now = timezone.now()
    on, targets = on_in_words(schedule), all_targets(schedule)
    shown = Paginator(occurrences_list().filter(schedule=schedule), RUNS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "schedule": schedule,
        "state": state_of(schedule),
        "sentence": sentence(schedule, on),
        "targets": targets,
        "rules": rules(schedule),
        "dues": _next(schedule) if schedule.enabled else [],
        "has_dates": schedule.trigger in (Trigger.CRON, Trigger.ONCE),
        "zone": "" if schedule.time_zone == timezone.get_current_timezone_name() else schedule.time_zone,
        "card": arming_card(schedule, now, typed),
        "newest": _newer_version(schedule),
        **_cost(schedule, targets, now),
        "pages": shown,
        "happened": happened(shown),
        "trend": trend(schedule),
        "followers": schedule.followers.filter(deleted_at=None),
        "own": schedule.owner_id == person(request).pk,
        "paused": schedule.paused_until is not None and schedule.paused_until > now,
        "can_pause": schedule.enabled and schedule.trigger == Trigger.CRON and person(request).is_operator,
        "tomorrow": (now.astimezone(ZoneInfo(schedule.time_zone)) + timedelta(days=1)).date(),
    }
    refused = typed is not NOT_TYPED
    return render(request, "screens/schedule.html", context, status=422 if refused else 200)


def _newer_version(schedule: Schedule) -> int | None:
    """The newest version of its plan, if the schedule uses an older one."""
    newest = schedule.version.plan.versions.aggregate(newest=Max("number"))["newest"]
    return newest if newest != schedule.version.number else None


def _cost(schedule: Schedule, targets: list[Target], now: datetime) -> dict[str, object]:
    order = GroupOrder(schedule.group_order) if schedule.run_for_each_host else None
    cost = run_cost(schedule.version, targets, order)
    return {"cost": cost, "warning": too_often(schedule, cost, now) if cost else ""}


def _next(schedule: Schedule) -> list[ShownDue]:
    """Five; the first is the one that the scheduler waits for, which may just have passed."""
    if schedule.next_due_at is None:
        return []
    return [*shown_dues(schedule, [schedule.next_due_at]), *next_dues(schedule, schedule.next_due_at, 4)]


def _schedule(pk: int) -> Schedule:
    return get_object_or_404(Schedule, pk=pk, deleted_at=None)


def _done(
    request: HttpRequest, schedule: Schedule, change: Callable[[User], None], message: str | SafeString
) -> HttpResponse:
    """Make the change and show a message, or show the refusal."""
    try:
        change(person(request))
    except Refusal as refusal:
        messages.error(request, f"Nothing was changed: {refusal}")
    else:
        messages.success(request, message)
    if request.POST.get("back") == "list":
        return redirect("schedules")
    return redirect("schedule", pk=schedule.pk)


@operator_action
def turn_on(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    if schedule.enabled:
        messages.info(request, f"“{schedule}” is already switched on.")
        return redirect("schedule", pk=pk)
    message = f"“{schedule}” is switched on."
    return _done(request, schedule, lambda by: switch_on(schedule=schedule, by=by), message)


@operator_action
def turn_off(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    if not schedule.enabled:
        messages.info(request, f"“{schedule}” is already switched off.")
        return redirect("schedule", pk=pk)
    message = f"“{schedule}” is switched off. A run that has started goes on."
    return _done(request, schedule, lambda by: switch_off(schedule=schedule, by=by), message)


@operator_action
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Until the beginning of the day that was chosen, in the schedule's time zone."""
    schedule, day = _schedule(pk), request.POST.get("until", "")
    message = f"“{schedule}” is paused. Its next due time is on {day} or later ({schedule.time_zone})."
    return _done(
        request, schedule, lambda by: pause_schedule(schedule=schedule, until=_start_of(day, schedule), by=by), message
    )


def _start_of(day: str, schedule: Schedule) -> datetime:
    """Raises Refusal pause_refused."""
    try:
        return datetime.combine(date.fromisoformat(day), time.min, ZoneInfo(schedule.time_zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Refusal("pause_refused", "Choose the day on which it may run again.") from error


@operator_action
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    return _done(
        request, schedule, lambda by: resume_schedule(schedule=schedule, by=by), f"“{schedule}” is not paused."
    )


@operator_action
def skip_next_due(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    message = f"“{schedule}” skips its next due time."
    return _done(request, schedule, lambda by: skip_next(schedule=schedule, by=by), message)


@operator_action
def run_now(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    message = "The run starts within a few seconds. If it cannot start, the Runs table shows why."
    return _done(request, schedule, lambda by: make_due(schedule=schedule, by=by), message)


@operator_action
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = get_object_or_404(Schedule, pk=pk)
    words = f"“{schedule}” is deleted. Its runs stay."
    given = [("enabled", "1")] if schedule.enabled else []
    message = with_undo(request, words, reverse("restore_schedule", args=[pk]), given=given)
    return _done(request, schedule, lambda by: delete_schedule(schedule=schedule, by=by), message)


@operator_action
def restore(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = get_object_or_404(Schedule, pk=pk)
    if schedule.deleted_at is None:
        messages.info(request, f"“{schedule}” is not deleted.")
        return redirect("schedule", pk=pk)
    try:
        restore_schedule(schedule=schedule, by=person(request))
        messages.success(request, _restored(request, schedule))
    except Refusal as refusal:
        messages.error(request, f"Nothing was changed: {refusal}")
    return redirect("schedule", pk=pk)


def _restored(request: HttpRequest, schedule: Schedule) -> str:
    """Undo (`enabled`) also switches on a schedule that was on before its deletion."""
    if request.POST.get("enabled") != "1":
        return f"“{schedule}” was restored. It is switched off."
    try:
        switch_on(schedule=schedule, by=person(request))
    except Refusal as refusal:
        return f"“{schedule}” was restored. It is switched off: {refusal}"
    return f"“{schedule}” was restored and is switched on."


@operator_action
def take_over(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    if schedule.owner_id == person(request).pk:
        messages.info(request, f"You own “{schedule}” already.")
        return redirect("schedule", pk=pk)
    ended = " Its arming has ended." if schedule.armed_until else ""
    message = f"You are now the owner of “{schedule}”: its runs start in your name.{ended}"
    return _done(request, schedule, lambda by: arming.take_over(schedule=schedule, by=by), message)


@operator_action
def arm(request: HttpRequest, pk: int) -> HttpResponse:
    """Until the end of the day that was chosen, in the schedule's time zone."""
    schedule = _schedule(pk)
    serials, day = [text.strip() for text in request.POST.getlist("serial")], request.POST.get("until", "")
    try:
        until = _end_of(day, schedule)
        arm_schedule(schedule=schedule, serials=serials, until=until, by=person(request))
    except Refusal as refusal:
        messages.error(request, f"Nothing was changed: {refusal}")
        about_day = refusal.message if refusal.code == "arming_refused" else ""
        return shown_schedule(request, pk, TypedArming(serials, day, about_day))
    off = "" if schedule.enabled else " The schedule is still switched off: switch it on."
    messages.success(request, f"“{schedule}” is armed until the end of {day} ({schedule.time_zone}).{off}")
    return redirect("schedule", pk=pk)


def _end_of(day: str, schedule: Schedule) -> datetime:
    """Raises Refusal arming_refused."""
    try:
        return end_of_day(date.fromisoformat(day), schedule.time_zone)
    except (ValueError, OverflowError) as error:
        raise Refusal("arming_refused", "This date cannot be used: choose the last day of the arming.") from error


@operator_action
def disarm(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    if schedule.armed_until is None:
        messages.info(request, f"“{schedule}” was not armed.")
        return redirect("schedule", pk=pk)
    message = f"“{schedule}” is disarmed. A run that has started keeps its arming: disarm that run itself."
    return _done(request, schedule, lambda by: disarm_schedule(schedule=schedule, by=by), message)


@operator_action
def skip(request: HttpRequest, pk: int, occurrence: UUID) -> HttpResponse:
    waiting = get_object_or_404(Occurrence.objects.select_related("schedule"), pk=occurrence, schedule=pk)
    return _done(
        request, waiting.schedule, lambda by: skip_occurrence(occurrence=waiting, by=by), "The occurrence was skipped."
    )
