"""Space that the worker keeps on the disk of its state directory, for what a full disk must not prevent.

    held ─► the disk is full ─► freed for journal, restoring and final reports ─► held again when there is space

While it is not held, the worker begins no trial, purge or change by hand, because it could not record how to undo it.
"""

import os
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 8 * 1024 * 1024
ENOUGH_BYTES = 2 * 1024 * 1024  # with less free space, the disk counts as full


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
        if self._free_bytes() < ENOUGH_BYTES:
            self.free()

    def _is_whole(self) -> bool:
        with suppress(OSError):
            return self._path.stat().st_blocks * 512 >= self._size_bytes
        return False

    def _free_bytes(self) -> int:
        with suppress(OSError):
            facts = os.statvfs(self._path.parent)
            return facts.f_bavail * facts.f_frsize
        return 0
