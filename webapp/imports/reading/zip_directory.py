"""Zip files: their directory, and the data of each file.

Python's zipfile is not used: it needs about 1 KB of memory for each file, and unpacks bzip2 and LZMA in one step, so
that a kilobyte may become gigabytes of memory.

Source: PKWARE's APPNOTE.TXT, 4.3.7 (local header), 4.3.12 (central directory), 4.3.14 (zip64), 4.3.16 (end of central
directory), 4.4.5 (methods) and 4.5.3 (zip64 in entries).
"""

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

import msgspec

from webapp.imports.reading.limits import Budget
from webapp.imports.reading.order import in_order
from webapp.imports.reading.unpacking import New, Stream, Unpacked, bzip2, deflate
from webapp.imports.values import ImportRefused

_LOCAL, _ENTRY, _END, _END_64, _LOCATOR_64 = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_SEARCHED = 66 * 1024  # the end has at most 22 bytes and a comment of 64 KiB
_ENTRY_BYTES, _LOCAL_BYTES, _ENDS_64 = 46, 30, 56 + 20  # without names; the end of zip64 and its locator
_ENCRYPTED, _UTF_8 = 0x1, 0x800
_STORED, _METHODS = 0, {8: deflate, 12: bzip2}
_IN_ZIP64, _ZIP64 = 0xFFFFFFFF, 1


class Place(NamedTuple):
    """Where the directory has an entry. Sorts by the path of its file."""

    order: str
    place: int
    length: int


class ZipEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file as the directory states it."""

    name: str
    method: int
    crc: int
    packed_bytes: int
    size: int
    offset: int  # of its local header
    is_link: bool
    is_encrypted: bool


class Directory:
    """Raises ImportRefused for a damaged archive."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file, self._budget = file, budget
        size, offset, self._end = _stated(file)
        self._begin = self._end - size
        if self._begin < 0:
            raise _damaged("its directory has a wrong size")
        self._shift = self._begin - offset  # other bytes may precede the archive

    def places(self) -> Iterator[Place]:
        """One after another, without folders. Raises Exhausted. Raises ImportRefused at the end if files share bytes:
        the bytes of one file, unpacked for thousands of names (D. Fifield, "A better zip bomb", WOOT 2019)."""
        place, data_bytes = self._begin, 0
        while place < self._end:
            entry, length = self._entry(place)
            self._budget.count_entry(len(entry.name))
            data_bytes += _LOCAL_BYTES + entry.packed_bytes
            if not entry.name.endswith("/"):
                yield Place(in_order(entry.name), place, length)
            place += length
        if data_bytes > self._begin:
            raise ImportRefused("The zip file has files that share their bytes.", code="import_zip_overlap")

    def entry(self, place: Place) -> ZipEntry:
        return self._entry(place.place)[0]

    def open(self, entry: ZipEntry) -> Stream:
        """The unpacked data. Raises ImportRefused, also while it is read: for a wrong size or checksum."""
        offset = entry.offset + self._shift
        self._file.seek(max(0, offset))
        header = self._file.read(_LOCAL_BYTES)
        if offset < 0 or len(header) < _LOCAL_BYTES or not header.startswith(_LOCAL):
            raise _not_unpacked("its header is missing")
        begin = offset + _LOCAL_BYTES + sum(struct.unpack_from("<HH", header, 26))
        if begin + entry.packed_bytes > self._begin:
            raise _not_unpacked("it is truncated")
        stored = _Stored(self._file, begin, entry.packed_bytes)
        if entry.method == _STORED:
            return _Checked(_Counted(stored, self._budget), entry)
        new: New | None = _METHODS.get(entry.method)
        if new is None:
            raise ImportRefused("The file is packed with a method that is not read. Use deflate.", code="import_method")
        return _Checked(Unpacked(stored, new, self._budget, parts=False), entry)

    def _entry(self, place: int) -> tuple[ZipEntry, int]:
        """An entry and its length in the directory."""
        self._file.seek(place)
        fixed = self._file.read(_ENTRY_BYTES)
        if len(fixed) < _ENTRY_BYTES or not fixed.startswith(_ENTRY):
            raise _damaged("its directory has a wrong entry")
        flags, method = struct.unpack_from("<HH", fixed, 8)
        crc, packed_bytes, size, name_bytes, extra_bytes, comment_bytes = struct.unpack_from("<IIIHHH", fixed, 16)
        attributes, offset = struct.unpack_from("<II", fixed, 38)
        name = self._file.read(name_bytes)
        if _IN_ZIP64 in (packed_bytes, size, offset):
            extra = self._file.read(extra_bytes)
            size, packed_bytes, offset = _with_zip64(extra, size, packed_bytes, offset)
        entry = ZipEntry(
            name=name.decode("utf-8" if flags & _UTF_8 else "cp437", "replace"),
            method=method, crc=crc, packed_bytes=packed_bytes, size=size, offset=offset,
            is_link=stat.S_ISLNK(attributes >> 16), is_encrypted=bool(flags & _ENCRYPTED),
        )  # fmt: skip
        return entry, _ENTRY_BYTES + name_bytes + extra_bytes + comment_bytes


