"""Encrypts secrets that the server must be able to read again, so that a copy of the database alone reveals none.

Each purpose has a Fernet key of its own, derived from the secret key of the settings by HKDF-SHA256.
"""

import base64

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def fernet(secret_key: str, *, purpose: bytes) -> Fernet:
    """The cipher for one purpose. Data of another purpose or another secret key raise InvalidToken."""
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
