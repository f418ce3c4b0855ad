"""Adds and deletes maintenance windows on the page that manages a host."""

from collections.abc import Callable
from datetime import UTC, datetime, time

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.windows import time_zone
from webapp.hosts.maintenance_windows import (
    add_single_window,
    add_weekly_window,
    delete_window,
    in_words,
    weekly,
)
from webapp.hosts.models import Host, MaintenanceWindow
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.screens.access import operator_action, person
from webapp.screens.hosts.find import host_or_404
from webapp.screens.hosts.manage import show_manage_page
from webapp.screens.undo import with_undo


@operator_action
def add_weekly(request: HttpRequest, slug: str) -> HttpResponse:
    def add(host: Host, by: User) -> MaintenanceWindow:
        sent = request.POST
        return add_weekly_window(
            host=host, days=_days(sent), opens=_clock(sent, "opens"), closes=_clock(sent, "closes"),
            zone=sent.get("zone", "").strip(), note=sent.get("note", ""), by=by,
        )  # fmt: skip

    return _added(request, slug, "weekly", add)


@operator_action
def add_single(request: HttpRequest, slug: str) -> HttpResponse:
    def add(host: Host, by: User) -> MaintenanceWindow:
        sent = request.POST
        starts_at, ends_at = _moment(sent, "starts"), _moment(sent, "ends")
        return add_single_window(host=host, starts_at=starts_at, ends_at=ends_at, note=sent.get("note", ""), by=by)

    return _added(request, slug, "single", add)


def _added(request: HttpRequest, slug: str, form: str, add: Callable[[Host, User], MaintenanceWindow]) -> HttpResponse:
    """Add the window and return to the list, or show the problem at the form."""
    host = host_or_404(slug)
    try:
        window = add(host, person(request))
    except Refusal as refusal:
        return show_manage_page(request, host, action=form, problem=refusal.message)
    messages.success(request, f"The maintenance window was added: {in_words(window)}.")
    return _back(host)


@operator_action
def delete(request: HttpRequest, slug: str, window_id: int) -> HttpResponse:
    host = host_or_404(slug)
    window = host.maintenance_windows.filter(pk=window_id).first()
    if window is None:
        raise Http404(f"{host} has no maintenance window {window_id}.")
    delete_window(window=window, by=person(request))
    dispatch_host(host.pk)
    messages.success(request, _deleted(request, host, window))
    return _back(host)


def _deleted(request: HttpRequest, host: Host, window: MaintenanceWindow) -> str:
    """With a button that adds the window again, unless it has passed."""
    words = f"The maintenance window was deleted: {in_words(window)}."
    given = [("note", window.note)]
    if window.starts_at and window.ends_at:
        if window.ends_at <= timezone.now():
            return words
        name, zone = "host_window_single", "UTC"
        given += [("starts", _utc(window.starts_at)), ("ends", _utc(window.ends_at))]
    else:
        rule = weekly(window)
        name, zone = "host_window_weekly", window.time_zone
        given += [("opens", rule.opens.isoformat()), ("closes", rule.closes.isoformat())]
        given += [("day", str(day)) for day in rule.days]
    return with_undo(request, words, reverse(name, args=[host.slug]), given=[*given, ("zone", zone)])


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat()


def _back(host: Host) -> HttpResponse:
    return redirect(f"{reverse('host_manage', args=[host.slug])}#windows")


def _days(sent: QueryDict) -> list[int]:
    try:
        return [int(day) for day in sent.getlist("day")]
    except ValueError as error:
        raise Refusal("window_refused", "A day of the window is a number from 0 (Monday) to 6 (Sunday).") from error


def _clock(sent: QueryDict, name: str) -> time:
    try:
        return time.fromisoformat(sent.get(name, "")).replace(tzinfo=None)
    except ValueError as error:
        raise Refusal("window_refused", "Enter both times as hours and minutes, such as 22:00.") from error


def _moment(sent: QueryDict, name: str) -> datetime:
    """The time in the form's time zone."""
    zone = time_zone(sent.get("zone", "").strip())
    try:
        return datetime.fromisoformat(sent.get(name, "")).replace(tzinfo=zone)
    except ValueError as error:
        raise Refusal("window_refused", "Enter start and end as date and time, such as 2026-01-31 22:00.") from error
