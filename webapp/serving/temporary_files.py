"""The directory of uploads and responses in progress, in TMPDIR. It is removed at the end, or after a crash at the
next start.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "sweetspot-web-"


class OwnDirectory:
    """The directory that `tempfile` uses in this process and in its children."""

    def __init__(self) -> None:
        _remove_left()
        self.path, self._lock = _create()  # locked until the last process of this server has ended
        tempfile.tempdir = str(self.path)

    def remove(self) -> None:
        tempfile.tempdir = None
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _create() -> tuple[Path, int]:
    """Create and lock a directory. Try again if another starting server has removed it as a leftover."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(OSError):
            lock = _lock(path)
            if path.exists():
                return path, lock
            os.close(lock)


def _remove_left() -> None:
    """Remove the directories of servers that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if path.lstat().st_uid != os.getuid():
            continue
        with suppress(OSError):  # locked by a running server
            lock = _lock(path)
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _lock(directory: Path) -> int:
    """The descriptor that holds the lock. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
