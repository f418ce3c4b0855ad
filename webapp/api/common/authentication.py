"""Authentication by the browser's session or an API token, and checks of the required role."""

from datetime import timedelta

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from ninja.security import APIKeyCookie, HttpBearer

from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, Role, User
from webapp.core.tokens import hash_token

_LAST_USED_PRECISION = timedelta(minutes=1)


class Token(HttpBearer):
    """`Authorization: Bearer` with a person's API token."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        found = ApiToken.objects.select_related("user").filter(
            token_hash=hash_token(token), revoked_at=None, user__is_active=True
        )
        known = found.first()
        if known is None:
            return None
        _touch(known)
        request.user = known.user
        return known.user


def _touch(token: ApiToken) -> None:
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_PRECISION)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


class Session(APIKeyCookie):
    """The browser's session. Requests that change data also need Django's CSRF token."""

    param_name = "sessionid"

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:  # noqa: ARG002 - Django has read it
        return request.user if isinstance(request.user, User) and request.user.is_active else None


AUTH = (Token(), Session())


def operator(request: HttpRequest) -> User:
    """The person of the request, who must be an operator. Raises Refusal not_allowed."""
    return _with_role(request, Role.OPERATOR)


def administrator(request: HttpRequest) -> User:
    """The person of the request, who must be an admin. Raises Refusal not_allowed."""
    return _with_role(request, Role.ADMIN)


def _with_role(request: HttpRequest, needed: Role) -> User:
    if isinstance(request.user, User) and request.user.has_role(needed):
        return request.user
    has = getattr(request.user, "role", "none")
    raise Refusal("not_allowed", f"Your role is {has}; this requires the {needed} role. An admin can give it to you.")
