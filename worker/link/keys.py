"""The server's public keys, and the enrolment in which they are stored."""

import base64
import binascii
import logging
import threading
from collections.abc import Mapping, Sequence

import msgspec

from worker.contract.signing import Endorsement, endorsed, key_id
from worker.link.enrolment import ConfigError, Enrolment, Paths, save_enrolment

log = logging.getLogger(__name__)


def read_keys(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Decode keys, by id; raises ConfigError if a key does not match its id."""
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


def accepted_keys(
    known: Mapping[str, bytes], offered: Mapping[str, str], endorsements: Sequence[Endorsement]
) -> dict[str, str]:
    """The offered keys that this host knows or that a known key endorses; all known ones if that leaves none.

    So a server in the middle can withhold keys, but not add its own.
    """
    trusted = endorsed(endorsements, known)
    strangers = offered.keys() - trusted.keys()
    if strangers:
        log.error("Keys that no trusted key of the server has signed are ignored: %s", ", ".join(sorted(strangers)))
    accepted = [name for name in offered if name in trusted] or list(known)
    return {name: base64.b64encode(trusted[name]).decode() for name in accepted}


class EnrolmentStore:
    """The enrolment in memory and on disk. A change is atomic; any thread may make one."""

    def __init__(self, paths: Paths, enrolment: Enrolment) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self.enrolment = enrolment

    def change(self, **changes: object) -> None:
        """Raises OSError if it cannot be written; then nothing has changed."""
        with self._lock:
            changed: Enrolment = msgspec.structs.replace(self.enrolment, **changes)
            save_enrolment(self._paths, changed)
            self.enrolment = changed
