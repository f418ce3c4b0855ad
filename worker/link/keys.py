"""What this host knows of its server: the public keys as they come over the wire, and the enrolment that keeps them."""

import base64
import binascii
import threading
from collections.abc import Mapping

import msgspec

from worker.contract.signing import key_id
from worker.link.enrolment import ConfigError, Enrolment, Paths, save_enrolment


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


class EnrolmentStore:
    """The enrolment in memory and on disk. Changed whole or not at all, from any thread."""

    def __init__(self, paths: Paths, enrolment: Enrolment) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self.enrolment = enrolment

    def change(self, **changes: object) -> None:
        """Raises OSError where it cannot be written; then nothing has changed."""
        with self._lock:
            changed: Enrolment = msgspec.structs.replace(self.enrolment, **changes)
            save_enrolment(self._paths, changed)
            self.enrolment = changed
