"""The session of a worker process, by which the server tells two workers with one identity apart.

The state directory keeps the id of the last session that the server has accepted. A new worker sends it with its own:
the server then knows that the former worker has ended, because a state directory has one worker at a time
(`enrolment.sole_use`). The id of a worker that never reached the server, as during an upgrade, is not kept.
"""

import logging
import os
import re
import secrets
from pathlib import Path

log = logging.getLogger(__name__)

FILE = "session"  # in the state directory
_LENGTH = 32


class Session:
    """`id`: "" of a command that takes no orders. `previous`: the one that the server accepted before, "" for none."""

    def __init__(self, id: str = "", previous: str = "", *, file: Path | None = None) -> None:
        self.id = id
        self.previous = previous
        self._unsaved = file  # None: saved, or a command
        self._warned = False

    def may_carry_out(self, session: str) -> bool:
        """Whether an order for this session is for this worker. The last worker may have left it in the queue."""
        return session in ("", self.id, self.previous)

    def accepted(self) -> None:
        """Keep its id: the server has taken a message of this session, whatever its kind, so it holds the host.

        The id is written over the former one, which needs no space on a full disk.
        """
        if self._unsaved is None:
            return
        try:
            fd = os.open(self._unsaved, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, self.id.encode(), 0)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            if not self._warned:
                log.warning("The session cannot be saved: after a restart, the server waits with new orders: %s", error)
            self._warned = True
        else:
            self._unsaved = None


NO_SESSION = Session()


def begin_session(state: Path) -> Session:
    """A new session, after the last one that the server has accepted."""
    file = state / FILE
    return Session(secrets.token_hex(_LENGTH // 2), _read(file), file=file)


def _read(path: Path) -> str:
    try:
        text = path.read_bytes()[:_LENGTH].decode("ascii", "replace")
    except OSError:
        return ""
    return text if re.fullmatch(f"[0-9a-f]{{{_LENGTH}}}", text) else ""
