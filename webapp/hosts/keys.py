"""The server's Ed25519 keys, and how one takes over from another without an order being refused.

    create_key ──► announced: the answer to every registration names it, nothing is signed with it yet
               ──► a host has said that it trusts it: orders for that host are signed with it
               ──► every host has: the older keys are retired, and the next answers no longer name them

A private key lies in the database encrypted (Fernet) with a key derived from the secret key of the
settings by HKDF-SHA256, so that a copy of the database alone signs nothing.
"""

import base64
from collections.abc import Collection
from functools import lru_cache

import msgspec
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.tokens import fernet
from webapp.hosts.models import Host, HostState, ServerKey
from worker.contract.signing import Endorsement, endorse
from worker.contract.signing import key_id as id_of_key

# Any fixed number: keeps two processes that start at once from making a key each.
_CREATION_LOCK = 0x5377_6565_7473
MAX_ENDORSEMENTS = 64


def signing_key(*, trusted: Collection[str] = ()) -> tuple[str, bytes]:
    """(key id, raw private key) of the newest key, made on first use.

    With the ids that a host trusts: the newest of those, as long as one of them is not retired.
    """
    key = _valid().filter(key_id__in=trusted).first() or _valid().first() or _create_first()
    return key.key_id, _decrypted(key.key_id, bytes(key.private_key), settings.SECRET_KEY)


def public_keys() -> dict[str, str]:
    """Key id -> base64 of the raw key, of all keys that workers are to trust."""
    signing_key()
    keys = _valid().order_by("created_at")
    return {key.key_id: base64.b64encode(bytes(key.public_key)).decode() for key in keys}


def endorsements() -> tuple[Endorsement, ...]:
    """The endorsements of the newest keys, including retired ones: a host that was offline follows them in order."""
    rows = ServerKey.objects.exclude(endorsement=None).order_by("-created_at")[:MAX_ENDORSEMENTS]
    return tuple(msgspec.convert(row.endorsement, Endorsement) for row in rows)


def create_key() -> ServerKey:
    """A new key, endorsed by the newest. Workers learn it with their next registration; it signs for each as soon as
    that one trusts it."""
    private = Ed25519PrivateKey.generate()
    public_raw = private.public_key().public_bytes_raw()
    before = _valid().first()
    endorsement = endorse(public_raw, signing_key()[1]) if before else None
    return ServerKey.objects.create(
        key_id=id_of_key(public_raw),
        public_key=public_raw,
        private_key=_fernet(settings.SECRET_KEY).encrypt(private.private_bytes_raw()),
        endorsement=msgspec.to_builtins(endorsement),
    )


@transaction.atomic
def rotate_key(*, by: User | None = None) -> ServerKey:
    """A new key to take over from the ones there are."""
    signing_key()
    key = create_key()
    audit(by=by, action="server_key.create", on=key, label=key.key_id)
    return key


@transaction.atomic
def retire_key(*, key_id: str, by: User | None = None) -> None:
    """From now on nothing is signed with this key, and hosts drop it with their next registration. Raises Refusal."""
    key = _valid().filter(key_id=key_id).first()
    if key is None:
        raise Refusal("server_key_unknown", f"There is no active key {key_id}. --list shows the keys.")
    if not _valid().exclude(key_id=key_id).exists():
        raise Refusal("server_key_last", f"{key_id} is the only key. Create another key first: rotate_server_key")
    _retire(key, by)


@transaction.atomic
def retire_superseded() -> list[str]:
    """Retire every key that is older than one which all hosts trust; their ids."""
    keys = list(_valid())
    if len(keys) < 2 or hosts_without_key(keys[0].key_id).exists():
        return []
    for key in keys[1:]:
        _retire(key, None)
    return [key.key_id for key in keys[1:]]


def keys_in_use() -> list[ServerKey]:
    """All keys that are not retired, the newest first."""
    return list(_valid())


def hosts_without_key(key_id: str) -> QuerySet[Host]:
    """Hosts that have not yet said that they trust this key."""
    return Host.objects.exclude(state=HostState.REVOKED).exclude(trusted_keys__contains=[key_id])


def _retire(key: ServerKey, by: User | None) -> None:
    ServerKey.objects.filter(pk=key.pk, retired_at=None).update(retired_at=timezone.now())
    audit(by=by, action="server_key.retire", on=key, label=key.key_id)


def _valid() -> QuerySet[ServerKey]:
    return ServerKey.objects.filter(retired_at=None).order_by("-created_at")


@transaction.atomic
def _create_first() -> ServerKey:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CREATION_LOCK])
    return _valid().first() or create_key()


@lru_cache(maxsize=16)
def _decrypted(key_id: str, encrypted: bytes, secret: str) -> bytes:
    try:
        return _fernet(secret).decrypt(encrypted)
    except InvalidToken as error:
        raise ImproperlyConfigured(
            f"The signing key {key_id} cannot be decrypted: SWEETSPOT_SECRET_KEY is not the one it was made with. "
            "Set the old one again, or retire the key and let every host register once."
        ) from error


def _fernet(secret: str) -> Fernet:
    return fernet(secret, purpose=b"sweetspot server signing key")
