"""The person's own account (password, e-mail address, tokens, theme), the log-in, and that by an identity provider."""

import hashlib
import logging
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import jwt
import requests
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, LoginView, PasswordResetConfirmView
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, User
from webapp.core.oidc import oidc_setting
from webapp.core.people import tokens_of
from webapp.core.services import create_api_token, set_email, set_password
from webapp.core.throttle import (
    PROVIDER_SLOTS,
    address_of,
    count_address_try,
    count_own_try,
    count_try,
    forgive_address_try,
    forgive_own_tries,
    forgive_try,
    password_slot,
)
from webapp.hosts.installer import authority
from webapp.screens import one_time_secrets
from webapp.screens.access import own_action, page, person
from webapp.screens.people.views import EmailForm, FirstPasswordForm, OwnPasswordForm, TokenForm, revoke

# The person's own account: password, e-mail address, tokens, theme; and the first password by a link.

# The log-in. Tries are counted before the password is checked.

BUSY = timedelta(seconds=5)  # until one of the other log-ins is over


class Login(LoginView):
    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(**context, has_provider=bool(settings.OIDC_ISSUER))

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        with password_slot() as free:
            if not free:
                return self.come_back(BUSY, busy=True)
            wait = count_try(name=self._name(), address=address_of(request))
            return self.come_back(wait) if wait else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        forgive_try(name=self._name(), address=address_of(self.request))
        self.request.session.set_expiry(None)  # a draft from before has a shorter one
        return super().form_valid(form)

    def _name(self) -> str:
        return self.request.POST.get("username", "")

    def come_back(self, wait: timedelta, *, busy: bool = False) -> HttpResponse:
        """The message is the same for unknown accounts and wrong passwords."""
        minutes = max(1, math.ceil(wait.total_seconds() / 60))
        context = self.get_context_data(form=self.get_form_class()(self.request), wait_minutes=minutes, busy=busy)
        response = self.render_to_response(context, status=503 if busy else 429)
        response.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return response


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
        plain = create_api_token(user=person(request), **form.cleaned_data)
    except Refusal as refusal:
        form.add_error("name", refusal.message)
        return _account(request, 422, token_form=form)
    one_time_secrets.keep(request, "token", plain)
    return redirect("new_token")


@page
def new_token(request: HttpRequest) -> HttpResponse:
    context = {
        "authority": request.build_absolute_uri("/ca.crt") if settings.AUTHORITY else "",
        "authority_sha256": hashlib.sha256(authority().encode()).hexdigest(),
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
        user = super().get_user(uidb64)
        return user if isinstance(user, User) and user.is_active else None

    def form_valid(self, form: Any) -> HttpResponse:
        assert self.user is not None  # without a valid link there is no form
        set_password(user=self.user, password=form.cleaned_data["new_password1"], by=self.user)
        self.request.session.pop(INTERNAL_RESET_SESSION_TOKEN, None)
        messages.success(self.request, "Your password is set. Log in with it.")
        return redirect(self.success_url)


logger = logging.getLogger(__name__)
UNFINISHED_SECONDS = 600  # how long a log-in at the provider may take


class ToProvider(OIDCAuthenticationRequestView):  # type: ignore[misc]  # the library has no types
    get_settings = staticmethod(oidc_setting)

    def __init__(self, **options: Any) -> None:
        """The library reads the provider's address here; `get` does so when it is needed."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return _limited(request, self._get)

    def _get(self, request: HttpRequest) -> HttpResponse:
        try:
            super().__init__()
            response: HttpResponse = super().get(request)
        except (requests.RequestException, SuspiciousOperation, ValueError) as error:
            return _back(request, error, "The identity provider does not answer. Try again later.")
        if not request.user.is_authenticated:
            request.session.set_expiry(UNFINISHED_SECONDS)
        return response


class FromProvider(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # the library has no types
    get_settings = staticmethod(oidc_setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        return _limited(request, self._get)

    def _get(self, request: HttpRequest) -> HttpResponse:
        try:
            response: HttpResponse = super().get(request)
        except Refusal as refusal:
            return _back(request, refusal, refusal.message)
        except (requests.RequestException, SuspiciousOperation, jwt.PyJWTError, ValueError, KeyError) as error:
            return _back(request, error, "The log-in failed. Try again; the server's log has the reason.")
        return response

    def login_success(self) -> HttpResponse:
        response: HttpResponse = super().login_success()
        self.request.session.set_expiry(settings.EXTERNAL_SESSION_SECONDS)
        for _ in (ToProvider, FromProvider):  # each has counted a try
            forgive_address_try(address=address_of(self.request))
        return response

    def login_failure(self) -> HttpResponse:
        return _back(self.request, None, "The identity provider did not log you in. Try again.")


def _limited(request: HttpRequest, answer: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    """The answer; 503 if other requests wait for the provider, 429 after too many tries from the address."""
    if not settings.OIDC_ISSUER:
        raise Http404
    login = Login()
    login.setup(request)
    if not PROVIDER_SLOTS.acquire(blocking=False):
        return login.come_back(BUSY, busy=True)
    try:
        wait = count_address_try(address=address_of(request))
        return login.come_back(wait) if wait else answer(request)
    finally:
        PROVIDER_SLOTS.release()


def _back(request: HttpRequest, error: Exception | None, message: str) -> HttpResponse:
    logger.warning("Log-in by the identity provider failed: %s", error or message)
    messages.error(request, message)
    return redirect("login")
