"""Actions on a schedule: POST requests that redirect to its page."""

from collections.abc import Callable
from datetime import date, datetime
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.schedules import arming
from webapp.schedules.arming import arm_schedule, disarm_schedule
from webapp.schedules.models import Occurrence, Schedule
from webapp.schedules.services import (
    delete_schedule,
    make_due,
    restore_schedule,
    skip_occurrence,
    switch_off,
    switch_on,
)
from webapp.screens.access import operator_action, person
from webapp.screens.schedules.views import TypedArming, end_of_day, shown_schedule
from webapp.screens.undo import with_undo


def _schedule(pk: int) -> Schedule:
    return get_object_or_404(Schedule, pk=pk, deleted_at=None)


def _done(
    request: HttpRequest, schedule: Schedule, change: Callable[[User], None], said: str | SafeString
) -> HttpResponse:
    """Make the change and show a message, or show the refusal."""
    try:
        change(person(request))
    except Refusal as refusal:
        messages.error(request, f"Nothing was changed: {refusal}")
    else:
        messages.success(request, said)
    if request.POST.get("back") == "list":
        return redirect("schedules")
    return redirect("schedule", pk=schedule.pk)


@operator_action
def turn_on(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    if schedule.enabled:
        messages.info(request, f"“{schedule}” is already switched on.")
        return redirect("schedule", pk=pk)
    said = f"“{schedule}” is switched on."
    return _done(request, schedule, lambda by: switch_on(schedule=schedule, by=by), said)


@operator_action
def turn_off(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    if not schedule.enabled:
        messages.info(request, f"“{schedule}” is already switched off.")
        return redirect("schedule", pk=pk)
    said = f"“{schedule}” is switched off. A run that has started goes on."
    return _done(request, schedule, lambda by: switch_off(schedule=schedule, by=by), said)


@operator_action
def run_now(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule(pk)
    said = "The run starts within a few seconds. If it cannot start, the Runs table shows why."
    return _done(request, schedule, lambda by: make_due(schedule=schedule, by=by), said)


@operator_action
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = get_object_or_404(Schedule, pk=pk)
    words = f"“{schedule}” is deleted. Its runs stay."
    given = [("enabled", "1")] if schedule.enabled else []
    said = with_undo(request, words, reverse("restore_schedule", args=[pk]), given=given)
    return _done(request, schedule, lambda by: delete_schedule(schedule=schedule, by=by), said)


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
    said = f"You are now the owner of “{schedule}”: its runs start in your name.{ended}"
    return _done(request, schedule, lambda by: arming.take_over(schedule=schedule, by=by), said)


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
    said = f"“{schedule}” is disarmed. A run that has started keeps its arming: disarm that run itself."
    return _done(request, schedule, lambda by: disarm_schedule(schedule=schedule, by=by), said)


@operator_action
def skip(request: HttpRequest, pk: int, occurrence: UUID) -> HttpResponse:
    found = get_object_or_404(Occurrence.objects.select_related("schedule"), pk=occurrence, schedule=pk)
    return _done(
        request, found.schedule, lambda by: skip_occurrence(occurrence=found, by=by), "The occurrence was skipped."
    )
