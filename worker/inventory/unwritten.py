"""Unwritten parts of a file: holes, and extents that are allocated but were never written.

The file system answers reads of such parts with zeros from memory and does not read the drive. This module does not
find extents that are compressed, shared with other files, or stored inside the inode. After a trial, the device's
counters show reads of such extents.

Sources: Documentation/filesystems/fiemap.rst and include/uapi/linux/fiemap.h of the Linux kernel; lseek(2).
"""

import errno
import fcntl
import os
import struct

_FIEMAP = 0xC020660B  # FS_IOC_FIEMAP
_SYNC = 0x1  # FIEMAP_FLAG_SYNC: write the file's dirty pages first, because they may still be marked as unwritten
_LAST, _UNWRITTEN = 0x1, 0x800  # flags of an extent
_HEAD = struct.Struct("=QQLLLL")  # start, length, flags, mapped extents, size of the array, reserved
_EXTENT = struct.Struct("=QQQ16xL12x")  # logical offset, physical offset, length, flags
_AT_ONCE = 512  # extents of one call
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EBADR)


def unwritten_bytes(fd: int, length: int) -> int:
    """Bytes of the first `length` bytes of an open file that were never written. Raises OSError."""
    try:
        return length - _written_by_extents(fd, length)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return length - _written_by_seeking(fd, length)


def _written_by_extents(fd: int, length: int) -> int:
    written = start = 0
    while start < length:
        extents = _extents(fd, start, length - start)
        for offset, size, flags in extents:
            start = offset + size
            if not flags & _UNWRITTEN:
                written += max(0, min(start, length) - offset)
        if not extents or extents[-1][2] & _LAST:
            break
    return written


def _extents(fd: int, start: int, length: int) -> list[tuple[int, int, int]]:
    """The next extents: offset, length and flags of each."""
    buffer = bytearray(_HEAD.size + _AT_ONCE * _EXTENT.size)
    _HEAD.pack_into(buffer, 0, start, length, _SYNC, 0, _AT_ONCE, 0)
    fcntl.ioctl(fd, _FIEMAP, buffer)
    count = _HEAD.unpack_from(buffer)[3]
    found = (_EXTENT.unpack_from(buffer, _HEAD.size + number * _EXTENT.size) for number in range(count))
    return [(offset, size, flags) for offset, _, size, flags in found]


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
