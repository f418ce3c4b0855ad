"""Adds a host: the enrolment command, and the wait for its worker."""

import msgspec
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from webapp.core.errors import Refusal
from webapp.core.tokens import hash_token
from webapp.hosts.installer import install_line
from webapp.hosts.keys import signing_key
from webapp.hosts.models import EnrolmentToken, Host
from webapp.hosts.selectors import checked_name, enrolment_called, open_enrolments
from webapp.hosts.services import issue_enrolment_token, withdraw_enrolment_token
from webapp.hosts.wheelhouse import COMMAND, built_wheelhouse
from webapp.screens import one_time_secrets
from webapp.screens.access import admin_action, admin_page, page, person
from webapp.screens.hosts.presence import host_or_404
from webapp.screens.hosts.worker_log import Enrolment

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
    made, token = _called(reference), one_time_secrets.take(request, f"enrolment {reference}")
    again = made.host if made.used_at is None else None
    key_id, _ = signing_key()
    context = {
        "slug": again.slug if again else made.host_slug,
        "again": again,
        "line": install_line(token=token, key=key_id, again=again is not None) if token else "",
        "fingerprint": key_id,
        "build_command": "" if built_wheelhouse() else COMMAND,
        "minutes": settings.ENROLMENT_SECONDS // 60,
        "made": made,
        "enrolments": list(open_enrolments()),
    }
    return one_time_secrets.render_once(request, "screens/add_host.html", context)


def _called(reference: str) -> EnrolmentToken:
    found = enrolment_called(reference)
    if found is None:
        raise Http404("There is no such enrolment command.")
    return found


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
