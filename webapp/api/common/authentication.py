"""Authentication by the browser's session or an API token, and the required role.

An operation that needs a role has `auth=OPERATORS` or `auth=ADMINS`, so the role is checked before anything of the
request is read: its parameters, its body, and the objects that they name.
"""

from datetime import timedelta

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer

from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, Role, User
from webapp.core.tokens import hash_token

_LAST_USED_PRECISION = timedelta(minutes=1)


class Token(HttpBearer):
    """`Authorization: Bearer` with a person's API token. Raises Refusal not_allowed without the role."""

    def __init__(self, needed: Role = Role.VIEWER) -> None:
        super().__init__()
        self._needed = needed

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        """Raises AuthenticationError for an unknown token."""
        tokens = ApiToken.objects.select_related("user").filter(
            token_hash=hash_token(token), revoked_at=None, user__is_active=True
        )
        known = tokens.first()
        if known is None:
            raise AuthenticationError  # a session beside it would be asked for its CSRF token
        _touch(known)
        known.user.api_token = known
        request.user = known.user
        return _with_role(request, self._needed)


def _touch(token: ApiToken) -> None:
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_PRECISION)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


class Session(APIKeyCookie):
    """The browser's session. Requests that change data also need Django's CSRF token.

    Raises Refusal not_allowed without the role.
    """

    param_name = "sessionid"

    def __init__(self, needed: Role = Role.VIEWER) -> None:
        super().__init__()
        self._needed = needed

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:  # noqa: ARG002 - Django has read it
        if isinstance(request.user, User) and request.user.is_active:
            return _with_role(request, self._needed)
        return None


AUTH = (Token(), Session())
OPERATORS = (Token(Role.OPERATOR), Session(Role.OPERATOR))
ADMINS = (Token(Role.ADMIN), Session(Role.ADMIN))


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
