"""The entries of a tar archive, read once from its begin to its end.

Python's tarfile expands sparse files, and needs quadratic time for some extended headers (CVE-2024-6232) and for sparse
maps without line ends. Here, the work is proportional to the bytes that are read, and each header counts.

Sources: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; the GNU tar manual, "Basic Tar Format".
"""

from collections.abc import Iterator

from webapp.imports.reading.limits import Budget
from webapp.imports.reading.unpacking import Stream
from webapp.imports.values import ArchiveDamaged

BLOCK = 512
_SKIPPED = 64 * 1024  # bytes in one step
_MAX_HEADER = 64 * 1024  # of one extended header
_LONG_NAME, _LONG_LINK, _GNU_SPARSE = b"L", b"K", b"S"
_PAX = (b"x", b"X")
_GLOBAL = b"g"  # such as the commit of `git archive`: nothing of it matters here
_FILES = (b"0", b"\0", b"7")
_FOLDER = b"5"
_WITHOUT_DATA = (b"1", b"2", b"3", b"4", _FOLDER, b"6")  # links, devices, folders and pipes
_LENGTH_DIGITS = 8  # of a record of an extended header, which has at most 64 KiB


class TarEntry:
    """A file, link, device or pipe. `read` returns its data until the next entry is taken."""

    def __init__(self, stream: Stream, name: str, size: int, *, is_file: bool, is_sparse: bool) -> None:
        self.name, self.size, self.is_file, self.is_sparse = name, size, is_file, is_sparse
        self._stream = stream
        self._left = size

    def read(self, count: int) -> bytes:
        """As many bytes, fewer only at the end. Raises ArchiveDamaged if the archive ends before."""
        count = min(count, self._left)
        data = _exactly(self._stream, count)
        self._left -= count
        return data

    def skip(self) -> None:
        """To the next header."""
        _skip(self._stream, self._left + -self.size % BLOCK)
        self._left = 0


class _Next:
    """What the extended headers say about the next entry."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.size: int | None = None
        self.is_sparse = False


def tar_entries(stream: Stream, budget: Budget) -> Iterator[TarEntry]:
    """All entries without folders. Raises ArchiveDamaged for a damaged archive, and Exhausted."""
    following = _Next()
    while header := _header(stream):
        kind, size = header[156:157], _number(header[124:136])
        budget.count_entry()
        if kind in (_LONG_NAME, _LONG_LINK, *_PAX, _GLOBAL):
            _read_extended(kind, _extended(stream, size), following)
            continue
        if kind == _GNU_SPARSE:
            _skip_sparse_map(stream, header, budget)
        name = _name(header) if following.name is None else following.name
        size = 0 if kind in _WITHOUT_DATA else size if following.size is None else following.size
        is_file = kind in (*_FILES, _GNU_SPARSE)
        entry = TarEntry(stream, name, size, is_file=is_file, is_sparse=following.is_sparse or kind == _GNU_SPARSE)
        budget.count_entry(len(name))
        if kind != _FOLDER and not (kind == b"\0" and name.endswith("/")):
            yield entry
        entry.skip()
        following = _Next()


def _header(stream: Stream) -> bytes:
    """b"" at the end of the archive."""
    header = stream.read(BLOCK)
    if not header.strip(b"\0") and len(header) in (0, BLOCK):
        return b""
    if len(header) < BLOCK:
        raise _truncated()
    # The checksum counts its own field as spaces. Some programs added bytes as signed numbers.
    others = header[:148] + b" " * 8 + header[156:]
    stated, unsigned = _number(header[148:156]), sum(others)
    if stated != unsigned and stated != unsigned - 256 * sum(byte > 127 for byte in others):
        raise _damaged("a header has a wrong checksum")
    return header


def _number(field: bytes) -> int:
    """Octal digits, or after a byte 0x80 a big-endian number."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.partition(b"\0")[0].strip()
    if text.strip(b"01234567"):
        raise _damaged("a header has a wrong number")
    return int(text or b"0", 8)


def _name(header: bytes) -> str:
    name, prefix = _text(header[:100]), _text(header[345:500])
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _extended(stream: Stream, size: int) -> bytes:
    if size > _MAX_HEADER:
        raise _damaged(f"a header has more than {_MAX_HEADER:,} bytes")
    data = _exactly(stream, size)
    _skip(stream, -size % BLOCK)
    return data


def _read_extended(kind: bytes, data: bytes, following: _Next) -> None:
    if kind == _LONG_NAME:
        following.name = _text(data)
    elif kind in _PAX:
        for key, value in _records(data):
            if key == b"path":
                following.name = value.decode("utf-8", "surrogateescape")
            elif key == b"size":
                if not value.isdigit() or len(value) > 20:
                    raise _damaged("a header has a wrong size")
                following.size = int(value)
            elif key.startswith(b"GNU.sparse."):
                following.is_sparse = True


def _records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """`LENGTH KEY=VALUE` and a line end, one after another; LENGTH counts all bytes of the record."""
    place = 0
    while place < len(data) and data[place]:
        space = data.find(b" ", place, place + _LENGTH_DIGITS)
        digits = data[place : max(place, space)]
        end = place + int(digits) if digits.isdigit() else 0
        if not space < end <= len(data) or data[end - 1 : end] != b"\n":
            raise _damaged("an extended header is not valid")
        key, _, value = data[space + 1 : end - 1].partition(b"=")
        yield key, value
        place = end


def _skip_sparse_map(stream: Stream, header: bytes, budget: Budget) -> None:
    """The blocks after the header of a sparse file with more parts than fit into the header."""
    more = header[482]
    while more:
        more = _exactly(stream, BLOCK)[504]
        budget.count_entry()


def _exactly(stream: Stream, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise _truncated()
    return data


def _skip(stream: Stream, count: int) -> None:
    while count:
        step = min(count, _SKIPPED)
        _exactly(stream, step)
        count -= step


def _damaged(why: str) -> ArchiveDamaged:
    return ArchiveDamaged(f"The archive is damaged: {why}.", code="import_damaged")


def _truncated() -> ArchiveDamaged:
    return ArchiveDamaged("The archive is damaged: it is truncated.", code="import_truncated")
