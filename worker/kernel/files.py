"""Files of the worker: small states, replaced as a whole; the reserved space; unwritten parts of test files."""

import errno
import fcntl
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

UNFINISHED = ".new"  # suffix of a file that is being written


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file's content: readers see either the old or the new content. Raises OSError.

    Makes the folder if needed. The new content may be lost in a power cut. After an error, the old content stays.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(UNFINISHED)
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise


def save_state(path: Path, state: object) -> None:
    """Write a struct as JSON, as `write_whole` does. Raises OSError."""
    write_whole(path, msgspec.json.encode(state))


def load_state(path: Path, kind: type[T]) -> T | None:
    """What `save_state` wrote; None if it is missing or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def is_foreign(facts: os.stat_result) -> bool:
    """Whether neither root nor the worker's user owns the file: the owner could change it."""
    return facts.st_uid not in (0, os.geteuid())


# Reserved space on the disk of the state directory, so that journal, restoring and final reports work on a full disk.
#
#     held ─► the disk is full ─► freed for journal, restoring and final reports ─► held again when there is space
#
# While it is not held, the worker begins no trial, purge or change by hand, because it could not record how to undo
# it.

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


# Unwritten parts of a file: holes, and extents that are allocated but were never written.
#
# The file system answers reads of such parts with zeros from memory and does not read the drive. This module does not
# find extents that are compressed, shared with other files, or stored inside the inode. After a trial, the device's
# counters show reads of such extents. `shared_bytes` finds the extents that a file shares with others.
#
# Sources: Documentation/filesystems/fiemap.rst and include/uapi/linux/fiemap.h of the Linux kernel; lseek(2).

_FIEMAP = 0xC020660B  # FS_IOC_FIEMAP
_SYNC = 0x1  # FIEMAP_FLAG_SYNC: write the file's dirty pages first, because they may still be marked as unwritten
_LAST, _UNWRITTEN, _SHARED = 0x1, 0x800, 0x2000  # flags of an extent
_HEAD = struct.Struct("=QQLLLL")  # start, length, flags, mapped extents, size of the array, reserved
_EXTENT = struct.Struct("=QQQ16xL12x")  # logical offset, physical offset, length, flags
_AT_ONCE = 512  # extents of one call
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EBADR)


def unwritten_bytes(fd: int, length: int) -> int:
    """Bytes of the first `length` bytes of an open file that were never written. Raises OSError."""
    try:
        return length - sum(size for size, flags in _mapped(fd, length) if not flags & _UNWRITTEN)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return length - _written_by_seeking(fd, length)


def shared_bytes(fd: int, length: int) -> int | None:
    """Bytes of the first `length` bytes of an open file that other files or snapshots share; None if the file system
    does not tell. Raises OSError."""
    try:
        return sum(size for size, flags in _mapped(fd, length) if flags & _SHARED)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return None


def _mapped(fd: int, length: int) -> Iterator[tuple[int, int]]:
    """Bytes and flags of each extent in the first `length` bytes."""
    start = 0
    while start < length:
        extents = _extents(fd, start, length - start)
        for offset, size, flags in extents:
            start = offset + size
            yield max(0, min(start, length) - offset), flags
        if not extents or extents[-1][2] & _LAST:
            break


def _extents(fd: int, start: int, length: int) -> list[tuple[int, int, int]]:
    """The next extents: offset, length and flags of each."""
    buffer = bytearray(_HEAD.size + _AT_ONCE * _EXTENT.size)
    _HEAD.pack_into(buffer, 0, start, length, _SYNC, 0, _AT_ONCE, 0)
    fcntl.ioctl(fd, _FIEMAP, buffer)
    count = _HEAD.unpack_from(buffer)[3]
    extents = (_EXTENT.unpack_from(buffer, _HEAD.size + number * _EXTENT.size) for number in range(count))
    return [(offset, size, flags) for offset, _, size, flags in extents]


def _written_by_seeking(fd: int, length: int) -> int:
    """For file systems without FIEMAP (tmpfs, NFS, ZFS). Those without holes report the whole file as data."""
    written = start = 0
    while start < length:
        try:
            data = os.lseek(fd, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data after `start`
                break
            raise
        start = os.lseek(fd, data, os.SEEK_HOLE)
        written += max(0, min(start, length) - data)
    return written


def unwritten_words(path: str, unwritten: int, length: int) -> str:
    """`61 % of FILE is unwritten: reads of it would not reach the drive.`"""
    percent = 100 * unwritten / length
    shown = "All" if unwritten == length else f"{percent:.0f} %" if percent >= 1 else "Less than 1 %"
    return f"{shown} of {path} is unwritten (holes, or space without data): reads of it would not reach the drive."
