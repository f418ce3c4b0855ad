"""A host's token, and its broker user, confined to the host's queue and the keys that kombu stores for the queue.

    admit            create the password; its SHA-256 goes to the database and, after the commit, to Redis
    begin_rotation   a second password becomes valid too
    finish_rotation  only the second password is valid; connections with the first one are closed
    forget           the user is deleted and its connections are closed
    reconcile        copy the users of the database to Redis, e.g. after a restart without its ACL file

Users are made with ACL SETUSER and written to Redis's ACL file with ACL SAVE, so the server needs no access to
that file and Redis can be on another machine. The database decides; the next `reconcile` repairs a failed call.
User names contain the database number of the broker's URL, so two installations can share one Redis.

Redis 6.2 or newer has all the commands.
"""

import logging
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import UUID

import redis
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from webapp.celery import redis_client
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.tokens import hash_token, new_token
from webapp.hosts.models import Host, HostState
from worker.contract.greetings import TokenReply
from worker.contract.orders import queue_name

log = logging.getLogger(__name__)

# Enough to take orders (`worker.link.celery_app`), and no more: no script, which could hold Redis for ever, and no
# command that stores anything.
_COMMANDS = (
    "+ping", "+hello", "+auth", "+select", "+client|setname", "+brpop", "+llen", "+multi", "+exec", "+hdel", "+zrem",
)  # fmt: skip


@dataclass(frozen=True)
class Changes:
    """Names of users that `reconcile` created or corrected, and that it removed."""

    made: tuple[str, ...]
    removed: tuple[str, ...]


def admit(*, host: Host) -> str:
    """Give the host a new password; return the broker's URL with it, for this host only. Call in a transaction."""
    plain, digest = new_token()
    Host.objects.filter(pk=host.pk).update(broker_hash=digest, next_broker_hash="")
    _after_commit({user_name(host.pk): _rules(host.pk, {digest})})
    return _url_for(user_name(host.pk), plain)


def begin_rotation(*, host: Host) -> str:
    """Make a second password valid until `finish_rotation`; return the broker's URL with it. Call in a transaction."""
    plain, digest = new_token()
    Host.objects.filter(pk=host.pk).update(next_broker_hash=digest)
    known = Host.objects.values_list("broker_hash", flat=True).get(pk=host.pk)
    _after_commit({user_name(host.pk): _rules(host.pk, {known, digest} - {""})})
    return _url_for(user_name(host.pk), plain)


def finish_rotation(*, host: Host) -> None:
    """The host has stored the second password: end the first one and its connections. Call in a transaction."""
    if not host.next_broker_hash:
        return
    Host.objects.filter(pk=host.pk).update(broker_hash=host.next_broker_hash, next_broker_hash="")
    name = user_name(host.pk)
    _after_commit({name: _rules(host.pk, {host.next_broker_hash})}, (name,))


def forget(*, host: Host) -> None:
    """Delete the host's user, close its connections and empty its queue. Call in a transaction."""
    Host.objects.filter(pk=host.pk).update(broker_hash="", next_broker_hash="")
    _after_commit({}, (user_name(host.pk),))
    transaction.on_commit(partial(_now_or_later, partial(_empty_queue, host.pk)))


def reconcile(*, rewrite: bool = False) -> Changes:
    """Make Redis's users match the database; `rewrite` replaces all, e.g. after an update. Raises RedisError."""
    present = _present()  # read before the database: a host that enrols in between is created twice but never removed
    wanted = dict(_wanted())
    rules = {user_name(pk): _rules(pk, digests) for pk, digests in wanted.items()}
    hashes = {user_name(pk): digests for pk, digests in wanted.items()}
    made = {name: rule for name, rule in rules.items() if rewrite or hashes[name] != _hashes(present.get(name, ""))}
    stale = tuple(sorted(present.keys() - rules.keys()))
    if made or stale:
        _apply(made, stale)
        log.warning("The broker's users were corrected: %d created, %d removed.", len(made), len(stale))
    return Changes(tuple(sorted(made)), stale)


def problems() -> list[str]:
    """Problems of the broker's configuration, as sentences; [] if there are none. Raises RedisError."""
    with redis_client() as client:
        users = _lines(client)
        saved = _save(client)
    sentences = []
    if users.get("default", "off").split()[0] != "off":
        sentences.append(
            "The broker's default user is enabled: anyone with its password can read every host's orders. Put “user "
            "default off” into Redis's ACL file."
        )
    if not saved:
        sentences.append(
            "Redis has no writable ACL file, so a restart deletes the hosts' users until the server creates them "
            "again. Set aclfile in redis.conf."
        )
    return sentences


