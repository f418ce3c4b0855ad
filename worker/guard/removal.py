"""Remove the worker's private directory of a directory target, without following links or crossing mounts."""

from worker import mounts
from worker.guard import directories, paths
from worker.guard.refusal import GuardRefused


def remove_private_directory(path: str) -> None:
    """Raises GuardRefused if it is not the worker's own, contains a mount or is in use, and OSError."""
    with paths.opened_directory(path) as outer, directories.private(outer, path) as inner:
        directories.lock(inner, f"{path}/{directories.PRIVATE}")
        try:
            mounts.remove_tree(directories.PRIVATE, outer, path)
        except mounts.MountInside as error:
            raise GuardRefused(error.code, str(error)) from error
