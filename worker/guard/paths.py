"""Open paths without following links, and make sure that no other user can replace them."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from worker.guard.refusal import GuardRefused

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_directory(path: str) -> Iterator[int]:
    """A descriptor of the directory. Each component is opened relative to its parent and must not be a link.

    Each directory in the path must belong to root or the worker's user, and no other user may rename files in it.
    """
    fd = os.open("/", _DIRECTORY)
    try:
        so_far = ""
        for part in path.strip("/").split("/") if path != "/" else ():
            _refuse_replaceable(so_far or "/", os.fstat(fd), part)
            so_far += f"/{part}"
            inner = _open_inside(fd, part, so_far)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _open_inside(fd: int, part: str, so_far: str) -> int:
    try:
        return os.open(part, _DIRECTORY, dir_fd=fd)
    except OSError as error:
        if _is_link(fd, part):
            raise GuardRefused(
                "guard_path", f"{so_far} is a symbolic link. Use the real path in the policy."
            ) from error
        raise GuardRefused("guard_path", f"{so_far}: {error.strerror}.") from error


def _is_link(fd: int, part: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _refuse_replaceable(path: str, facts: os.stat_result, part: str) -> None:
    if facts.st_uid not in (0, os.geteuid()):
        raise GuardRefused(
            "guard_path",
            f"{path} belongs to user {facts.st_uid}, who could replace {part!r} in it. Use another directory.",
        )
    if facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX:
        raise GuardRefused(
            "guard_path", f"{path} is writable by other users, who could replace {part!r} in it: chmod go-w {path}"
        )


def refuse_open_to_others(path: str, facts: os.stat_result) -> None:
    """Refuse a target that belongs to another user or is writable by other users."""
    if facts.st_uid not in (0, os.geteuid()):
        raise GuardRefused(
            "guard_path",
            f"{path} belongs to user {facts.st_uid}; it must belong to root or to the worker's user ({os.geteuid()}).",
        )
    if facts.st_mode & 0o022:
        raise GuardRefused(
            "guard_path", f"{path} is writable by other users (mode {stat.S_IMODE(facts.st_mode):o}): chmod go-w {path}"
        )


def refuse_odd_file(shown: str, facts: os.stat_result) -> None:
    """Refuse everything except a regular file with a single name."""
    if not stat.S_ISREG(facts.st_mode):
        raise GuardRefused("guard_path", f"{shown} is not a regular file. Remove it.")
    if facts.st_nlink != 1:
        raise GuardRefused(
            "guard_path", f"{shown} has {facts.st_nlink} names (hard links): a write would change all of them."
        )
