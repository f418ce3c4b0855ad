"""The journal on disk: orders that are not finished, and settings and layouts to restore.

    attempt:   received ──► started ──► finished ──(30 days)──► deleted
                  └──────────────────────▲        (an unreadable order: finished, its text is kept)
    baseline:  (pending ──► confirmed)* ──► dropped after the value was restored or changed by someone else
    layout:    saved before its first command ──► dropped when its drives are verified to be blank
    folder:    saved before it is created ──► dropped when it is removed
    password:  saved before a drive gets it ──► dropped when the drive is verified to have none

A person can drop an entry by its name without undoing anything: `sweetspot-worker forget NAME`.

Space for the journal is kept in reserve (worker.kernel.files), so that a full disk does not prevent an undo.

The journal is the worker's order queue: the Celery task writes to it, and the order thread reads
from it. An attempt id is accepted only once while it is stored, so an order that the broker
delivers twice is carried out once. Every change is one transaction that is on disk before the
call returns (SQLite, WAL, synchronous=FULL). If the worker is killed, the journal has the state
after the last completed call.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from worker.contract.base import Failed
from worker.kernel.files import ENOUGH_BYTES, FILE, RESERVE_BYTES, STATE_DISK_FULL, Reserve, is_full_disk
from worker.kernel.usage import current_boot_id

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = tuple[Any, ...]
REMEMBER_S = 30 * 86400
SCHEMA_VERSION = 7

_LAYOUTS = """
create table layouts (
    key text primary key,              -- part of all names that the layout creates
    run text not null,
    record text not null               -- LayoutRecord, JSON
);
"""
_PASSWORDS = """
create table passwords (
    stable_id text primary key,        -- of the drive
    serial text not null,
    device text not null,              -- kernel name when it was set
    password text not null
);
"""
_FOLDERS = """
create table folders (
    path text not null,                -- of a temporary folder in a target
    parent text not null,              -- which directory contains it; '' if that is not known
    primary key (path, parent)
) without rowid;
"""
_SCHEMA = (
    """
create table attempts (
    number integer primary key,        -- order of arrival
    attempt text not null unique,
    order_text text not null,          -- the envelope as received; '' when finished
    received_at real not null,         -- Unix time, s
    issued_at real not null default 0, -- Unix time by the server's clock, s
    started_at real,
    finished_at real
);
create table baselines (
    run text not null,
    stable_id text not null,           -- of the device
    name text not null,                -- of the setting
    device text not null,              -- kernel name at the first change
    boot_id text not null,
    survives_reboot integer not null,
    before text not null,              -- value before the first change, to restore
    written text not null,             -- read back after our last write
    pending integer not null,          -- a write was announced and has not been read back
    requested integer not null,        -- 0: changed only as a side effect of another setting
    primary key (run, stable_id, name)
) without rowid;
"""
    + _LAYOUTS
    + _PASSWORDS
    + _FOLDERS
)


_COPY_FOLDERS = "insert into folders select path, '' from earlier; drop table earlier;"

# By version: the step to the next one.
_UPGRADES = {
    1: _LAYOUTS,
    2: "alter table attempts rename column begun_at to started_at; "
    "alter table baselines rename column wished to requested;",
    3: _PASSWORDS,
    4: "alter table attempts add column issued_at real not null default 0;",
    5: _FOLDERS,
    6: f"alter table folders rename to earlier; {_FOLDERS} {_COPY_FOLDERS}",
}


class JournalError(Failed):
    """The journal cannot be used; the worker must not take orders."""


class OpenAttempt(msgspec.Struct, frozen=True):
    """A received order that is not finished. Invalid UTF-8 is replaced, so that damaged rows can be read."""

    number: int
    attempt: str
    order: str  # the envelope
    started: bool


class SetAside(msgspec.Struct, frozen=True):
    """An order that could not be read; its text is in the table `attempts`."""

    number: int
    attempt: str
    at: float  # Unix time, s


class LayoutDrive(msgspec.Struct, frozen=True):
    stable_id: str
    serial: str
    path: str  # when the layout was built


class TemporaryFolder(msgspec.Struct, frozen=True):
    path: str
    parent: str  # tells the directory from another file system's at the same path: `temporary.identity`


BY_HAND = "by-hand"  # the run id of layouts that a person built on the host and must take down


class MadeDrive(msgspec.Struct, frozen=True):
    """A controller's virtual drive; unknown values are ""."""

    name: str
    wwn: str = ""
    stable_id: str = ""  # of the kernel's block device


class LayoutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A layout that was built or is about to be built; `line` is in the format of recipes.layouts."""

    key: str
    run: str
    line: str
    drives: tuple[LayoutDrive, ...]
    mount_point: str  # "" for a raw layout
    virtual_drives: tuple[MadeDrive, ...] = ()  # those created so far, in the order of the arrays
    altered: bool = False  # a member was failed, or is about to be: no further trial may use the layout


class DrivePassword(msgspec.Struct, frozen=True, kw_only=True):
    """A password that a drive has, or is about to get, while it is erased."""

    stable_id: str
    serial: str
    device: str
    password: str


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of one device that a run has changed, or is about to change."""

    run: str
    stable_id: str
    name: str
    device: str
    boot_id: str
    survives_reboot: bool
    before: str
    written: str
    pending: bool
    requested: bool


