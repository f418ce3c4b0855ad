"""Log-ins that an identity provider (`core.oidc`) or a proxy (`core.proxy_login`) has checked.

known id ──► that account
unknown id, unknown name ──► new account without a password
unknown id, exact name of an account that an admin allows to be connected ──► that account, once
unknown id, any other known name ──► refused: a name alone opens no account
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction

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
