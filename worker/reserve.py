"""Reserved space on the disk of the state directory, so that journal, restoring and final reports work on a full disk.

    held ─► the disk is full ─► freed for journal, restoring and final reports ─► held again when there is space

While it is not held, the worker begins no trial, purge or change by hand, because it could not record how to undo it.
"""

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

STATE_DISK_FULL = "state_disk_full"  # code of errors
FILE = "journal.reserve"  # its name in the state directory
RESERVE_BYTES = 8 * 1024 * 1024
ENOUGH_BYTES = 2 * 1024 * 1024  # with less free space, the disk counts as full
_FULL = (errno.ENOSPC, errno.EDQUOT)
# SQLite cannot write, or cannot create the files that it needs for reading.
_SQLITE_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def is_full_disk(error: BaseException) -> bool:
    """Whether a full disk may have caused this error."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_FULL
    return isinstance(error, OSError) and error.errno in _FULL


class Reserve:
    """A file without content. No method raises."""

    def __init__(self, path: Path, *, size_bytes: int = RESERVE_BYTES) -> None:
        self._path = path
        self._size_bytes = size_bytes

    def hold(self) -> bool:
        """Create it if there is space for it; True if it is held."""
        if self._is_whole():
            return True
        if self._free_bytes() < self._size_bytes + ENOUGH_BYTES:
            return False
        with suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(fd, 0, self._size_bytes)
            finally:
                os.close(fd)
        return self._is_whole()

    def free(self) -> bool:
        """Free it; False if it was not held."""
        with suppress(OSError):
            self._path.unlink()
            return True
        return False

    def free_if_needed(self) -> None:
        """Call before work that must write to the disk."""
        if self.is_disk_full:
            self.free()

    @property
    def is_disk_full(self) -> bool:
        return self._free_bytes() < ENOUGH_BYTES

    def explains(self, error: BaseException) -> bool:
        """Whether this disk, and not another one, is full and may have caused the error."""
        return is_full_disk(error) and self.is_disk_full

    def _is_whole(self) -> bool:
        with suppress(OSError):
            return self._path.stat().st_blocks * 512 >= self._size_bytes
        return False

    def _free_bytes(self) -> int:
        with suppress(OSError):
            facts = os.statvfs(self._path.parent)
            return facts.f_bavail * facts.f_frsize
        return 0
