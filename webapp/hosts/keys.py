"""The server's Ed25519 keys. The newest one signs orders; workers trust every one that is not retired.

A private key lies in the database encrypted (Fernet) with a key derived from the secret key of the
settings by HKDF-SHA256, so that a copy of the database alone signs nothing.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from webapp.hosts.models import ServerKey
from worker.contract.signing import key_id as id_of_key

# Any fixed number: keeps two processes that start at once from making a key each.
_CREATION_LOCK = 0x5377_6565_7473


def signing_key() -> tuple[str, bytes]:
    """(key id, raw private key) of the key that signs now; made on first use."""
    key = _newest() or _create_first()
    return key.key_id, _decrypted(key.key_id, bytes(key.private_key), settings.SECRET_KEY)


def public_keys() -> dict[str, str]:
    """Key id -> base64 of the raw key, of all keys that workers are to trust."""
    signing_key()
    keys = ServerKey.objects.filter(retired_at=None).order_by("created_at")
    return {key.key_id: base64.b64encode(bytes(key.public_key)).decode() for key in keys}


def create_key() -> ServerKey:
    """A new key, which signs from now on. Workers learn it with their next greeting."""
    private = Ed25519PrivateKey.generate()
    public_raw = private.public_key().public_bytes_raw()
    return ServerKey.objects.create(
        key_id=id_of_key(public_raw),
        public_key=public_raw,
        private_key=_fernet(settings.SECRET_KEY).encrypt(private.private_bytes_raw()),
    )


def _newest() -> ServerKey | None:
    return ServerKey.objects.filter(retired_at=None).order_by("-created_at").first()


@transaction.atomic
def _create_first() -> ServerKey:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CREATION_LOCK])
    return _newest() or create_key()


@lru_cache(maxsize=16)
def _decrypted(key_id: str, encrypted: bytes, secret: str) -> bytes:
    try:
        return _fernet(secret).decrypt(encrypted)
    except InvalidToken as error:
        raise ImproperlyConfigured(
            f"The signing key {key_id} cannot be decrypted: SWEETSPOT_SECRET_KEY is not the one it was made with. "
            "Set the old one again, or retire the key and let every host greet the server once."
        ) from error


def _fernet(secret: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"sweetspot server signing key").derive(
        secret.encode()
    )
    return Fernet(base64.urlsafe_b64encode(derived))
