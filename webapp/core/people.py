"""Services for people: accounts, roles, log-in and tokens; lists of people and of audit entries.

enabled ◄──► disabled ──► removed ──► anonymised
                ▲────────────┘

There is always an admin who can log in. A change that would leave none is refused; a lock of all admins orders changes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import CharField, Count, Q, QuerySet
from django.db.models.functions import Cast
from django.dispatch import Signal
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from webapp.core.errors import Refusal
from webapp.core.models import FORMER, SYSTEM, ApiToken, AuditEntry, Role, User
from webapp.core.services import audit, end_access

MAX_NAME = 150  # characters, as in the column of AbstractUser
_NAMES_LOCK = 0x4E414D45  # of PostgreSQL's advisory locks
# Sent inside the transaction, with `user`: apps above delete the personal settings of a removed person.
anonymised = Signal()
# Sent inside the transaction, with `user` and `by`: the person may no longer change anything.
lost_rights = Signal()


@transaction.atomic
def invite_user(*, username: str, role: Role, by: User) -> User:
    """Create a person without a password; `password_link` lets them set one. Raises Refusal for the name."""
    name = good_name(username)
    if person_called(name):
        raise Refusal("username_taken", f"There is already a person called {name}. Choose another name.")
    user = User(username=name, role=role)
    user.set_unusable_password()
    user.save()
    audit(by=by, action="user.create", on=user, detail={"role": role.value})
    return user


def person_called(name: str) -> User | None:
    """The person with this name in any spelling, locked. Nobody else takes the name before this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_NAMES_LOCK])
    return User.objects.select_for_update(no_key=True).filter(username__iexact=name).first()


def good_name(username: str) -> str:
    name = User.normalize_username(username.strip())
    if len(name) > MAX_NAME:
        raise Refusal("username_refused", f"A name may have at most {MAX_NAME} characters.")
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        words = "A name may contain only letters, digits and @ . + - _."
        raise Refusal("username_refused", words) from error
    if name.lower().startswith(FORMER):
        raise Refusal(
            "username_refused", f"Names that begin with {FORMER} are reserved for removed people. Choose another name."
        )
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
    """Sessions, tokens and password links end for good, also for a person who is enabled again.

    Raises Refusal last_admin or own_account.
    """
    locked = _locked(user)
    if not locked.is_active:
        return
    _require_acknowledgement(locked, by, acknowledged, "you will be logged out and cannot log in again")
    _refuse_last_admin(locked)
    if not locked.has_usable_password():
        locked.set_unusable_password()  # a new one, so that earlier password links become invalid
        locked.save(update_fields=["password"])
    end_access(user=locked)
    _set_active(locked, active=False, by=by, action="user.disable")
    lost_rights.send(sender=User, user=locked, by=by)


@transaction.atomic
def reactivate_user(*, user: User, by: User) -> None:
    """Enable the account; earlier sessions, tokens and links stay ended.

    The external log-in of a removed person ends too: they need a password link, or an admin who connects the account.
    Raises Refusal anonymous.
    """
    locked = _locked(user)
    if locked.is_nameless:
        raise Refusal("anonymous", f"{locked.username} was anonymised. Add the person again.")
    if locked.left_at is not None:
        locked.external_id = None
        locked.save(update_fields=["external_id"])
    if not locked.is_active:
        _set_active(locked, active=True, by=by, action="user.enable")


def _set_active(locked: User, *, active: bool, by: User, action: str) -> None:
    locked.is_active, locked.left_at, locked.may_connect = active, None, False
    locked.save(update_fields=["is_active", "left_at", "may_connect"])
    audit(by=by, action=action, on=locked)


@transaction.atomic
def remove_user(*, user: User, by: User, acknowledged: bool = False) -> None:
    """Remove a person from the list of people. Their sessions and tokens stop working with the next request.

    Entries about their actions keep their name, and nobody else can take it. Raises Refusal last_admin or own_account.
    """
    locked = _locked(user)
    if locked.left_at is not None:
        return
    _require_acknowledgement(locked, by, acknowledged, "you will be logged out and removed from the list of people")
    _refuse_last_admin(locked)
    now = timezone.now()
    revoked = end_access(user=locked)
    locked.is_active, locked.left_at, locked.may_connect = False, now, False
    locked.set_unusable_password()  # after a return, only a new password link lets them log in
    locked.save(update_fields=["is_active", "left_at", "may_connect", "password"])
    audit(by=by, action="user.remove", on=locked, detail={"tokens_revoked": revoked})
    lost_rights.send(sender=User, user=locked, by=by)


@transaction.atomic
def anonymise_user(*, user: User, by: User) -> str:
    """Replace the name of a removed person by a number; return the new name.

    The name is stored only in the person's row, which all other rows refer to. So the audit log keeps every entry
    and shows the number. Texts that people typed do not change. Cannot be undone. Raises Refusal not_left.
    """
    locked = _locked(user)
    before, after = locked.username, f"{FORMER}{locked.pk}"
    if locked.is_nameless:
        return before
    if locked.left_at is None:
        raise Refusal("not_left", f"{before} was not removed. Remove the person first.")
    locked.username, locked.first_name, locked.last_name, locked.email = after, "", "", ""
    locked.last_login = None
    locked.save(update_fields=["username", "first_name", "last_name", "email", "last_login"])
    anonymised.send(sender=User, user=locked)
    audit(by=by, action="user.anonymise", on=locked)
    return after


