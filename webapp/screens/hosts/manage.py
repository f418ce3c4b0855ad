"""The page with all actions on a host, its maintenance windows, and adding a host with its enrolment command."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time

import msgspec
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.tokens import hash_token
from webapp.core.windows import DAYS, Span, time_zone
from webapp.hosts.credentials import request_rotation
from webapp.hosts.installer import install_line
from webapp.hosts.keys import signing_key
from webapp.hosts.maintenance_windows import (
    add_single_window,
    add_weekly_window,
    delete_window,
    in_words,
    next_span,
    open_window,
    span_at,
    weekly,
)
from webapp.hosts.models import EnrolmentToken, Host, MaintenanceWindow
from webapp.hosts.selectors import checked_name, enrolment_called, open_enrolments
from webapp.hosts.services import (
    begin_maintenance,
    bring_back,
    end_maintenance,
    issue_enrolment_token,
    remove_host,
    rename_host,
    revoke_host,
    withdraw_enrolment_token,
)
from webapp.hosts.wheelhouse import COMMAND, built_wheelhouse
from webapp.runs.actions.host_actions import inventory_now
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run, Trial
from webapp.runs.tasks import tidy_runs
from webapp.screens import one_time_secrets
from webapp.screens.access import admin_action, admin_page, operator_action, page, person
from webapp.screens.hosts.presence import host_or_404, presence
from webapp.screens.hosts.views import Enrolment, active_attempt
from webapp.screens.undo import with_undo

# Adds a host: the enrolment command, and the wait for its worker.

# The form to add a host.


class AddHostForm(forms.Form):
    slug = forms.CharField(
        label="Short name",
        max_length=63,
        required=False,
        help_text="Lowercase letters, digits and hyphens, e.g. storage1. If empty, the hostname is used.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"].strip()
        try:
            return checked_name(slug) if slug else ""
        except Refusal as refusal:
            raise forms.ValidationError(refusal.message) from refusal


@never_cache
@page
def add_host(request: HttpRequest) -> HttpResponse:
    return _form(request, AddHostForm())


def _form(request: HttpRequest, form: AddHostForm) -> HttpResponse:
    context = {"form": form, "enrolments": list(open_enrolments())}
    return render(request, "screens/add_host.html", context, status=422 if form.errors else 200)


@admin_action
def make_enrolment(request: HttpRequest) -> HttpResponse:
    """Create an enrolment command; the next page shows it once, with its token."""
    again = request.POST.get("again", "")
    if again:
        return _line_made(request, host=host_or_404(again))
    form = AddHostForm(request.POST)
    if not form.is_valid():
        return _form(request, form)
    return _line_made(request, slug=form.cleaned_data["slug"])


def _line_made(request: HttpRequest, *, slug: str = "", host: Host | None = None) -> HttpResponse:
    token = issue_enrolment_token(by=person(request), slug=slug, host=host)
    reference = EnrolmentToken.objects.get(token_hash=hash_token(token)).reference
    one_time_secrets.keep(request, f"enrolment {reference}", token)
    return redirect("new_host_line", reference=reference)


@admin_page
def new_host_line(request: HttpRequest, reference: str) -> HttpResponse:
    enrolment, token = _called(reference), one_time_secrets.take(request, f"enrolment {reference}")
    again = enrolment.host if enrolment.used_at is None else None
    key_id, _ = signing_key()
    context = {
        "slug": again.slug if again else enrolment.host_slug,
        "again": again,
        "line": install_line(token=token, key=key_id, again=again is not None) if token else "",
        "fingerprint": key_id,
        "build_command": "" if built_wheelhouse() else COMMAND,
        "minutes": settings.ENROLMENT_SECONDS // 60,
        "made": enrolment,
        "enrolments": list(open_enrolments()),
    }
    return one_time_secrets.render_once(request, "screens/add_host.html", context)


def _called(reference: str) -> EnrolmentToken:
    token = enrolment_called(reference)
    if token is None:
        raise Http404("There is no such enrolment command.")
    return token


@admin_action
def withdraw(request: HttpRequest, reference: str) -> HttpResponse:
    if withdraw_enrolment_token(invitation=_called(reference), by=person(request)):
        messages.success(request, "The enrolment command is revoked: its token is no longer valid.")
    else:
        messages.warning(request, "The enrolment command was already used or has expired. Nothing was changed.")
    return redirect("add_host")


@never_cache
@page
def enrolment_state(request: HttpRequest, reference: str) -> HttpResponse:  # noqa: ARG001 - every view has one
    """The state of an enrolment command, for the page that waits for it."""
    return HttpResponse(msgspec.json.encode(state_of(_called(reference))), content_type="application/json")


def state_of(token: EnrolmentToken) -> Enrolment:
    host = token.host if token.used_at else None
    heard = host is not None and host.last_seen_at is not None and bool(host.capabilities)
    left_s = max(0.0, (token.expires_at - timezone.now()).total_seconds())
    return Enrolment(
        state=("heard" if heard else "enrolled") if host else ("waiting" if left_s else "expired"),
        host=host.slug if host else "",
        url=reverse("host", args=[host.slug]) if host else "",
        seconds_left=0.0 if host else left_s,
    )


# The page with all actions on a host and their consequences.

# The maintenance windows of a host in words.


@dataclass(frozen=True)
class WindowRow:
    """A window that is not open and never opens again has ended."""

    window: MaintenanceWindow
    text: str
    open_now: Span | None
    next: Span | None


def window_rows(host: Host) -> list[WindowRow]:
    """One query."""
    now = timezone.now()
    return [WindowRow(w, in_words(w), span_at(w, now), next_span(w, now)) for w in host.maintenance_windows.all()]


@never_cache
@page
def manage_page(request: HttpRequest, slug: str) -> HttpResponse:
    host = host_or_404(slug)
    return redirect("host_manage", slug=host.slug) if host.slug != slug else show_manage_page(request, host)


def show_manage_page(request: HttpRequest, host: Host, *, action: str = "", problem: str = "") -> HttpResponse:
    """The page; a problem is shown at the field of the refused action."""
    active = active_attempt(host)
    open_runs = Run.objects.filter(state__in=OPEN_RUN_STATES, trials__host=host).distinct().order_by("number")
    context = {
        "host": host,
        "presence": presence(host, active, open_window(host.pk)),
        "windows": window_rows(host),
        "days": list(enumerate(DAYS)),
        "chosen_days": request.POST.getlist("day"),
        "active": active,
        "open_runs": list(open_runs),
        "trial_count": Trial.objects.filter(host=host).count(),
        "deletable": not Attempt.objects.filter(host=host).exists() and not Trial.objects.filter(host=host).exists(),
        "former_names": list(host.former_names.values_list("slug", flat=True)),
        "refused": action,
        "why_not": problem,
        "given": request.POST,
    }
    return render(request, "screens/host_manage.html", context, status=422 if problem else 200)


def _act(request: HttpRequest, slug: str, action: str, do: Callable[[Host, User], str]) -> HttpResponse:
    """Do the action and show a message on the host's page, or show the problem at its field."""
    host = host_or_404(slug)
    try:
        message = do(host, person(request))
    except Refusal as refusal:
        return show_manage_page(request, host, action=action, problem=refusal.message)
    messages.success(request, message)
    return redirect("host", slug=host.slug)


