"""Tokens of people and machines: 256 random bits, of which the server stores only the SHA-256.

A fast hash is enough: 256 random bits cannot be guessed, unlike a password.
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
    """The SHA-256 of a token as 64 hex digits, by which it is stored and looked up."""
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
