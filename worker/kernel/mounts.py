"""Stay on one mount: nothing that is mounted inside a directory is entered, removed or written.

Each name is opened relative to an open directory, without following links, and its mount id (proc_pid_fdinfo(5)) is
compared with that of the directory. A bind mount has another mount id even if it shows the same file system.

Engines open names themselves, perhaps long after a check. So they work on a private copy of the mount, on which no
other program can mount anything.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.kernel.usage import mount_id

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

# System calls without a function in Python: open_tree(2) since Linux 5.2, mount_setattr(2) since 5.12.
# These numbers are the same on all architectures that Python supports.
_OPEN_TREE, _MOUNT_SETATTR = 428, 442
_AT_EMPTY_PATH, _OPEN_TREE_CLONE = 0x1000, 1
_MS_PRIVATE = 1 << 18
_MOUNT_ATTRIBUTES = struct.Struct("=QQQQ")  # attr_set, attr_clr, propagation, userns_fd
_call = ctypes.CDLL(None, use_errno=True).syscall


class MountInside(OSError):
    """Something is mounted inside a directory, at `point`, that would be removed or written."""

    code = "guard_mounted"

    def __init__(self, point: str) -> None:
        super().__init__(errno.EXDEV, f"{point} is a mount point: unmount it")
        self.point = point

    def __str__(self) -> str:
        return f"{self.strerror}."


@contextmanager
def isolated(directory_fd: int) -> Iterator[int]:
    """The same directory on a private copy of its mount, without anything that is or will be mounted inside it.

    Without the right to copy mounts (CAP_SYS_ADMIN), or on an older kernel, it is the given descriptor.
    """
    fd = _copy(directory_fd)
    if fd is None:
        yield directory_fd
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _copy(directory_fd: int) -> int | None:
    fd = _call(_OPEN_TREE, directory_fd, b"", _AT_EMPTY_PATH | _OPEN_TREE_CLONE | os.O_CLOEXEC)
    if fd < 0:
        return None
    private = _MOUNT_ATTRIBUTES.pack(0, 0, _MS_PRIVATE, 0)  # else later mounts would propagate to the copy
    tree = None
    try:
        if _call(_MOUNT_SETATTR, fd, b"", _AT_EMPTY_PATH, private, len(private)) == 0:
            tree = os.open(".", _DIRECTORY, dir_fd=fd)  # open_tree(2) gives an O_PATH descriptor
    finally:
        os.close(fd)
    return tree


def refuse_mounted(name: str, directory_fd: int, shown: str) -> None:
    """Raises MountInside if something is mounted over this name. `shown`: the directory's path, for the message."""
    try:
        fd = os.open(name, _NAME, dir_fd=directory_fd)
    except FileNotFoundError:
        return
    try:
        _refuse_other_mount(fd, directory_fd, f"{shown}/{name}")
    finally:
        os.close(fd)


def _refuse_other_mount(fd: int, directory_fd: int, path: str) -> None:
    if mount_id(fd) != mount_id(directory_fd):
        raise MountInside(path)


def remove_tree(name: str, directory_fd: int, shown: str) -> None:
    """Remove a directory with its content. Links in it are removed, not followed.

    Raises OSError; MountInside if something is mounted in it: then nothing was removed.
    """
    with _inner(name, directory_fd, shown) as fd:
        _refuse_mounts_below(fd, f"{shown}/{name}")
        _empty(fd, f"{shown}/{name}")
    os.rmdir(name, dir_fd=directory_fd)


def remove_path(path: Path) -> None:
    """`remove_tree` for a directory at a path without links in its last part."""
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        remove_tree(path.name, fd, str(path.parent))
    finally:
        os.close(fd)


@contextmanager
def _inner(name: str, directory_fd: int, shown: str) -> Iterator[int]:
    fd = os.open(name, _DIRECTORY, dir_fd=directory_fd)
    try:
        _refuse_other_mount(fd, directory_fd, f"{shown}/{name}")
        yield fd
    finally:
        os.close(fd)


def _entries(fd: int) -> tuple[tuple[str, bool], ...]:
    """Names, and whether each is a directory."""
    with os.scandir(fd) as entries:
        return tuple((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)


def _refuse_mounts_below(fd: int, shown: str) -> None:
    for name, is_directory in _entries(fd):
        if is_directory:
            with _inner(name, fd, shown) as inner:
                _refuse_mounts_below(inner, f"{shown}/{name}")
        else:
            refuse_mounted(name, fd, shown)


def _empty(fd: int, shown: str) -> None:
    """A name over which something was mounted just now cannot be removed: unlink(2), EBUSY."""
    for name, is_directory in _entries(fd):
        if is_directory:
            with _inner(name, fd, shown) as inner:
                _empty(inner, f"{shown}/{name}")
            os.rmdir(name, dir_fd=fd)
        else:
            os.unlink(name, dir_fd=fd)
