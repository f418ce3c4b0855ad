"""Services for accounts, tokens and the audit log."""

import secrets
from collections.abc import Mapping

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import connection, transaction
from django.db.models import F, Model
from django.utils import timezone

from webapp.core.audit_words import OBJECT_TYPES
from webapp.core.errors import Refusal
from webapp.core.models import PERSON, SYSTEM, ApiToken, AuditEntry, Counter, Role, User
from webapp.core.tokens import new_token

MAX_EMAIL_LENGTH = 254
MAX_API_TOKENS = 50  # of one person


def audit(
    *, by: User | None, action: str, on: Model, label: str | None = None, detail: Mapping[str, object] | None = None
) -> AuditEntry:
    """Record an action on an object. `by` None means the system itself.

    `label` is the object's current name, by default its text; for a person only the id is stored. `detail` is plain
    JSON in which a person is `person(user)`, never a name; the name of the request's API token is added. Raises
    TypeError if the action does not fit the object.
    """
    object_type = on._meta.model_name or ""
    if object_type not in OBJECT_TYPES[action.partition(".")[0]]:
        raise TypeError(f"{action} is not an action on a {object_type}.")
    return AuditEntry.objects.create(
        actor=by,
        action=action,
        object_type=object_type,
        object_id=str(on.pk),
        label="" if isinstance(on, User) else (label or str(on))[:200],
        detail=dict(detail or {}) | ({"api_token": by.api_token.name} if by and by.api_token else {}),
    )


def actor_name(by: User | None) -> str:
    """The person's name; "system" for the server itself."""
    return by.username if by else SYSTEM


def person(user: User) -> dict[str, int]:
    """A reference to a person in the details of an audit entry."""
    return {PERSON: user.pk}


def count(name: str, label: str, *, by: int = 1) -> None:
    """Increase a counter of rare events. One statement, so it is exact when several processes count at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_counter (name, label, value) VALUES (%s, %s, %s) "
            "ON CONFLICT (name, label) DO UPDATE SET value = core_counter.value + excluded.value",
            [name, label[:60], by],
        )


def counted(name: str, label: str) -> int:
    """The counter's current value."""
    return Counter.objects.filter(name=name, label=label).values_list("value", flat=True).first() or 0


@transaction.atomic
def create_api_token(*, user: User, name: str, may_arm: bool = False) -> str:
    """Create an API token; return its plain text, which cannot be read again. Raises Refusal too_many_tokens.

    `may_arm`: a script with this token may arm runs, schedules and purges of drives.
    """
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # keeps the limit while several are created at once
    if ApiToken.objects.filter(user=user, revoked_at=None).count() >= MAX_API_TOKENS:
        raise Refusal("too_many_tokens", f"You have {MAX_API_TOKENS} tokens, the most allowed. Revoke one first.")
    plain, token_hash = new_token()
    ApiToken.objects.create(user=user, name=name[:100], token_hash=token_hash, may_arm=may_arm)
    audit(by=user, action="token.create", on=user, detail={"name": name[:100], "may_arm": may_arm})
    return plain


@transaction.atomic
def create_user(*, username: str, password: str, role: Role, by: User | None = None) -> User:
    """Create a person who may log in. Raises Refusal for a name that is taken or a password that is too weak."""
    user = User(username=username, role=role)
    if User.objects.filter(username=username).exists():
        raise Refusal("username_taken", f"There is already a user {username!r}. Choose another name.")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Refusal("password_weak", " ".join(error.messages)) from error
    user.set_password(password)
    user.save()
    audit(by=by, action="user.create", on=user, detail={"role": role.value})
    return user


@transaction.atomic
def set_password(*, user: User, password: str, by: User | None = None) -> None:
    """Set a person's password; this ends their sessions and revokes their API tokens."""
    user.set_password(password)
    user.save(update_fields=["password"])
    end_access(user=user)
    audit(by=by, action="user.password", on=user)


def end_access(*, user: User) -> int:
    """End the person's sessions and revoke their API tokens for good; the number of tokens. Call in a transaction."""
    User.objects.filter(pk=user.pk).update(session_version=F("session_version") + 1)
    user.refresh_from_db(fields=["session_version"])
    return ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())


@transaction.atomic
def set_email(*, user: User, email: str) -> bool:
    """Set or, with "", remove a person's e-mail address; whether it changed. Raises Refusal email_refused.

    The audit log does not contain the address: it could not be deleted there.
    """
    address = email.strip()
    try:
        if address:
            validate_email(address)
    except ValidationError as error:
        raise Refusal("email_refused", "This is not an e-mail address. Write it as name@example.com.") from error
    if len(address) > MAX_EMAIL_LENGTH:
        raise Refusal(
            "email_refused", f"The address has {len(address)} characters; at most {MAX_EMAIL_LENGTH} are allowed."
        )
    if not User.objects.filter(pk=user.pk).exclude(email=address).update(email=address):
        return False
    user.email = address
    audit(by=user, action="user.email", on=user, detail={"removed": not address})
    return True


def generated_password() -> str:
    """A password that nobody has to remember: 144 random bits."""
    return secrets.token_urlsafe(18)