def _locked(user: User) -> User:
    """The current row of the person, locked together with all active admins in one order. Without these locks, two
    admins who demote each other at the same time would each count on the other one."""
    admins = User.objects.filter(role=Role.ADMIN, is_active=True) | User.objects.filter(pk=user.pk)
    return {person.pk: person for person in admins.order_by("pk").select_for_update(no_key=True)}[user.pk]


def _refuse_last_admin(locked: User) -> None:
    others = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=locked.pk)
    # Invited, but has never logged in; or depends on the identity provider, which may fail.
    others = others.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    if locked.is_administrator and locked.is_active and not others.exists():
        words = f"{locked.username} is the only admin who can log in. Make somebody else an admin first."
        raise Refusal("last_admin", words)


def _require_acknowledgement(locked: User, by: User, acknowledged: bool, consequence: str) -> None:
    if locked.pk == by.pk and not acknowledged:
        words = f"This is your own account: {consequence}. Tick the box to confirm."
        raise Refusal("own_account", words)


@transaction.atomic
def password_link(*, user: User, by: User) -> str:
    """The path of a page on which the person can set a password, once and for a limited time. The admin sees it once.

    The old password, the external log-in, all sessions and API tokens end, so a link also recovers a stolen account.
    The link is signed over the password's hash and the last log-in, so it is invalid after use and after a newer link.
    """
    if user.pk == by.pk:
        raise Refusal("own_account", "This is your own account: change its password on the page Account.")
    locked = _locked(user)
    locked.set_unusable_password()
    locked.external_id, locked.may_connect = None, False
    locked.save(update_fields=["password", "external_id", "may_connect"])
    end_access(user=locked)
    audit(by=by, action="user.password_link", on=locked)
    who = urlsafe_base64_encode(force_bytes(locked.pk))
    return f"/set-password/{who}/{default_token_generator.make_token(locked)}/"


@transaction.atomic
def allow_connection(*, user: User, by: User) -> None:
    """Let the next external log-in with exactly this name be connected to the account, once.

    A password link ends the permission. Raises Refusal account_disabled or already_connected.
    """
    locked = _locked(user)
    if not locked.is_active:
        raise Refusal("account_disabled", f"The account of {locked.username} is disabled. Enable it first.")
    if locked.external_id is not None:
        words = f"{locked.username} already has an external log-in. A new password link ends it."
        raise Refusal("already_connected", words)
    locked.may_connect = True
    locked.save(update_fields=["may_connect"])
    audit(by=by, action="user.may_connect", on=locked)


@transaction.atomic
def revoke_api_token(*, token: ApiToken, by: User) -> bool:
    """Revoke the token: it stops working with the next request. False if it was revoked before."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    audit(by=by, action="token.revoke", on=token.user, detail={"name": token.name})
    return True


# Selectors of people and audit entries.


def people_list(*, left: bool = False) -> QuerySet[User]:
    """People on the list, enabled accounts first, or removed people; with `token_count`, the number of valid tokens."""
    working = Count("api_tokens", filter=Q(api_tokens__revoked_at=None))
    people = User.objects.filter(left_at__isnull=not left).annotate(token_count=working)
    return people.order_by("-is_active", "username")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Valid tokens, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created_at")


@dataclass(frozen=True)
class AuditFilter:
    """A filter of audit entries; "" and None match all. `since` and `until` are whole days in the current time
    zone, both included."""

    person: str = ""
    action: str = ""
    subject: str = ""
    since: date | None = None
    until: date | None = None


def audit_entries(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Newest first. `person` is exact, `subject` any part of the object's label or of a person's name,
    `action` one action or all of an area (`run.`)."""
    entries = AuditEntry.objects.select_related("actor").order_by("-at", "-id")
    if wanted.person == SYSTEM:
        entries = entries.filter(actor=None)
    elif wanted.person:
        entries = entries.filter(actor__username=wanted.person)
    if wanted.action:
        by_area = wanted.action.endswith(".")
        entries = entries.filter(action__startswith=wanted.action) if by_area else entries.filter(action=wanted.action)
    if wanted.subject:
        people = User.objects.filter(username__icontains=wanted.subject)
        ids = people.annotate(text=Cast("pk", CharField())).values("text")
        entries = entries.filter(Q(label__icontains=wanted.subject) | Q(object_type="user", object_id__in=ids))
    if wanted.since:
        entries = entries.filter(at__gte=midnight(wanted.since))
    if wanted.until:
        entries = entries.filter(at__lt=midnight(wanted.until + timedelta(days=1)))
    return entries


def midnight(day: date) -> datetime:
    """The begin of the day in the current time zone."""
    return timezone.make_aware(datetime.combine(day, time()))


def actors() -> list[str]:
    """Everyone with an entry in the audit log, by name, and the system."""
    acted = AuditEntry.objects.exclude(actor=None).values("actor")
    return [*User.objects.filter(pk__in=acted).order_by("username").values_list("username", flat=True), SYSTEM]


def person_names(ids: Collection[int]) -> dict[int, str]:
    """Names by id, for entries about people."""
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "username")) if ids else {}
