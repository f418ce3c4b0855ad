"""Log-in by a header that a trusted proxy sets.

The header counts only in requests that come from PROXY_ADDRESSES. A session that it began continues as long as the
headers stay exactly the same. Sessions that began with a password or at the identity provider ignore the header.
Django's RemoteUserMiddleware compares the header with the account's name, which can be another spelling of it.
"""

import ipaddress
import logging
from collections.abc import Callable

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import RemoteUserBackend
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from webapp.core.errors import Refusal
from webapp.core.external_login import Identity, known_person
from webapp.core.models import User

logger = logging.getLogger(__name__)
HEADERS = "proxy_headers"  # in the session: the name and the groups that began it


class ProxyBackend(RemoteUserBackend):
    """Logs in the person whom the header names. `get_user` finds only enabled accounts."""

    def authenticate(self, request: HttpRequest, remote_user: str | None) -> User | None:  # type: ignore[override]
        if not remote_user:
            return None
        return known_person(Identity(f"proxy {remote_user}", remote_user, groups_in(request)))


class ProxyLogin(MiddlewareMixin):
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not settings.PROXY_USER_HEADER:
            raise MiddlewareNotUsed
        super().__init__(get_response)

    def process_request(self, request: HttpRequest) -> None:
        name = request.META.get(settings.PROXY_USER_HEADER, "") if _from_proxy(request) else ""
        headers = [name, sorted(groups_in(request))]
        logged_in = request.user.is_authenticated  # Django ends invalid sessions here
        if not request.session.get(auth.BACKEND_SESSION_KEY, "").endswith(ProxyBackend.__name__):
            if logged_in:
                return
        elif logged_in and request.session.get(HEADERS) == headers:
            return
        else:
            auth.logout(request)
        if name:
            _log_in(request, headers)


def _log_in(request: HttpRequest, headers: list[object]) -> None:
    try:
        user = auth.authenticate(request, remote_user=headers[0])
    except Refusal as refusal:
        logger.warning("Log-in by the proxy's header refused: %s", refusal.message)
        request.login_refusal = refusal.message  # type: ignore[attr-defined]  # for the page of the log-in
        return
    if user:
        auth.login(request, user)
        request.session[HEADERS] = headers
        request.session.set_expiry(settings.EXTERNAL_SESSION_SECONDS)


def groups_in(request: HttpRequest) -> set[str]:
    """The groups of the header, which separates them by commas."""
    text = request.META.get(settings.PROXY_GROUPS_HEADER, "") if settings.PROXY_GROUPS_HEADER else ""
    return {group.strip() for group in text.split(",") if group.strip()}


def _from_proxy(request: HttpRequest) -> bool:
    text = request.META.get("REMOTE_ADDR", "")
    if not text:  # the connection came through a Unix socket
        return bool(settings.PROXY_SOCKET)
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in settings.PROXY_ADDRESSES)
