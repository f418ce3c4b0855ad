"""Log-ins that an identity provider (`core.oidc`) or a proxy has checked.

known id ──► that account
unknown id, unknown name ──► new account without a password
unknown id, exact name of an account that an admin allows to be connected ──► that account, once
unknown id, any other known name ──► refused: a name alone opens no account
"""

import ipaddress
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import RemoteUserBackend
from django.core.exceptions import MiddlewareNotUsed
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from webapp.core.errors import Refusal
from webapp.core.models import Role, User
from webapp.core.people import good_name, lost_rights, person_called
from webapp.core.services import audit
from webapp.core.tokens import hash_token

EVERYBODY = "*"  # the group of everybody in LOGIN_ROLES


@dataclass(frozen=True)
class Identity:
    """`id` is unique and never changes; `name` is the name shown."""

    id: str
    name: str
    groups: Collection[str]

    @property
    def stored_id(self) -> str:
        """The id as the account stores it: a hash, so it may stay after the person is removed."""
        return hash_token(self.id)


def known_person(identity: Identity) -> User:
    """The person, created or linked if necessary, with the role of their groups. Raises Refusal."""
    role = role_of(identity.groups)
    try:
        return _known_person(identity, role)
    except IntegrityError:  # another request created the account at the same time
        return _known_person(identity, role)


@transaction.atomic
def _known_person(identity: Identity, role: Role | None) -> User:
    locked = User.objects.select_for_update(no_key=True)
    user = locked.filter(external_id=identity.stored_id).first() or _linked(identity) or _created(identity, role)
    if not user.is_active:
        raise Refusal("account_disabled", f"The account of {user.username} is disabled. Ask an admin of this server.")
    if role and role != user.role:
        _change_role(user, role)
    return user


def role_of(groups: Collection[str]) -> Role | None:
    """The highest role of the groups; None: roles are not mapped. Raises Refusal if no group has one."""
    mapped: dict[str, str] = settings.LOGIN_ROLES
    if not mapped:
        return None
    roles = [Role(role) for group, role in mapped.items() if group == EVERYBODY or group in groups]
    if not roles:
        raise Refusal("no_role", "None of your groups may use this server. Ask an admin of this server.")
    return max(roles, key=Role.values.index)


def _linked(identity: Identity) -> User | None:
    """The account of this name, if an admin allows it to be connected. Raises Refusal."""
    user = person_called(good_name(identity.name))
    if user is None:
        return None
    if not user.is_active:
        return user  # refused by the caller
    if not user.may_connect or user.username != identity.name:
        raise Refusal(
            "username_taken",
            f"{user.username} is another account on this server. If it is yours, ask an admin to connect it to your "
            "external log-in.",
        )
    user.external_id, user.may_connect = identity.stored_id, False
    user.save(update_fields=["external_id", "may_connect"])
    audit(by=None, action="user.link", on=user)
    return user


def _created(identity: Identity, role: Role | None) -> User:
    user = User(username=good_name(identity.name), role=role or Role.VIEWER, external_id=identity.stored_id)
    user.set_unusable_password()
    user.save()
    audit(by=None, action="user.create", on=user, detail={"role": user.role, "external_login": True})
    return user


def _change_role(user: User, role: Role) -> None:
    before, user.role = user.role, role
    user.save(update_fields=["role"])
    audit(by=None, action="user.role", on=user, detail={"before": before, "after": role.value, "by_group": True})
    if not user.is_operator:
        lost_rights.send(sender=User, user=user, by=user)


# Log-in by a header that a trusted proxy sets.
#
# The header counts only in requests that come from PROXY_ADDRESSES. A session that it began continues as long as the
# headers stay exactly the same. Sessions that began with a password or at the identity provider ignore the header.
# Django's RemoteUserMiddleware compares the header with the account's name, which can be another spelling of it.

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
