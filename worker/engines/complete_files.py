"""Records of completely written test files, so that no second trial writes them again.

A file counts as complete only if this table says so for that name, inode and content, and
the file still has its size and all its blocks: an interrupted prefill leaves no row, and a
file that was deleted and made again has another inode, or holes.
"""

import os
import sqlite3
import stat
import threading
from pathlib import Path

_TABLE = """
create table if not exists complete (
    directory text not null,  -- device:inode of the directory
    name text not null,
    inode integer not null,
    size integer not null,
    content text not null,  -- a Buffers value
    primary key (directory, name)
) without rowid
"""


class CompleteFiles:
    """Names are relative to an open directory. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        path.chmod(0o600)
        self._db.execute(_TABLE)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def holds(self, directory_fd: int, name: str, *, size: int, content: str) -> bool:
        """The file is there, whole, and filled with `content`."""
        facts = _regular(directory_fd, name)
        if facts is None or facts.st_size != size or facts.st_blocks * 512 < size:
            return False
        query = "select 1 from complete where directory = ? and name = ? and inode = ? and size = ? and content = ?"
        row = (_identity(directory_fd), name, facts.st_ino, size, content)
        with self._lock:
            return self._db.execute(query, row).fetchone() is not None

    def add(self, directory_fd: int, name: str, *, size: int, content: str) -> None:
        """The file has just been written from its first byte to its last."""
        facts = _regular(directory_fd, name)
        if facts is None or facts.st_size != size:
            return
        row = (_identity(directory_fd), name, facts.st_ino, size, content)
        with self._lock:
            self._db.execute("insert or replace into complete values (?, ?, ?, ?, ?)", row)

    def forget(self, directory_fd: int, name: str) -> None:
        """The file is about to be written in part or with something else."""
        with self._lock:
            self._db.execute("delete from complete where directory = ? and name = ?", (_identity(directory_fd), name))

    def forget_other_content(self, directory_fd: int, name: str, content: str) -> None:
        """The file is about to be overwritten, here and there, with `content`."""
        with self._lock:
            self._db.execute(
                "delete from complete where directory = ? and name = ? and content <> ?",
                (_identity(directory_fd), name, content),
            )


def _identity(directory_fd: int) -> str:
    facts = os.fstat(directory_fd)
    return f"{facts.st_dev}:{facts.st_ino}"


def _regular(directory_fd: int, name: str) -> os.stat_result | None:
    try:
        facts = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except OSError:
        return None
    return facts if stat.S_ISREG(facts.st_mode) else None
