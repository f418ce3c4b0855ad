"""The temporary folder of a stream in its target's directory.

recorded in the journal ─► created ─► removed after the stream, whatever happened ─► dropped from the journal
                              └── the worker was killed: removed at its next start
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.contract.base import MAX_LABEL, MAX_TEXT
from worker.contract.items import SettingRestored
from worker.journal import Journal, TemporaryFolder
from worker.kernel import mounts

log = logging.getLogger(__name__)

NAME, REMOVED = "temporary folder", "removed"  # in reports, among names and values of settings
TRIES, TRY_EVERY_S = 50, 0.1  # processes that were just killed may still write


@contextmanager
def temporary_folder(name: str, directory_fd: int, journal: Journal) -> Iterator[None]:
    """Create a folder in an open directory, and remove it with its content at the end. Raises OSError.

    A folder that cannot be removed stays in the journal. The worker tries again before the next trial and at its next
    start.
    """
    path = Path(os.readlink(f"/proc/self/fd/{directory_fd}")) / name  # noqa: PTH115 - of a descriptor
    folder = TemporaryFolder(str(path), identity(directory_fd))
    journal.save_folder(folder)
    os.mkdir(name, 0o700, dir_fd=directory_fd)
    try:
        yield
    finally:
        if note := _remove(path, directory_fd):
            log.error("%s was not removed: %s", path, note)
        else:
            journal.drop_folder(folder)


def remove_recorded(journal: Journal) -> Iterator[SettingRestored]:
    """Remove the folders that a killed worker left; yield a report item for each."""
    for folder in journal.folders():
        note = _remove_folder(folder)
        if not note:
            journal.drop_folder(folder)
        yield SettingRestored(
            at=time.time(),
            name=NAME,
            device=folder.path[-MAX_LABEL:],
            value=REMOVED,
            observed="" if note else REMOVED,
            restored=not note,
            note=note[:MAX_TEXT],
        )


def drop_folders_in(mount_point: str, journal: Journal) -> None:
    """Forget the folders of a file system that no longer exists."""
    for folder in journal.folders():
        if folder.path.startswith(f"{mount_point}/"):
            journal.drop_folder(folder)


def identity(directory_fd: int) -> str:
    """Which directory this is, of all file systems that may be mounted at its path: `f_fsid` of statfs(2) and inode."""
    return f"{os.fstatvfs(directory_fd).f_fsid}:{os.fstat(directory_fd).st_ino}"


def _remove_folder(folder: TemporaryFolder) -> str:
    """Why the folder is still there, or may be; "" if it is gone."""
    path = Path(folder.path)
    try:
        fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return f"The directory {path.parent} does not exist. {_advice(path)}"
    except OSError as error:
        return str(error)
    try:
        if folder.parent not in ("", identity(fd)):
            return f"{path.parent} is another directory than before. {_advice(path)}"
        return _remove(path, fd)
    finally:
        os.close(fd)


def _advice(path: Path) -> str:
    return f"Mount its file system, or run “sweetspot-worker forget {path}” if it is gone for good."


def _remove(path: Path, directory_fd: int) -> str:
    """Why the folder is still there; "" if it is gone."""
    problem = ""
    for _ in range(TRIES):
        if path.name not in os.listdir(directory_fd):
            return ""
        try:
            mounts.remove_tree(path.name, directory_fd, str(path.parent))
            return ""
        except mounts.MountInside as error:
            return str(error)
        except OSError as error:
            problem = str(error)
            time.sleep(TRY_EVERY_S)
    return problem
