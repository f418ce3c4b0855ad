"""Tokens of people and machines: 256 random bits, of which the server stores only the SHA-256.

A fast hash is enough: 256 random bits cannot be guessed, unlike a password.
"""

import base64
import hashlib
import secrets

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

# Encrypts secrets that the server must be able to read again, so that a copy of the database alone reveals none.
#
# Each purpose has a Fernet key of its own, derived from the secret key of the settings by HKDF-SHA256.


def fernet(secret_key: str, *, purpose: bytes) -> Fernet:
    """The cipher for one purpose. Data of another purpose or another secret key raise InvalidToken."""
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


RANDOM_BYTES = 32


def new_token() -> tuple[str, str]:
    """A new token, as (plain text to hand over once, hash to keep).

    Hex digits, because people paste it into command lines: base64 may begin with a dash, which reads as an option.
    """
    plain = secrets.token_hex(RANDOM_BYTES)
    return plain, hash_token(plain)


def hash_token(plain: str) -> str:
    """The SHA-256 of a token as 64 hex digits, by which it is stored and looked up."""
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
