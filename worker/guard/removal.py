"""Remove the worker's private directory of a directory target, without following links or crossing mounts."""

import os
import shutil

from worker.guard import directories, paths
from worker.guard.refusal import GuardRefused
from worker.inventory import usage


def remove_private_directory(path: str) -> None:
    """Raises GuardRefused if it is not the worker's own, contains a mount or is in use, and OSError."""
    with paths.opened_directory(path) as outer, directories.private(outer, path) as inner:
        directories.lock(inner, f"{path}/{directories.PRIVATE}")
        _refuse_mounts(inner, path)
        shutil.rmtree(directories.PRIVATE, dir_fd=outer)


def _refuse_mounts(inner: int, path: str) -> None:
    for folder, _, _, fd in os.fwalk(".", dir_fd=inner):
        if usage.mount_id(fd) != usage.mount_id(inner):
            raise GuardRefused("guard_mounted", f"{path}/{directories.PRIVATE}/{folder} is a mount point: unmount it.")