_COLUMNS = Baseline.__struct_fields__


class Journal:
    """Safe to use from several threads. `boot_id` is the current boot's, unless a test gives another."""

    def __init__(self, path: Path, *, boot_id: str | None = None) -> None:
        self.boot_id = current_boot_id() if boot_id is None else boot_id
        self._path = path
        self._lock = threading.Lock()
        self.reserve = Reserve(path.with_name(FILE))
        self.reserve.free_if_needed()  # opening the database writes files
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
            self._db.text_factory = _text_or_bytes
            path.chmod(0o600)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            if self.reserve.explains(error):
                raise self._full() from error
            raise JournalError(
                "journal_damaged",
                f"The journal {path} cannot be read: {error}. It holds the original values of settings: keep a copy, "
                "restore the settings by hand, then delete the journal.",
            ) from error
        self.reserve.hold()

    @property
    def folder(self) -> Path:
        """The state directory."""
        return self._path.parent

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _prepare(self) -> None:
        (version,) = self._db.execute("pragma user_version").fetchone()
        if version == 0:
            self._db.executescript(f"begin immediate; {_SCHEMA} pragma user_version={SCHEMA_VERSION}; commit;")
        elif 0 < version < SCHEMA_VERSION:
            steps = " ".join(_UPGRADES[step] for step in range(version, SCHEMA_VERSION))
            self._db.executescript(f"begin immediate; {steps} pragma user_version={SCHEMA_VERSION}; commit;")
        elif version != SCHEMA_VERSION:
            raise JournalError(
                "journal_version",
                f"The journal {self._path} has version {version}, this worker supports version {SCHEMA_VERSION}. "
                "Install the worker version that wrote it, or a newer one.",
            )

    def require_reserve(self) -> None:
        """Call before work that has to be undone. Raises JournalError if the disk is too full to record it."""
        if not self.reserve.hold():
            raise self._full()

    def _full(self) -> JournalError:
        return JournalError(
            STATE_DISK_FULL,
            f"The disk of {self._path.parent} is full: the worker could not record what it has to undo. Free "
            f"{RESERVE_BYTES + ENOUGH_BYTES >> 20} MiB.",
        )

    def _change(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Make a change in one transaction. If the disk is full, free the reserve and try once more."""
        with self._lock:
            try:
                return self._changed(change)
            except sqlite3.OperationalError as error:
                if not is_full_disk(error) or not self.reserve.free():
                    raise
                log.warning("The disk of %s is full; the worker uses the space that it kept.", self._path.parent)
                return self._changed(change)

    def _changed(self, change: Callable[[sqlite3.Connection], T]) -> T:
        with self._db:
            self._db.execute("begin immediate")
            return change(self._db)

    # ---- attempts

    def receive(self, envelope: str, attempt: str, *, issued_at: float = 0.0) -> bool:
        """Save an order as it was signed; False if its attempt is already stored, finished or not."""
        now = time.time()
        insert = "insert or ignore into attempts (attempt, order_text, received_at, issued_at) values (?, ?, ?, ?)"

        def change(db: sqlite3.Connection) -> bool:
            db.execute("delete from attempts where finished_at < ?", (now - REMEMBER_S,))
            return db.execute(insert, (attempt, envelope, now, issued_at)).rowcount == 1

        return self._change(change)

    def newest_issued_at(self, *, before: str) -> float:
        """When the newest started order was issued, apart from that of the attempt `before`; 0 without one."""
        query = "select coalesce(max(issued_at), 0) from attempts where started_at is not null and attempt != ?"
        with self._lock:
            (issued_at,) = self._db.execute(query, (before,)).fetchone()
        return float(issued_at)

    def next_order(self) -> OpenAttempt | None:
        """The oldest order that has not been started."""
        return next((entry for entry in self.open_attempts() if not entry.started), None)

    def start(self, attempt: str) -> None:
        update = "update attempts set started_at = ? where attempt = ? and started_at is null"
        self._change(lambda db: db.execute(update, (time.time(), attempt)))

    def finish(self, attempt: str) -> None:
        """Call when the attempt's final item is on disk. Keeps only the attempt's id."""
        update = "update attempts set finished_at = ?, order_text = '' where attempt = ? and finished_at is null"
        self._change(lambda db: db.execute(update, (time.time(), attempt)))

    def set_aside(self, number: int) -> None:
        """Finish an order that cannot be read. Its text is kept for 30 days."""
        update = "update attempts set finished_at = ? where number = ?"
        self._change(lambda db: db.execute(update, (time.time(), number)))

    def all_set_aside(self) -> tuple[SetAside, ...]:
        """Orders that could not be read, oldest first."""
        query = (
            "select number, attempt, finished_at from attempts "
            "where finished_at is not null and order_text != '' order by number"
        )
        with self._lock:
            rows = self._db.execute(query).fetchall()
        return tuple(SetAside(number, _text(attempt), at) for number, attempt, at in rows)

    def open_attempts(self) -> tuple[OpenAttempt, ...]:
        """Orders that are received and not finished, oldest first."""
        query = (
            "select number, attempt, order_text, started_at is not null from attempts "
            "where finished_at is null order by number"
        )
        with self._lock:
            rows = self._db.execute(query).fetchall()
        return tuple(
            OpenAttempt(number, _text(name), _text(order), bool(started)) for number, name, order, started in rows
        )

    # ---- settings to restore

    def save_baselines(self, baselines: Iterable[Baseline]) -> None:
        """Write the baselines in one transaction; replace those of the same run, device and setting."""
        marks = ", ".join("?" * len(_COLUMNS))
        insert = f"insert or replace into baselines ({', '.join(_COLUMNS)}) values ({marks})"  # noqa: S608 - constants
        rows = [msgspec.structs.astuple(baseline) for baseline in baselines]
        self._change(lambda db: db.executemany(insert, rows))

    def drop_baseline(self, baseline: Baseline) -> None:
        delete = "delete from baselines where run = ? and stable_id = ? and name = ?"
        self._change(lambda db: db.execute(delete, (baseline.run, baseline.stable_id, baseline.name)))

    def baselines(self, run: str | None = None) -> tuple[Baseline, ...]:
        """All baselines, or those of one run."""
        query = f"select {', '.join(_COLUMNS)} from baselines where ? is null or run = ? order by run, device, name"  # noqa: S608
        with self._lock:
            rows = self._db.execute(query, (run, run)).fetchall()
        return tuple(_readable(rows, lambda row: dict(zip(_COLUMNS, row, strict=True)), Baseline))

    # ---- layouts to take down

    def save_layout(self, record: LayoutRecord) -> None:
        """Call before the first build command, after each new virtual drive, and before a member is failed."""
        insert = "insert or replace into layouts (key, run, record) values (?, ?, ?)"
        row = (record.key, record.run, msgspec.json.encode(record).decode())
        self._change(lambda db: db.execute(insert, row))

    def drop_layout(self, key: str) -> None:
        """Delete a layout whose drives were verified to be blank."""
        self._change(lambda db: db.execute("delete from layouts where key = ?", (key,)))

    def layouts(self, run: str | None = None) -> tuple[LayoutRecord, ...]:
        """All, or only those of one run."""
        query = "select record from layouts where ? is null or run = ? order by key"
        with self._lock:
            rows = self._db.execute(query, (run, run)).fetchall()
        return tuple(_readable(rows, lambda row: msgspec.json.decode(row[0]), LayoutRecord))

    # ---- temporary folders to remove

    def save_folder(self, folder: TemporaryFolder) -> None:
        """Call before the folder is created."""
        insert = "insert or ignore into folders (path, parent) values (?, ?)"
        self._change(lambda db: db.execute(insert, msgspec.structs.astuple(folder)))

    def drop_folder(self, folder: TemporaryFolder) -> None:
        """Call when the folder is removed."""
        delete = "delete from folders where path = ? and parent = ?"
        self._change(lambda db: db.execute(delete, msgspec.structs.astuple(folder)))

    def folders(self) -> tuple[TemporaryFolder, ...]:
        with self._lock:
            rows = self._db.execute("select path, parent from folders order by path, parent").fetchall()
        return tuple(TemporaryFolder(_text(path), parent) for path, parent in rows)

    # ---- passwords to remove

    def save_password(self, known: DrivePassword) -> None:
        """Call before the drive gets it."""
        insert = "insert or replace into passwords (stable_id, serial, device, password) values (?, ?, ?, ?)"
        self._change(lambda db: db.execute(insert, msgspec.structs.astuple(known)))

    def drop_password(self, stable_id: str) -> None:
        """Call when the drive was verified to have no password."""
        self._change(lambda db: db.execute("delete from passwords where stable_id = ?", (stable_id,)))

    def passwords(self) -> tuple[DrivePassword, ...]:
        with self._lock:
            rows = self._db.execute("select stable_id, serial, device, password from passwords").fetchall()
        columns = DrivePassword.__struct_fields__
        return tuple(_readable(rows, lambda row: dict(zip(columns, row, strict=True)), DrivePassword))

    def unreadable(self) -> int:
        """Number of settings and layouts that cannot be read; their rows are kept."""
        with self._lock:
            rows = self._db.execute(
                "select (select count(*) from baselines) + (select count(*) from layouts) "
                "+ (select count(*) from passwords)"
            )
            (count,) = rows.fetchone()
        return int(count) - len(self.baselines()) - len(self.layouts()) - len(self.passwords())


def _text_or_bytes(raw: bytes) -> str | bytes:
    """Return bytes if the text is not UTF-8, so that one damaged row does not make the others unreadable."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def _readable(rows: list[Row], content: Callable[[Row], object], kind: type[T]) -> Iterator[T]:
    """Decode the rows; skip unreadable ones."""
    for row in rows:
        try:
            yield msgspec.convert(content(row), kind, strict=False)
        except msgspec.DecodeError as error:
            log.error("A row of the journal cannot be read and is kept: %s: %s", error, row)
