"""The server's public keys as they come over the wire."""

import base64
import binascii
from collections.abc import Mapping

from worker.config import ConfigError
from worker.contract.signing import key_id


def read_keys(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Raw keys by id; raises ConfigError where a key is not what its id says."""
    keys: dict[str, bytes] = {}
    for name, text in texts.items():
        try:
            raw = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ConfigError("server_key", f"The server's key {name} is not base64.") from error
        if len(raw) != 32 or key_id(raw) != name:
            raise ConfigError("server_key", f"The server's key {name} is not an Ed25519 key with that fingerprint.")
        keys[name] = raw
    return keys
