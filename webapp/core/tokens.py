"""Secrets that people and machines carry: 256 random bits, of which the server keeps only the SHA-256.

A fast hash is right here: there is nothing to guess in 256 random bits, unlike in a password.
"""

import hashlib
import secrets

RANDOM_BYTES = 32


def new_token() -> tuple[str, str]:
    """A new token, as (plain text to hand over once, hash to keep).

    Hex digits, because people paste it into command lines: base64 may begin with a dash, which reads as an option.
    """
    plain = secrets.token_hex(RANDOM_BYTES)
    return plain, hash_token(plain)


def hash_token(plain: str) -> str:
    """The 64 hex digits under which a token is stored and looked up."""
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
