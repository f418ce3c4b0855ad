"""A host's token and broker password, and their rotation while the host works.

    requested ──► a reply says `token_due` ──► the host fetches the next token ──► it uses it: the old one is invalid
                                                   │  reply lost, or worker died:
                                                   └─ the old token is still valid, the host fetches another

At any time at least one token and one password on the host's disk are valid.
"""

from django.db import connection, transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.tokens import hash_token, new_token
from webapp.hosts import credentials
from webapp.hosts.models import Host, HostState
from worker.contract.greetings import TokenReply

# Every report starts with this query; through Django's ORM it took five times as long. Other columns are loaded
# on first use.
_NEEDED = {
    "id", "slug", "state", "token_hash", "next_token_hash", "rotation_requested_at", "last_seen_at", "spool_bytes",
    "session", "second_worker_at",
}  # fmt: skip
_COLUMNS = [
    field.attname for field in Host._meta.concrete_fields if field.attname in _NEEDED
]  # `from_db` wants this order
_KNOWN = f"""
SELECT {", ".join(_COLUMNS)} FROM hosts_host
WHERE (token_hash = %(token_hash)s OR next_token_hash = %(token_hash)s) AND state <> 'revoked'
"""  # noqa: S608 - our own columns


def authenticate_host(token: str) -> Host | None:
    """The host with this token; None if the token is unknown or revoked. One query, except at a token's first use."""
    token_hash = hash_token(token)
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, {"token_hash": token_hash})
        row = cursor.fetchone()
    if row is None:
        return None
    host = Host.from_db("default", _COLUMNS, row)
    if host.next_token_hash == token_hash:
        _promote(host)
    return host


@transaction.atomic
def _promote(host: Host) -> None:
    """Make the next token the current one, at its first use. Only one of two simultaneous requests does it."""
    waiting = Host.objects.filter(pk=host.pk, next_token_hash=host.next_token_hash)
    changes = {"token_hash": host.next_token_hash, "next_token_hash": None, "rotation_requested_at": None}
    if waiting.update(**changes) == 1:
        credentials.finish_rotation(host=host)
        audit(by=None, action="host.token_replace", on=host)
    host.token_hash, host.next_token_hash, host.rotation_requested_at = str(host.next_token_hash), None, None


@transaction.atomic
def request_rotation(*, host: Host, by: User | None) -> bool:
    """Request a new token: the host fetches it after its next message. False if it was requested before.

    Raises Refusal host_revoked.
    """
    if Host.objects.filter(pk=host.pk, state=HostState.REVOKED).exists():
        raise Refusal("host_revoked", f"{host} is revoked and has no token. Enrol it again instead.")
    quiet = Host.objects.filter(pk=host.pk, rotation_requested_at=None).exclude(state=HostState.REVOKED)
    if quiet.update(rotation_requested_at=timezone.now()) != 1:
        return False
    audit(by=by, action="host.rotate_token", on=host)
    return True


@transaction.atomic
def next_token(*, host: Host) -> TokenReply:
    """Create the next token and password of a host with a requested rotation. Raises Refusal token_not_due."""
    plain, token_hash = new_token()
    due = Host.objects.filter(pk=host.pk, rotation_requested_at__isnull=False)
    if due.update(next_token_hash=token_hash) != 1:
        raise Refusal("token_not_due", "No new token is due for this host.")
    return TokenReply(host_token=plain, broker_url=credentials.begin_rotation(host=host))
