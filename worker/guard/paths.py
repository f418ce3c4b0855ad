"""Open paths without following links, and make sure that nobody else can replace them."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from worker.guard.refusal import GuardRefused

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_directory(path: str) -> Iterator[int]:
    """A descriptor of the directory. Each component is opened in the one before it, and none may be a link.

    Every directory in the path must belong to root or the worker's user, and nobody else may rename in it.
    """
    fd = os.open("/", _DIRECTORY)
    try:
        so_far = ""
        for part in path.strip("/").split("/") if path != "/" else ():
            _refuse_exchangeable(so_far or "/", os.fstat(fd), part)
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
                "guard_path", f"{so_far} is a symbolic link. Write the real path into the policy."
            ) from error
        raise GuardRefused("guard_path", f"{so_far}: {error.strerror}.") from error


def _is_link(fd: int, part: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _refuse_exchangeable(path: str, facts: os.stat_result, part: str) -> None:
    if facts.st_uid not in (0, os.geteuid()):
        raise GuardRefused(
            "guard_path",
            f"{path} belongs to user {facts.st_uid}, who could exchange {part!r} in it. Use another place.",
        )
    if facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX:
        raise GuardRefused(
            "guard_path", f"{path} can be written by others, who could exchange {part!r} in it: chmod go-w {path}"
        )


def refuse_open_to_others(path: str, facts: os.stat_result) -> None:
    """Refuse a target that belongs to another user, or that others can write."""
    if facts.st_uid not in (0, os.geteuid()):
        raise GuardRefused(
            "guard_path",
            f"{path} belongs to user {facts.st_uid}; it must belong to root or to the worker's user ({os.geteuid()}).",
        )
    if facts.st_mode & 0o022:
        raise GuardRefused(
            "guard_path", f"{path} can be written by others (mode {stat.S_IMODE(facts.st_mode):o}): chmod go-w {path}"
        )


def refuse_odd_file(shown: str, facts: os.stat_result) -> None:
    """Refuse anything but a regular file with a single name."""
    if not stat.S_ISREG(facts.st_mode):
        raise GuardRefused("guard_path", f"{shown} is not a regular file. Remove it.")
    if facts.st_nlink != 1:
        raise GuardRefused(
            "guard_path", f"{shown} has {facts.st_nlink} names (hard links): writing it would change the others, too."
        )
