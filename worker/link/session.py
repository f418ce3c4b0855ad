"""The session of a worker process, by which the server tells two workers with one identity apart.

The state directory keeps the ids of the sessions that the server may hold: the last one that it has accepted, and those
that began since. Of these the worker cannot know whether it holds them, because an answer can be lost. A new worker
sends them all with its own id: the server then knows that the former worker has ended, because a state directory has
one worker at a time (`enrolment.sole_use`).
"""

import logging
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from worker.contract.base import CONTRACT_VERSION
from worker.contract.items import Item
from worker.contract.reports import WorkerLog
from worker.link.spool import Spooled

log = logging.getLogger(__name__)

FILE = "session"  # in the state directory: one id in each line
_LENGTH = 32
_MOST = 16  # ids in the file
_BYTES = _MOST * (_LENGTH + 1)


class Session:
    """`id`: "" of a command that takes no orders. `earlier`: of workers that used the same state directory before."""

    def __init__(self, id: str = "", earlier: Sequence[str] = (), *, file: Path | None = None) -> None:
        self.id = id
        self.earlier = tuple(earlier)
        self._file = file  # None: kept as accepted, or a command
        self._warned = False

    def may_carry_out(self, session: str) -> bool:
        """Whether an order for this session is for this worker. An earlier worker may have left it in the queue."""
        return session in ("", self.id, *self.earlier)

    def begin(self) -> None:
        """Keep its id beside the earlier ones. Call before the first message to the server."""
        self._keep([*self.earlier, self.id])

    def accepted(self) -> None:
        """Keep its id alone: the server has taken a message of this session, of any kind, so it holds the host."""
        if self._keep([self.id]):
            self._file = None

    def _keep(self, ids: Sequence[str]) -> bool:
        if self._file is None:
            return False
        try:
            _write(self._file, ids)
        except OSError as error:
            if not self._warned:
                log.warning("The session cannot be saved: after a restart, the server waits with new orders: %s", error)
            self._warned = True
            return False
        return True


NO_SESSION = Session()


def begin_session(state: Path) -> Session:
    """A new session, after those that the server may hold."""
    file = state / FILE
    session = Session(secrets.token_hex(_LENGTH // 2), _read(file), file=file)
    session.begin()
    return session


def _read(file: Path) -> list[str]:
    try:
        text = file.read_bytes()[:_BYTES].decode("ascii", "replace")
    except OSError:
        return []
    ids = re.findall(rf"^[0-9a-f]{{{_LENGTH}}}$", text, re.MULTILINE)
    return [*ids[:1], *ids[1:][2 - _MOST :]]  # with the next one at most _MOST


def _write(file: Path, ids: Sequence[str]) -> None:
    """Write the ids over the former ones, in the same number of bytes, which needs no space on a full disk."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(fd, "".join(f"{id}\n" for id in ids).ljust(_BYTES).encode(), 0)
        os.fsync(fd)
    finally:
        os.close(fd)


# Encode reports as JSON, from batches that are JSON already.

_encoder = msgspec.json.Encoder()
_checker = msgspec.json.Decoder(Item)


def encode_item(item: Item) -> bytes:
    """Encode an item as JSON; raises msgspec.ValidationError if it exceeds the contract's limits."""
    text = _encoder.encode(item)
    _checker.decode(text)
    return text


def encode_report(
    batches: Sequence[Spooled],
    active: Sequence[str],
    *,
    spool_bytes: int = 0,
    log: WorkerLog | None = None,
    session: Session = NO_SESSION,
    version: int = CONTRACT_VERSION,
) -> bytes:
    """Encode a Report around batches that are JSON already, in the server's contract version."""
    body = {
        "batches": [msgspec.Raw(batch.body) for batch in batches],
        "active": list(active),
        "spool_bytes": spool_bytes,
        "log": log,
        "session": session.id,
        "earlier_sessions": session.earlier,
        "version": version,
    }
    return _encoder.encode(body)
