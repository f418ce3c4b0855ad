"""The directory of a zip file, read in parts: Python's zipfile needs about 1 KB of memory for each file.

Source: PKWARE's APPNOTE.TXT, 4.3.12 (central directory), 4.3.14 (zip64) and 4.3.16 (end of central directory).
"""

import io
import os
import struct
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple, cast

from webapp.imports.errors import ImportRefused
from webapp.imports.reading.order import in_order

_ENTRY, _END, _END_64, _LOCATOR_64 = b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_SEARCHED = 66 * 1024  # the end has at most 22 bytes and a comment of 64 KiB
_ENTRY_BYTES, _ENDS_64 = 46, 56 + 20  # an entry without its name; the end of zip64 and its locator
_UTF_8 = 0x800


class Entry(NamedTuple):
    """A file of the archive: the key of its path, and its place in the directory."""

    order: str
    place: int
    length: int


class Directory:
    """Raises ImportRefused for a damaged archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        size, self._offset, self._end = _stated(file)
        self._begin = self._end - size
        if self._begin < 0:
            raise ImportRefused("The zip file is damaged: its directory has a wrong size.")

    def files(self) -> Iterator[Entry]:
        """One after another, without folders."""
        place = self._begin
        while place < self._end:
            self._file.seek(place)
            fixed = self._file.read(_ENTRY_BYTES)
            if len(fixed) < _ENTRY_BYTES or not fixed.startswith(_ENTRY):
                raise ImportRefused("The zip file is damaged: its directory has a wrong entry.")
            (flags,) = struct.unpack_from("<H", fixed, 8)
            lengths = struct.unpack_from("<HHH", fixed, 28)
            name = self._file.read(lengths[0])
            length = _ENTRY_BYTES + sum(lengths)
            if not name.endswith(b"/"):
                yield Entry(in_order(name.decode("utf-8" if flags & _UTF_8 else "cp437", "replace")), place, length)
            place += length

    def part(self, entries: Iterable[Entry]) -> IO[bytes]:
        """The archive with a directory of only these files, for Python's zipfile."""
        headers = [self._header(entry) for entry in entries]
        size = sum(map(len, headers))
        counts = (len(headers), len(headers), size, self._offset)
        end_64 = _END_64 + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, *counts)
        locator = _LOCATOR_64 + struct.pack("<IQI", 0, self._offset + size, 1)
        end = _END + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        tail = b"".join((*headers, end_64, locator, end))
        return cast(IO[bytes], io.BufferedReader(_WithTail(self._file, self._begin, tail)))

    def _header(self, entry: Entry) -> bytes:
        self._file.seek(entry.place)
        return self._file.read(entry.length)


class _WithTail(io.RawIOBase):
    """The first bytes of a file, followed by other bytes."""

    def __init__(self, file: IO[bytes], length: int, tail: bytes) -> None:
        super().__init__()
        self._file, self._length, self._tail = file, length, tail
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._length + len(self._tail)}
        self._place = max(0, starts[whence] + offset)
        return self._place

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        if self._place < self._length:
            self._file.seek(self._place)
            found = self._file.read(min(len(buffer), self._length - self._place))
        else:
            found = self._tail[self._place - self._length :][: len(buffer)]
        buffer[: len(found)] = found
        self._place += len(found)
        return len(found)


def _stated(file: IO[bytes]) -> tuple[int, int, int]:
    """Bytes and stated offset of the directory, and the place where it ends."""
    length = file.seek(0, os.SEEK_END)
    begin = max(0, length - _SEARCHED)
    file.seek(begin)
    tail = file.read(_SEARCHED)
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + 22:
        raise ImportRefused("The zip file is truncated: its directory is missing.")
    size, offset = struct.unpack_from("<II", tail, place + 12)
    place_64 = place - _ENDS_64
    if place_64 >= 0 and tail.startswith(_END_64, place_64) and tail.startswith(_LOCATOR_64, place_64 + 56):
        size, offset = struct.unpack_from("<QQ", tail, place_64 + 40)
        place = place_64
    return size, offset, begin + place
