"""Log-in by a header that a trusted proxy sets, with the rules of Django's RemoteUserMiddleware.

The header counts only in requests that come from PROXY_ADDRESSES. Without a header, such as in requests of workers or
with API tokens, nothing happens; a session that a header began ends with it.
https://docs.djangoproject.com/en/5.2/howto/auth-remote-user/
"""

import ipaddress
import logging

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import RemoteUserBackend
from django.contrib.auth.middleware import RemoteUserMiddleware
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest

from webapp.core.errors import Refusal
from webapp.core.external_login import Identity, known_person
from webapp.core.models import User

logger = logging.getLogger(__name__)
GROUPS = "proxy_groups"  # in the session: the groups that gave the role


class ProxyBackend(RemoteUserBackend):
    """Logs in the person whom the header names. `get_user` finds only enabled accounts."""

    def authenticate(self, request: HttpRequest, remote_user: str | None) -> User | None:  # type: ignore[override]
        if not remote_user:
            return None
        return known_person(Identity(f"proxy {remote_user}", remote_user, groups_in(request)))


class ProxyLogin(RemoteUserMiddleware):
    def __init__(self, get_response: object) -> None:
        if not settings.PROXY_USER_HEADER:
            raise MiddlewareNotUsed
        self.header = settings.PROXY_USER_HEADER  # type: ignore[misc]  # Django reads it from the instance
        super().__init__(get_response)  # type: ignore[arg-type]

    def process_request(self, request: HttpRequest) -> None:
        if self.header in request.META and not _from_proxy(request):
            del request.META[self.header]
        if request.META.get(self.header) == "":  # a proxy may send an empty header for nobody
            del request.META[self.header]
        try:
            self._end_session_of_other_groups(request)
            super().process_request(request)
        except Refusal as refusal:
            logger.warning("Log-in by the proxy's header refused: %s", refusal.message)
            auth.logout(request)
            request.login_refusal = refusal.message  # type: ignore[attr-defined]  # for the page of the log-in
            return
        self._remember_groups(request)

    def _end_session_of_other_groups(self, request: HttpRequest) -> None:
        """If the groups have changed, log in again, so that the role changes too."""
        known = request.session.get(GROUPS)
        if self.header in request.META and known is not None and known != sorted(groups_in(request)):
            auth.logout(request)

    def _remember_groups(self, request: HttpRequest) -> None:
        began = request.session.get(auth.BACKEND_SESSION_KEY, "").endswith(ProxyBackend.__name__)
        if began and GROUPS not in request.session:
            request.session[GROUPS] = sorted(groups_in(request))
            request.session.set_expiry(settings.EXTERNAL_SESSION_SECONDS)


def groups_in(request: HttpRequest) -> set[str]:
    """The groups of the header, which separates them by commas."""
    text = request.META.get(settings.PROXY_GROUPS_HEADER, "") if settings.PROXY_GROUPS_HEADER else ""
    return {group.strip() for group in text.split(",") if group.strip()}


def _from_proxy(request: HttpRequest) -> bool:
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in settings.PROXY_ADDRESSES)
