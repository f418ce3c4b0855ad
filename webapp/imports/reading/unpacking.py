"""gzip, bzip2 and xz streams as files, unpacked in small steps so that no step exceeds a limit."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol, cast

from webapp.imports.errors import ImportRefused
from webapp.imports.reading.limits import Budget

_STEP = 64 * 1024
_XZ_MEMORY = 128 * 1024**2


class Stream(Protocol):
    def read(self, count: int, /) -> bytes: ...


class _Decompressor(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class _Gzip:
    """zlib's object with the interface of bz2 and lzma."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

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


def _xz() -> _Decompressor:
    return cast(_Decompressor, lzma.LZMADecompressor(memlimit=_XZ_MEMORY))


_KINDS: tuple[tuple[bytes, Callable[[], object]], ...] = (
    (b"\x1f\x8b", _Gzip),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", _xz),
)
ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


def is_packed(head: bytes) -> bool:
    return any(head.startswith(magic) for magic, _ in _KINDS)


class Unpacked:
    """A packed stream as an unpacked one, which counts its bytes against the budget."""

    def __init__(self, packed: Stream, head: bytes, budget: Budget) -> None:
        self._packed, self._budget = packed, budget
        self._new = next(new for magic, new in _KINDS if head.startswith(magic))
        self._decompressor = cast(_Decompressor, self._new())
        self._taken = 0
        self._given = 0

    def read(self, count: int) -> bytes:
        """As many bytes, fewer only at the end. Raises ImportRefused and Exhausted."""
        found = bytearray()
        while len(found) < count and (some := self._some(min(count - len(found), _STEP))):
            found += some
            self._given += len(some)
            self._budget.count_unpacked(len(some))
            self._budget.check_ratio(self._given, self._taken)
        return bytes(found)

    def _some(self, most: int) -> bytes:
        """At least one byte, or none at the end."""
        while True:
            if self._decompressor.eof:
                rest = self._decompressor.unused_data or self._take()
                if not rest.strip(b"\0"):
                    return b""
                self._decompressor = cast(_Decompressor, self._new())
                found = self._decompressor.decompress(rest, most)
            else:
                data = self._take() if getattr(self._decompressor, "needs_input", True) else b""
                found = self._decompressor.decompress(data, most)
                if not found and not data and not self._decompressor.eof:
                    raise ImportRefused("The packed file is truncated.")
            if found:
                return found

    def _take(self) -> bytes:
        data = self._packed.read(_STEP)
        self._taken += len(data)
        return data
