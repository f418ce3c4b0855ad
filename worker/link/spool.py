"""Keep numbered batches on disk until the server has confirmed them.

Batches of an attempt are numbered from 1 without gaps. A batch is deleted when it is
confirmed. A batch that the server refuses is set aside: `doctor` lists it, and it is
deleted after 30 days.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from worker.kernel.files import is_full_disk

KEEP_S = 30 * 86400
RESERVE_BYTES = 32 * 1024 * 1024  # left free for final batches and for other programs

_TABLES = """
create table if not exists attempts (
    attempt text primary key,
    last_seq integer not null default 0,  -- highest number given
    finished integer not null default 0,  -- its last item is in a batch
    refusal text not null default '',     -- code with which the server refused it
    changed_at real not null
) without rowid;
create table if not exists batches (
    attempt text not null, seq integer not null, body blob not null, primary key (attempt, seq)
) without rowid;
create table if not exists set_aside (
    attempt text not null, seq integer not null, body blob not null,
    code text not null, message text not null, at real not null, primary key (attempt, seq)
) without rowid;
"""


class SpoolFull(Exception):
    """The disk is too full for more batches; spooled batches stay."""

    code = "spool_full"


class Spooled(msgspec.Struct, frozen=True):
    """One batch as it lies on disk; `body` is a contract Batch as JSON text."""

    attempt: str
    seq: int
    body: bytes


class SetAside(msgspec.Struct, frozen=True):
    """Refused batches of one attempt."""

    attempt: str
    batches: int
    bytes: int
    code: str
    message: str
    at: float


class Spool:
    """Safe to use from several threads."""

    def __init__(self, path: Path, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        self._directory = path.parent
        self._reserve_bytes = reserve_bytes
        self._lock = threading.RLock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            path.chmod(0o600)
            # Full: a batch is on the disk before it is sent. After a power cut its number would otherwise be given
            # again, and the server would take the new batch for the one that it has.
            self._db.executescript("pragma journal_mode=wal; pragma synchronous=full;" + _TABLES)
        except (sqlite3.OperationalError, OSError) as error:
            if not is_full_disk(error):
                raise
            raise SpoolFull(f"{path} cannot be opened: {error}.") from error
        self._prune()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def append(self, attempt: str, items: Sequence[bytes], *, last: bool = False) -> int:
        """Write encoded items as the attempt's next batch; returns its number. Raises SpoolFull.

        The last batch of an attempt is small and may use the reserve.
        """
        with self._lock:
            if not last and not self.has_space():
                raise SpoolFull(f"Less than {self._reserve_bytes >> 20} MiB are free in {self._directory}.")
            try:
                return self._append(attempt, items, last=last)
            except sqlite3.OperationalError as error:
                raise SpoolFull(f"Nothing can be written to {self._directory}: {error}.") from error

    def _append(self, attempt: str, items: Sequence[bytes], *, last: bool) -> int:
        with self._transaction():
            refusal, seq = self._next(attempt)
            body = b'{"attempt":"%b","seq":%d,"items":[%b]}' % (attempt.encode(), seq, b",".join(items))
            if refusal:
                row = (attempt, seq, body, refusal, "The attempt had been refused before.", time.time())
                self._db.execute("insert into set_aside values (?, ?, ?, ?, ?, ?)", row)
            else:
                self._db.execute("insert into batches values (?, ?, ?)", (attempt, seq, body))
            self._db.execute(
                "insert into attempts values (?, ?, ?, '', ?) on conflict (attempt) do update "
                "set last_seq = excluded.last_seq, finished = excluded.finished, changed_at = excluded.changed_at",
                (attempt, seq, last, time.time()),
            )
        return seq

    def _next(self, attempt: str) -> tuple[str, int]:
        row = self._db.execute("select refusal, last_seq from attempts where attempt = ?", (attempt,)).fetchone()
        return (row[0], row[1] + 1) if row else ("", 1)

    def waiting(self, *, limit_bytes: int, limit_batches: int = 1000) -> list[Spooled]:
        """Unconfirmed batches, each attempt's in order, at least one and up to about `limit_bytes`."""
        chosen: list[Spooled] = []
        size = 0
        with self._lock:
            rows = self._db.execute("select attempt, seq, body from batches order by attempt, seq")
            for attempt, seq, body in rows:
                size += len(body)
                if chosen and (size > limit_bytes or len(chosen) == limit_batches):
                    break
                chosen.append(Spooled(attempt, seq, body))
            rows.close()
        return chosen

    def confirm(self, attempt: str, seq: int) -> None:
        """Delete batches up to `seq`: the server has committed them. On a full disk they stay and are sent again."""
        with self._lock, _full_disk_ignored():
            self._db.execute("delete from batches where attempt = ? and seq <= ?", (attempt, seq))

    def oldest(self, attempt: str) -> int | None:
        """Number of the oldest unconfirmed batch."""
        with self._lock:
            row = self._db.execute("select min(seq) from batches where attempt = ?", (attempt,)).fetchone()
        return row[0] if row else None

    def refuse(self, attempt: str, code: str, message: str) -> int:
        """Set the attempt's unconfirmed and later batches aside; returns the number of unconfirmed ones.

        0 on a full disk: they stay, are sent again and refused again.
        """
        now = time.time()
        with self._lock, _full_disk_ignored(), self._transaction():
            self._db.execute(
                "insert into attempts values (?, 0, 0, ?, ?) on conflict (attempt) do update "
                "set refusal = excluded.refusal, changed_at = excluded.changed_at",
                (attempt, code, now),
            )
            self._db.execute(
                "insert or ignore into set_aside select attempt, seq, body, ?, ?, ? from batches where attempt = ?",
                (code, message, now, attempt),
            )
            return self._db.execute("delete from batches where attempt = ?", (attempt,)).rowcount
        return 0

    def is_finished(self, attempt: str) -> bool:
        """The attempt's last item has been spooled, whether or not it is confirmed."""
        return bool(self._value("select finished from attempts where attempt = ?", attempt))

    def knows(self, attempt: str) -> bool:
        """A batch of the attempt has been spooled."""
        return self._value("select last_seq from attempts where attempt = ?", attempt) is not None

    def unconfirmed(self) -> tuple[str, ...]:
        """Attempts with batches on disk."""
        with self._lock:
            return tuple(row[0] for row in self._db.execute("select distinct attempt from batches"))

    @property
    def empty(self) -> bool:
        """No batch is waiting for the server."""
        with self._lock:
            return self._db.execute("select 1 from batches limit 1").fetchone() is None

    def backlog(self) -> tuple[int, int]:
        """Unconfirmed batches and their bytes."""
        with self._lock:
            row = self._db.execute("select count(*), coalesce(sum(length(body)), 0) from batches").fetchone()
        return row[0], row[1]

    def set_aside(self) -> tuple[SetAside, ...]:
        with self._lock:
            rows = self._db.execute(
                "select attempt, count(*), sum(length(body)), min(code), min(message), max(at) "
                "from set_aside group by attempt order by max(at) desc"
            ).fetchall()
        return tuple(SetAside(*row) for row in rows)

    def has_space(self) -> bool:
        """More than the reserve is free."""
        return self.free_bytes() >= self._reserve_bytes

    def free_bytes(self) -> int:
        """Space left for the spool on its file system."""
        return free_bytes(self._directory)

    def _value(self, query: str, attempt: str) -> int | None:
        with self._lock:
            row = self._db.execute(query, (attempt,)).fetchone()
        return row[0] if row else None

    def _prune(self) -> None:
        """Delete confirmed and set-aside records older than `KEEP_S`. A full disk is no error here."""
        before = time.time() - KEEP_S
        with _full_disk_ignored():
            self._db.execute("delete from set_aside where at < ?", (before,))
            self._db.execute(
                "delete from attempts where changed_at < ? and attempt not in (select attempt from batches)", (before,)
            )

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._db)


@contextmanager
def _full_disk_ignored() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if not is_full_disk(error):
            raise


def free_bytes(directory: Path) -> int:
    facts = os.statvfs(directory)
    return facts.f_bavail * facts.f_frsize


class _Transaction:
    """A context manager: commit at the end, roll back after an exception."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("begin immediate")

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            try:
                self._db.execute("commit")
            except sqlite3.OperationalError:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        with suppress(sqlite3.OperationalError):  # SQLite may have done it
            self._db.execute("rollback")
