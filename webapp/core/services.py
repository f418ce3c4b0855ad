"""Writes about people: tokens, accounts, and the record of who did what."""

import secrets
from collections.abc import Mapping

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import connection, transaction

from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, AuditEntry, Counter, Role, User
from webapp.core.tokens import new_token

MOST_EMAIL = 254


def audit(*, by: User | None, action: str, subject: str, detail: Mapping[str, object] | None = None) -> AuditEntry:
    """Record what was done; `by` None means the system itself. `detail` is plain JSON."""
    return AuditEntry.objects.create(
        user=by, actor=actor_name(by), action=action, subject=subject[:200], detail=dict(detail or {})
    )


def actor_name(by: User | None) -> str:
    """The person's name; "system" for the server itself."""
    return by.username if by else "system"


def count(name: str, label: str, *, by: int = 1) -> None:
    """One more, or several, of something rare; one statement, exact also when several processes count at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_counter (name, label, value) VALUES (%s, %s, %s) "
            "ON CONFLICT (name, label) DO UPDATE SET value = core_counter.value + excluded.value",
            [name, label[:60], by],
        )


def counted(name: str, label: str) -> int:
    """How often that was counted so far."""
    return Counter.objects.filter(name=name, label=label).values_list("value", flat=True).first() or 0


@transaction.atomic
def create_api_token(*, user: User, name: str) -> str:
    """A new API token for a person; the plain text is returned here and never again."""
    plain, token_hash = new_token()
    ApiToken.objects.create(user=user, name=name[:100], token_hash=token_hash)
    audit(by=user, action="token.create", subject=user.username, detail={"name": name[:100]})
    return plain


@transaction.atomic
def create_user(*, username: str, password: str, role: Role, by: User | None = None) -> User:
    """A person who may log in. Raises Refusal for a name that is taken or a password that is too weak."""
    user = User(username=username, role=role)
    if User.objects.filter(username=username).exists():
        raise Refusal("username_taken", f"There is a user {username!r} already. Choose another name.")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Refusal("password_weak", " ".join(error.messages)) from error
    user.set_password(password)
    user.save()
    audit(by=by, action="user.create", subject=username, detail={"role": role.value})
    return user


@transaction.atomic
def set_password(*, user: User, password: str, by: User | None = None) -> None:
    """Give a person a new password; their sessions end with the old one."""
    user.set_password(password)
    user.save(update_fields=["password"])
    audit(by=by, action="user.password", subject=user.username)


@transaction.atomic
def set_email(*, user: User, email: str) -> bool:
    """Set or, with "", remove a person's e-mail address; whether it changed. Raises Refusal email_refused.

    The audit log does not repeat the address: it could not be forgotten there.
    """
    address = email.strip()
    try:
        if address:
            validate_email(address)
    except ValidationError as error:
        raise Refusal("email_refused", "This is not an e-mail address. Write it as name@example.com.") from error
    if len(address) > MOST_EMAIL:
        raise Refusal("email_refused", f"The address has {len(address)} characters; at most {MOST_EMAIL} are allowed.")
    if not User.objects.filter(pk=user.pk).exclude(email=address).update(email=address):
        return False
    user.email = address
    audit(by=user, action="user.email", subject=user.username, detail={"removed": not address})
    return True


def generated_password() -> str:
    """A password that nobody has to remember: 144 random bits."""
    return secrets.token_urlsafe(18)
