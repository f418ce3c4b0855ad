"""gzip, bzip2, xz and deflate streams as files, unpacked in small steps so that no step exceeds a limit."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol, cast

from webapp.imports.reading.limits import Budget
from webapp.imports.values import ImportRefused

_STEP = 64 * 1024
_PACKED_STEP = 16 * 1024  # each part of a packed file copies the rest of its step
_XZ_MEMORY = 128 * 1024**2
_GZIP, _RAW = 31, -15  # zlib's `wbits`


class Stream(Protocol):
    def read(self, count: int, /) -> bytes: ...


class Decompressor(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


New = Callable[[], Decompressor]


class _Zlib:
    """zlib's object with the interface of bz2 and lzma."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _gzip() -> Decompressor:
    return cast(Decompressor, _Zlib(_GZIP))


def deflate() -> Decompressor:
    """Without the header of gzip, as in zip files."""
    return cast(Decompressor, _Zlib(_RAW))


def bzip2() -> Decompressor:
    return cast(Decompressor, bz2.BZ2Decompressor())


def _xz() -> Decompressor:
    return cast(Decompressor, lzma.LZMADecompressor(memlimit=_XZ_MEMORY))


_KINDS: tuple[tuple[bytes, New], ...] = ((b"\x1f\x8b", _gzip), (b"BZh", bzip2), (b"\xfd7zXZ\x00", _xz))
ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


def decompressor_of(head: bytes) -> New | None:
    """By the first bytes of a packed file; None for any other file."""
    return next((new for magic, new in _KINDS if head.startswith(magic)), None)


class Unpacked:
    """A packed stream as an unpacked one, which counts its bytes and its parts against the budget. `parts`: whether
    others may follow the first one, as in gzip files."""

    def __init__(self, packed: Stream, new: New, budget: Budget, *, parts: bool = True) -> None:
        self._packed, self._budget, self._new, self._parts = packed, budget, new, parts
        self._decompressor = new()
        self._packed_bytes = 0
        self._unpacked_bytes = 0

    def read(self, count: int) -> bytes:
        """As many bytes, fewer only at the end. Raises ImportRefused and Exhausted."""
        data = bytearray()
        while len(data) < count and (some := self._some(min(count - len(data), _STEP))):
            data += some
            self._unpacked_bytes += len(some)
            self._budget.count_unpacked(len(some))
            self._budget.check_ratio(self._unpacked_bytes, self._packed_bytes)
        return bytes(data)

    def _some(self, most: int) -> bytes:
        """At least one byte, or none at the end."""
        while True:
            if self._decompressor.eof:
                rest = (self._decompressor.unused_data or self._take()) if self._parts else b""
                if not rest.strip(b"\0"):
                    return b""
                self._budget.count_entry()
                self._decompressor = self._new()
                some = self._decompressor.decompress(rest, most)
            else:
                data = self._take() if getattr(self._decompressor, "needs_input", True) else b""
                some = self._decompressor.decompress(data, most)
                if not some and not data and not self._decompressor.eof:
                    raise ImportRefused("The packed file is truncated.", code="import_truncated")
            if some:
                return some

    def _take(self) -> bytes:
        data = self._packed.read(_PACKED_STEP)
        self._packed_bytes += len(data)
        return data