def _with_zip64(extra: bytes, *fields: int) -> list[int]:
    """The fields in their order; those that do not fit into 32 bits are in the extra field."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        if kind == _ZIP64:
            values = iter(struct.unpack_from(f"<{min(length, len(extra) - place - 4) // 8}Q", extra, place + 4))
            sizes = [next(values, None) if field == _IN_ZIP64 else field for field in fields]
            if None in sizes:
                raise _damaged("an entry lacks its size")
            return [field for field in sizes if field is not None]
        place += 4 + length
    return list(fields)


class _Stored:
    """The packed bytes of a file."""

    def __init__(self, file: IO[bytes], begin: int, length: int) -> None:
        self._file, self._place, self._end = file, begin, begin + length

    def read(self, count: int) -> bytes:
        self._file.seek(self._place)
        data = self._file.read(min(count, self._end - self._place))
        self._place += len(data)
        return data


class _Counted:
    def __init__(self, stream: Stream, budget: Budget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, count: int) -> bytes:
        data = self._stream.read(count)
        self._budget.count_unpacked(len(data))
        return data


class _Checked:
    """Raises ImportRefused if the data are not what the directory states."""

    def __init__(self, stream: Stream, entry: ZipEntry) -> None:
        self._stream, self._entry = stream, entry
        self._bytes = self._crc = 0

    def read(self, count: int) -> bytes:
        data = self._stream.read(count)
        self._bytes += len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self._bytes > self._entry.size or (len(data) < count and self._bytes < self._entry.size):
            raise _not_unpacked("its size is not the stated one")
        if len(data) < count and self._crc != self._entry.crc:
            raise _not_unpacked("its checksum (CRC) is wrong")
        return data


def _stated(file: IO[bytes]) -> tuple[int, int, int]:
    """Bytes and stated offset of the directory, and the place where it ends."""
    length = file.seek(0, os.SEEK_END)
    begin = max(0, length - _SEARCHED)
    file.seek(begin)
    tail = file.read(_SEARCHED)
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + 22:
        raise ImportRefused("The zip file is truncated: its directory is missing.", code="import_truncated")
    size, offset = struct.unpack_from("<II", tail, place + 12)
    place_64 = place - _ENDS_64
    if place_64 >= 0 and tail.startswith(_END_64, place_64) and tail.startswith(_LOCATOR_64, place_64 + 56):
        size, offset = struct.unpack_from("<QQ", tail, place_64 + 40)
        place = place_64
    return size, offset, begin + place


def _damaged(why: str) -> ImportRefused:
    return ImportRefused(f"The zip file is damaged: {why}.", code="import_damaged")


def _not_unpacked(why: str) -> ImportRefused:
    return ImportRefused(f"The file cannot be unpacked: {why}.", code="import_damaged")
