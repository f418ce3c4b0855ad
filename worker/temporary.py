"""The temporary folder of a stream in its target's directory.

recorded in the journal ─► created ─► removed after the stream, whatever happened ─► dropped from the journal
                              └── the worker was killed: removed at its next start
"""

import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.contract.items import SettingRestored
from worker.journal import Journal
from worker.text_limits import MAX_LABEL, MAX_TEXT

log = logging.getLogger(__name__)

NAME, REMOVED = "temporary folder", "removed"  # in reports, among names and values of settings
TRIES, TRY_EVERY_S = 50, 0.1  # processes that were just killed may still write


@contextmanager
def temporary_folder(name: str, directory_fd: int, journal: Journal) -> Iterator[None]:
    """Create a folder in an open directory, and remove it with its content at the end. Raises OSError.

    A folder that cannot be removed stays in the journal. The next start of the worker tries again.
    """
    path = Path(os.readlink(f"/proc/self/fd/{directory_fd}")) / name  # noqa: PTH115 - of a descriptor
    journal.save_folder(str(path))
    os.mkdir(name, 0o700, dir_fd=directory_fd)
    try:
        yield
    finally:
        if note := _remove(name, directory_fd):
            log.error("%s was not removed: %s", path, note)
        else:
            journal.drop_folder(str(path))


def remove_recorded(journal: Journal) -> Iterator[SettingRestored]:
    """Remove the folders that a killed worker left; yield a report item for each."""
    for path in map(Path, journal.folders()):
        note = _remove_path(path)
        if not note:
            journal.drop_folder(str(path))
        yield SettingRestored(
            at=time.time(),
            name=NAME,
            device=str(path)[-MAX_LABEL:],
            value=REMOVED,
            observed="" if note else REMOVED,
            restored=not note,
            note=note[:MAX_TEXT],
        )


def _remove_path(path: Path) -> str:
    """Why the folder is still there; "" if it is gone, also with the file system of a layout."""
    try:
        fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)
    try:
        return _remove(path.name, fd)
    finally:
        os.close(fd)


def _remove(name: str, directory_fd: int) -> str:
    """Links in the folder are removed, not followed."""
    problem = ""
    for _ in range(TRIES):
        if name not in os.listdir(directory_fd):
            return ""
        try:
            shutil.rmtree(name, dir_fd=directory_fd)
            return ""
        except OSError as error:
            problem = str(error)
            time.sleep(TRY_EVERY_S)
    return problem