@operator_action
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        before = host.slug
        if not rename_host(host=host, slug=request.POST.get("slug", "").strip(), by=by):
            return f"The host is already called {before}. Nothing was changed."
        return f"{before} is now called {host.slug}. The old address leads here."

    return _act(request, slug, "rename", do)


@operator_action
def maintenance(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        begin_maintenance(host=host, note=request.POST.get("note", ""), by=by)
        return f"{host} is in maintenance: it gets no new trials until you end the maintenance."

    return _act(request, slug, "maintenance", do)


@operator_action
def maintenance_end(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        if not end_maintenance(host=host, by=by):
            return f"{host} was not in maintenance; nothing was changed."
        dispatch_host(host.pk)
        return f"{host} gets trials again."

    return _act(request, slug, "maintenance", do)


@operator_action
def inventory(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        inventory_now(host=host, by=by)
        return f"{host} takes an inventory. Changes appear in its history in a few seconds."

    return _act(request, slug, "inventory", do)


@admin_action
def rotate(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        if not request_rotation(host=host, by=by):
            return f"A new token was already requested; {host} fetches it after its next message."
        return (
            f"{host} fetches a new token after its next message; the old token stays valid until the new one is "
            "used. The broker password changes too."
        )

    return _act(request, slug, "rotate", do)


@admin_action
def revoke(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        if not revoke_host(host=host, by=by):
            return f"{host} was revoked before; nothing was changed."
        tidy_runs()
        return f"The token of {host} is revoked. “Enrol again” creates a new one."

    return _act(request, slug, "revoke", do)


@admin_action
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    host = host_or_404(slug)
    try:
        deleted = remove_host(host=host, typed=request.POST.get("typed", ""), by=person(request))
    except Refusal as refusal:
        return show_manage_page(request, host, action="remove", problem=refusal.message)
    if deleted:
        messages.success(request, f"{host.slug} is deleted: it had no results.")
        return redirect("hosts")
    tidy_runs()
    messages.success(
        request, f"{host.slug} is removed and its token is revoked. Its results stay; you can restore the host."
    )
    return redirect("host", slug=host.slug)


@admin_action
def bring_back_host(request: HttpRequest, slug: str) -> HttpResponse:
    def do(host: Host, by: User) -> str:
        if not bring_back(host=host, by=by):
            return f"{host} was not removed; nothing was changed."
        return f"{host} is restored. Its token stays revoked: enrol the host again to use it."

    return _act(request, slug, "remove", do)


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
