"""Secrets of webhooks, and the signature that a receiver checks with them."""

import hashlib
import hmac
import secrets

from cryptography.fernet import InvalidToken
from django.conf import settings

from webapp.core.tokens import fernet
from webapp.notices.failure import Failure

_PURPOSE = b"sweetspot webhook secret"


def new_secret() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def sealed(secret: str) -> bytes:
    """The encrypted secret for the database."""
    return fernet(settings.SECRET_KEY, purpose=_PURPOSE).encrypt(secret.encode())


def unsealed(kept: bytes | memoryview) -> str:
    """The decrypted secret. Raises Failure if the server's secret key has changed."""
    try:
        return fernet(settings.SECRET_KEY, purpose=_PURPOSE).decrypt(bytes(kept)).decode()
    except InvalidToken as error:
        words = "The server's secret key has changed, so the webhook's secret cannot be read. Renew the secret."
        raise Failure(words, refused=True) from error


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`v1=` and HMAC-SHA256 of timestamp, a dot and the body, in hex."""
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"
