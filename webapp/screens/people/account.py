"""The person's own account: password, e-mail address, tokens, theme; and the first password by a link."""

import math
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy

from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, User
from webapp.core.selectors import tokens_of
from webapp.core.services import create_api_token, set_email, set_password
from webapp.core.throttle import count_own_try, forgive_own_tries, password_slot
from webapp.screens import one_time_secrets
from webapp.screens.access import own_action, page, person
from webapp.screens.people.forms import EmailForm, FirstPasswordForm, OwnPasswordForm, TokenForm
from webapp.screens.people.login import BUSY
from webapp.screens.people.views import revoke


@page
def account_page(request: HttpRequest) -> HttpResponse:
    return _account(request)


def _account(request: HttpRequest, status: int = 200, **forms: object) -> HttpResponse:
    me = person(request)
    context = {
        "tokens": tokens_of(me),
        "password_form": OwnPasswordForm(me),
        "email_form": EmailForm(initial={"email": me.email}),
        "token_form": TokenForm(),
        **forms,
    }
    return render(request, "screens/account.html", context, status=status)


@own_action
def change_password(request: HttpRequest) -> HttpResponse:
    """Change the password. The person's other sessions and all API tokens end; this session stays."""
    me = person(request)
    form = OwnPasswordForm(me, request.POST)
    with password_slot() as free:
        wait = count_own_try(name=me.username) if free else BUSY
        if wait:
            messages.error(request, f"Too many attempts. Try again in {math.ceil(wait.total_seconds())} s.")
            return _account(request, 429)
        if not form.is_valid():
            return _account(request, 422, password_form=form)
    forgive_own_tries(name=me.username)
    set_password(user=me, password=form.cleaned_data["new_password1"], by=me)
    update_session_auth_hash(request, me)
    messages.success(request, "Your password is changed. Your other sessions and your API tokens have ended.")
    return redirect("account")


@own_action
def change_email(request: HttpRequest) -> HttpResponse:
    form = EmailForm(request.POST)
    if form.is_valid():
        try:
            set_email(user=person(request), email=form.cleaned_data["email"])
        except Refusal as refusal:
            form.add_error("email", refusal.message)
        else:
            messages.success(request, "Your e-mail address is saved.")
            return redirect("account")
    return _account(request, 422, email_form=form)


@own_action
def create_token(request: HttpRequest) -> HttpResponse:
    """Create a token; the next page shows it once."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _account(request, 422, token_form=form)
    try:
        plain = create_api_token(user=person(request), name=form.cleaned_data["name"])
    except Refusal as refusal:
        form.add_error("name", refusal.message)
        return _account(request, 422, token_form=form)
    one_time_secrets.keep(request, "token", plain)
    return redirect("new_token")


@page
def new_token(request: HttpRequest) -> HttpResponse:
    context = {
        "token": one_time_secrets.take(request, "token"),
        "api": request.build_absolute_uri("/api/v1/runs"),
        "index": request.build_absolute_uri("/simple/"),
        "server": request.build_absolute_uri("/").rstrip("/"),
    }
    return one_time_secrets.render_once(request, "screens/new_token.html", context)


@own_action
def revoke_token(request: HttpRequest, token: UUID) -> HttpResponse:
    revoke(request, get_object_or_404(ApiToken, pk=token, user=person(request)))
    return redirect("account")


class SetPasswordView(PasswordResetConfirmView):
    """Set the first password by an admin's link. Django moves the link's secret from the address into the session."""

    form_class = FirstPasswordForm
    template_name = "registration/set_password.html"
    success_url = reverse_lazy("login")
    token_generator = default_token_generator
    user: User | None

    def get_user(self, uidb64: str) -> User | None:
        """The link's person, unless the account is disabled."""
        found = super().get_user(uidb64)
        return found if isinstance(found, User) and found.is_active else None

    def form_valid(self, form: Any) -> HttpResponse:
        assert self.user is not None  # without a valid link there is no form
        set_password(user=self.user, password=form.cleaned_data["new_password1"], by=self.user)
        self.request.session.pop(INTERNAL_RESET_SESSION_TOKEN, None)
        messages.success(self.request, "Your password is set. Log in with it.")
        return redirect(self.success_url)
