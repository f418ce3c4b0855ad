"""Writes about people: who there is, which role they have, whether they may log in, and their tokens.

may log in ◄──► switched off ──► left ──► without a name
                     ▲─────────────┘

There is always an admin who can log in: whoever would end that waits on the lock of all admins and is refused.
"""

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from webapp.core.errors import Refusal
from webapp.core.models import FORMER, ApiToken, Role, User
from webapp.core.services import audit

# Sent inside the transaction, with `user`: apps above delete what a person who left had set up for themselves.
anonymised = Signal()
# Sent inside the transaction, with `user` and `by`: the person may not change anything any more.
lost_rights = Signal()


@transaction.atomic
def invite_user(*, username: str, role: Role, by: User) -> User:
    """A person who has no password yet; `password_link` lets them set one. Raises Refusal for the name."""
    name = _good_name(username)
    if User.objects.filter(username__iexact=name).exists():
        raise Refusal("username_taken", f"There is somebody called {name} already. Choose another name.")
    user = User(username=name, role=role)
    user.set_unusable_password()
    user.save()
    audit(by=by, action="user.create", on=user, detail={"role": role.value})
    return user


def _good_name(username: str) -> str:
    name = User.normalize_username(username.strip())
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        words = "A name is made of letters, digits and @ . + - _ only."
        raise Refusal("username_refused", words) from error
    if name.lower().startswith(FORMER):
        raise Refusal("username_refused", f"Names that begin with {FORMER} stand for people who left.")
    return name


@transaction.atomic
def change_role(*, user: User, role: Role, by: User, acknowledged: bool = False) -> None:
    """`acknowledged` is required when you lower your own role. Raises Refusal last_admin or own_account."""
    locked = _locked(user)
    if locked.role == role:
        return
    if locked.is_administrator:
        _require_acknowledgement(locked, by, acknowledged, "you will no longer be an admin")
        _refuse_last_admin(locked)
    before, locked.role = locked.role, role
    locked.save(update_fields=["role"])
    audit(by=by, action="user.role", on=locked, detail={"before": before, "after": role.value})
    if not locked.is_operator:
        lost_rights.send(sender=User, user=locked, by=by)


@transaction.atomic
def deactivate_user(*, user: User, by: User, acknowledged: bool = False) -> None:
    """Sessions and tokens stop working with the next request. Raises Refusal last_admin or own_account."""
    locked = _locked(user)
    if not locked.is_active:
        return
    _require_acknowledgement(locked, by, acknowledged, "you will be logged out and cannot log in again")
    _refuse_last_admin(locked)
    _set_active(locked, active=False, by=by, action="user.disable")
    lost_rights.send(sender=User, user=locked, by=by)


@transaction.atomic
def reactivate_user(*, user: User, by: User) -> None:
    """Also of somebody who left: they need a new password link. Raises Refusal anonymous."""
    locked = _locked(user)
    if locked.is_nameless:
        raise Refusal("anonymous", f"{locked.username} has no name any more. Add the person anew.")
    if not locked.is_active:
        _set_active(locked, active=True, by=by, action="user.enable")


def _set_active(locked: User, *, active: bool, by: User, action: str) -> None:
    locked.is_active, locked.left_at = active, None
    locked.save(update_fields=["is_active", "left_at"])
    audit(by=by, action=action, on=locked)


@transaction.atomic
def remove_user(*, user: User, by: User, acknowledged: bool = False) -> None:
    """Somebody leaves: nothing lets them in from the next request on, and the list of people does not show them.

    What they did keeps their name, and nobody else gets it. Raises Refusal last_admin or own_account.
    """
    locked = _locked(user)
    if locked.left_at is not None:
        return
    _require_acknowledgement(locked, by, acknowledged, "you will be logged out and taken off the list of people")
    _refuse_last_admin(locked)
    now = timezone.now()
    revoked = ApiToken.objects.filter(user=locked, revoked_at=None).update(revoked_at=now)
    locked.is_active, locked.left_at = False, now
    locked.set_unusable_password()  # brought back, they get in by a new link only
    locked.save(update_fields=["is_active", "left_at", "password"])
    audit(by=by, action="user.remove", on=locked, detail={"tokens_revoked": revoked})
    lost_rights.send(sender=User, user=locked, by=by)


@transaction.atomic
def anonymise_user(*, user: User, by: User) -> str:
    """Replace the name of a person who left by a number; return the new name.

    The name is stored in the person's row alone: everything else refers to that row, so the audit log keeps every
    entry and shows the number. Texts that people typed are not changed. Cannot be undone. Raises Refusal not_left.
    """
    locked = _locked(user)
    before, after = locked.username, f"{FORMER}{locked.pk}"
    if locked.is_nameless:
        return before
    if locked.left_at is None:
        raise Refusal("not_left", f"{before} is still here. Remove the person first.")
    locked.username, locked.first_name, locked.last_name, locked.email = after, "", "", ""
    locked.last_login = None
    locked.save(update_fields=["username", "first_name", "last_name", "email", "last_login"])
    anonymised.send(sender=User, user=locked)
    audit(by=by, action="user.anonymise", on=locked)
    return after


def _locked(user: User) -> User:
    """The person as they are now. All active admins are locked with them, in one order: two admins who
    demote each other at once would otherwise both see the other one left."""
    admins = User.objects.filter(role=Role.ADMIN, is_active=True) | User.objects.filter(pk=user.pk)
    return {one.pk: one for one in admins.order_by("pk").select_for_update(no_key=True)}[user.pk]


def _refuse_last_admin(locked: User) -> None:
    others = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=locked.pk)
    others = others.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX)  # invited, and never here
    if locked.is_administrator and locked.is_active and not others.exists():
        words = f"{locked.username} is the only admin who can log in. Make somebody else an admin first."
        raise Refusal("last_admin", words)


def _require_acknowledgement(locked: User, by: User, acknowledged: bool, consequence: str) -> None:
    if locked.pk == by.pk and not acknowledged:
        words = f"This is your own account: {consequence}. Tick the box to say that you know."
        raise Refusal("own_account", words)


@transaction.atomic
def password_link(*, user: User, by: User) -> str:
    """The path under which the person may set a password, once and for a limited time; shown to the admin once.

    What was the password is forgotten and their sessions end, so a link is also how an account is taken back.
    It is signed over the password's hash and the last log-in: used, or followed by a newer link, it is void.
    """
    if user.pk == by.pk:
        raise Refusal("own_account", "This is your own account: change its password on the page Account.")
    locked = _locked(user)
    locked.set_unusable_password()
    locked.save(update_fields=["password"])
    audit(by=by, action="user.password_link", on=locked)
    who = urlsafe_base64_encode(force_bytes(locked.pk))
    return f"/set-password/{who}/{default_token_generator.make_token(locked)}/"


@transaction.atomic
def revoke_api_token(*, token: ApiToken, by: User) -> bool:
    """From the next request on it opens nothing. Whether this call did it."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    audit(by=by, action="token.revoke", on=token.user, detail={"name": token.name})
    return True
