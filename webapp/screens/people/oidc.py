"""Log-in by the identity provider: to it, and back with a code. Why it failed is shown on the page of the log-in."""

import logging
from collections.abc import Callable
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from webapp.core.errors import Refusal
from webapp.core.oidc import oidc_setting
from webapp.core.throttle import PROVIDER_SLOTS, address_of, count_address_try, forgive_address_try
from webapp.screens.people.login import BUSY, Login

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