def hosts_without_user() -> list[str]:
    """Hosts without a broker user, enrolled by an old version: they get no orders until they enrol again."""
    hosts = Host.objects.filter(broker_hash="").exclude(state=HostState.REVOKED)
    return list(hosts.values_list("slug", flat=True))


def user_name(host_id: UUID) -> str:
    return f"{_prefix()}{host_id}"


def _prefix() -> str:
    database = urlsplit(settings.REDIS_URL).path.strip("/") or "0"
    return f"host.{database}."


def _rules(host_id: UUID, digests: Set[str]) -> tuple[str, ...]:
    queue = queue_name(str(host_id))
    keys = (queue, f"{queue}:*")
    passwords = (f"#{digest}" for digest in sorted(digests))
    return ("reset", "on", *passwords, "resetchannels", "-@all", *(f"~{key}" for key in keys), *_COMMANDS)


def _hashes(rule: str) -> set[str]:
    """SHA-256 of each password in a user's ACL line."""
    return {word.removeprefix("#") for word in rule.split() if word.startswith("#")}


def _url_for(name: str, password: str) -> str:
    parts = urlsplit(settings.WORKER_REDIS_URL)
    return urlunsplit(parts._replace(netloc=f"{quote(name)}:{quote(password)}@{parts.netloc}"))


def _wanted() -> Iterator[tuple[UUID, set[str]]]:
    hosts = Host.objects.exclude(broker_hash="").exclude(state=HostState.REVOKED)
    for pk, *digests in hosts.values_list("pk", "broker_hash", "next_broker_hash"):
        yield pk, set(digests) - {""}


def _present() -> dict[str, str]:
    with redis_client() as client:
        return {name: rule for name, rule in _lines(client).items() if name.startswith(_prefix())}


def _lines(client: redis.Redis) -> dict[str, str]:
    """Name -> rest of the ACL line, for every user in Redis."""
    lines: list[str | bytes] = client.execute_command("ACL LIST")  # type: ignore[no-untyped-call]
    texts = (line.decode() if isinstance(line, bytes) else line for line in lines)
    return {name: rule for _, name, rule in (text.split(" ", 2) for text in texts)}


def _apply(made: dict[str, tuple[str, ...]], removed: tuple[str, ...]) -> None:
    """Remove users, then create users, in one transaction. A user in both is replaced and loses its connections."""
    with redis_client() as client:
        with client.pipeline(transaction=True) as steps:
            if removed:
                steps.execute_command("ACL DELUSER", *removed)  # type: ignore[no-untyped-call]
            for name, rules in made.items():
                steps.execute_command("ACL SETUSER", name, *rules)  # type: ignore[no-untyped-call]
            steps.execute()
        if not _save(client):
            log.warning(
                "Redis did not save its users to disk (ACL SAVE); the server creates them again after a restart."
            )


def _empty_queue(host_id: UUID) -> None:
    with redis_client() as client:
        client.unlink(queue_name(str(host_id)))


def _save(client: redis.Redis) -> bool:
    try:
        client.execute_command("ACL SAVE")  # type: ignore[no-untyped-call]
    except redis.ResponseError:
        return False
    return True


def _after_commit(made: dict[str, tuple[str, ...]], removed: tuple[str, ...] = ()) -> None:
    transaction.on_commit(partial(_now_or_later, partial(_apply, made, removed)))


def _now_or_later(change: Callable[[], None]) -> None:
    """Errors after the commit are only logged: the database is up to date, and `reconcile` runs every few seconds."""
    try:
        change()
    except (redis.RedisError, OSError) as error:
        log.warning("The broker's users could not be changed; the next reconciliation changes them: %s", error)


# A host's token and broker password, and their rotation while the host works.
#
#     requested ──► a reply says `token_due` ──► the host fetches the next token ──► it uses it: the old one is invalid
#                                                    │  reply lost, or worker died:
#                                                    └─ the old token is still valid, the host fetches another
#
# At any time at least one token and one password on the host's disk are valid.

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
        finish_rotation(host=host)
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
    return TokenReply(host_token=plain, broker_url=begin_rotation(host=host))
