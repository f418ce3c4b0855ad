"""The texts in a file: itself, or the files in an archive. Archives are recognised by content, not by name."""

import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import PurePosixPath
from typing import IO, cast

from webapp.imports.errors import ImportRefused
from webapp.imports.reading import unpacking
from webapp.imports.reading.limits import MIB, Budget, Exhausted, LeftOut, Read, Refused
from webapp.imports.reading.order import LogSpool
from webapp.imports.reading.text import decode
from webapp.imports.reading.zip_directory import Directory

Found = Iterator[Read | Refused | LeftOut]
_HEAD = 512
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "RAR", _ZSTD: "Zstandard"}
_ZIP_PART = 1_000  # files for which zipfile has their entries in memory
_MAX_HEADER = 64 * 1024
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_PACKED_NAMES = (".gz", ".bz2", ".xz")


def content(file: IO[bytes], path: str, budget: Budget, depth: int = 0) -> Found:
    """A seekable file: text or an archive. `depth` is the number of archives around it."""
    try:
        head = file.read(_HEAD)
        file.seek(0)
        if head.startswith(_ZIP):
            yield from _zip(file, path, budget, _deeper(depth, budget))
        elif unpacking.is_packed(head):
            yield from _packed(file, head, path, budget, _deeper(depth, budget))
        elif _is_tar(head):
            yield from _tar(file, path, budget, _deeper(depth, budget))
        else:
            yield _text(file, head, path, budget)
    except ImportRefused as refusal:
        yield Refused(path, refusal.message)
    except Exhausted:
        yield budget.leave_out(path)
    except (zipfile.BadZipFile, tarfile.TarError, NotImplementedError, RuntimeError, ValueError) as error:
        yield Refused(path, f"The archive is damaged or of an unknown kind: {str(error)[:200]}.")
    except unpacking.ERRORS as error:
        yield Refused(path, f"The archive is damaged: {str(error)[:200]}.")


def _deeper(depth: int, budget: Budget) -> int:
    if depth >= budget.limits.depth:
        raise ImportRefused(f"The archives are nested more than {budget.limits.depth} deep.")
    return depth + 1


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _text(file: unpacking.Stream, head: bytes, path: str, budget: Budget) -> Read:
    for magic, name in _OTHERS.items():
        if head.startswith(magic):
            raise ImportRefused(f"{name} archives cannot be read. Use zip or tar.gz.")
    data = file.read(budget.limits.file_bytes + 1)
    if len(data) > budget.limits.file_bytes:
        raise ImportRefused(f"The file is larger than {budget.limits.file_bytes // MIB} MiB.")
    budget.count_bytes(len(data))
    return Read(path, decode(data))


def _packed(file: IO[bytes], head: bytes, path: str, budget: Budget, depth: int) -> Found:
    """A packed tar, or one packed file, which then loses the end of its name."""
    stream = unpacking.Unpacked(file, head, budget)
    begin = stream.read(_HEAD)
    rest = _Joined(begin, stream)
    if _is_tar(begin):
        yield from _tar(rest, path, budget, depth)
        return
    name = next((path.removesuffix(end) for end in _PACKED_NAMES if path.endswith(end)), path)
    with _spooled(rest, budget) as inner:
        yield from content(inner, name, budget, depth)


class _Joined:
    """A stream with the bytes that were already read of it in front."""

    def __init__(self, begin: bytes, stream: unpacking.Stream) -> None:
        self._begin, self._stream = begin, stream

    def read(self, count: int) -> bytes:
        begin, self._begin = self._begin[:count], self._begin[count:]
        return begin + self._stream.read(count - len(begin)) if len(begin) < count else begin


def _spooled(stream: unpacking.Stream, budget: Budget) -> IO[bytes]:
    """A stream as a seekable file: in memory if it is small, otherwise on disk. Raises ImportRefused."""
    spool = tempfile.SpooledTemporaryFile(max_size=4 * MIB)  # noqa: SIM115  the caller closes it
    count = 0
    while some := stream.read(MIB):
        count += len(some)
        if count > budget.limits.nested_bytes:
            spool.close()
            raise ImportRefused(f"A packed file is larger than {budget.limits.nested_bytes // MIB:,} MiB.")
        spool.write(some)
    spool.seek(0)
    return cast(IO[bytes], spool)


def _member(stream: unpacking.Stream, path: str, budget: Budget, depth: int) -> Found:
    """A file in an archive. Text is read at once; an archive inside needs a seekable file."""
    head = stream.read(_HEAD)
    rest = _Joined(head, stream)
    if head.startswith(_ZIP) or unpacking.is_packed(head) or _is_tar(head):
        with _spooled(rest, budget) as inner:
            yield from content(inner, path, budget, depth)
        return
    yield _text(rest, head, path, budget)


def _zip(file: IO[bytes], path: str, budget: Budget, depth: int) -> Found:
    directory = Directory(file)
    entries = nsmallest(budget.files_left + 1, directory.files())
    for begin in range(0, len(entries), _ZIP_PART):
        with zipfile.ZipFile(directory.part(entries[begin : begin + _ZIP_PART])) as archive:
            for entry in archive.infolist():
                yield from _zip_entry(archive, entry, f"{path}/{entry.filename}", budget, depth)
    if budget.files_left == 0 and (others := sum(1 for _ in directory.files()) - len(entries)):
        yield budget.leave_out(path, others)


def _zip_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, shown: str, budget: Budget, depth: int) -> Found:
    if not budget.take_file():
        yield budget.leave_out(shown)
        return
    try:
        _check_zip_entry(entry, budget)
        with archive.open(entry) as stream:
            yield from _member(stream, shown, budget, depth)
    except ImportRefused as refusal:
        yield Refused(shown, refusal.message)
    except Exhausted:
        yield budget.leave_out(shown)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *unpacking.ERRORS) as error:
        yield Refused(shown, f"The file cannot be unpacked: {str(error)[:200]}.")


def _check_zip_entry(entry: zipfile.ZipInfo, budget: Budget) -> None:
    _check_name(entry.filename)
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise ImportRefused("Links are not followed.")
    if entry.flag_bits & 1:
        raise ImportRefused("The file is encrypted.")
    budget.check_ratio(entry.file_size, entry.compress_size)


class _TarInfo(tarfile.TarInfo):
    """A header of tar. tarfile reads extended headers into memory, whatever their size."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > _MAX_HEADER:
            raise tarfile.ReadError(f"a header has {self.size:,} bytes")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


def _tar(file: unpacking.Stream, path: str, budget: Budget, depth: int) -> Found:
    """Read as a stream: one pass, no seeking. If it ends early, logs may be missing in any trial."""
    with LogSpool() as spool:
        try:
            yield from spool.without_logs(_tar_entries(file, path, budget, depth))
        except Exception as error:
            yield from spool.refused("The archive ends before all logs of its tests are read.")
            if isinstance(error, Exhausted):
                most = f"{budget.limits.total_bytes // MIB:,} MiB"
                raise ImportRefused(f"The files have more than {most}. The rest is left out.") from error
            raise
        yield from spool.logs()


def _tar_entries(file: unpacking.Stream, path: str, budget: Budget, depth: int) -> Found:
    with tarfile.open(fileobj=cast(IO[bytes], file), mode="r|", tarinfo=_TarInfo) as archive:
        while entry := archive.next():
            archive.members = []  # type: ignore[attr-defined]  # tarfile keeps every entry otherwise
            if not entry.isdir():
                yield from _tar_entry(archive, entry, f"{path}/{entry.name}", budget, depth)


def _tar_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, shown: str, budget: Budget, depth: int) -> Found:
    if not budget.take_file():
        yield budget.leave_out(shown)
        return
    try:
        _check_name(entry.name)
        if not entry.isreg():
            raise ImportRefused("Links and devices are not read.")
        stream = archive.extractfile(entry)
        if stream is not None:
            yield from _member(stream, shown, budget, depth)
    except ImportRefused as refusal:
        yield Refused(shown, refusal.message)
    except Exhausted:
        yield budget.leave_out(shown)


def _check_name(name: str) -> None:
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts or "\0" in name:
        raise ImportRefused("The path leads out of the archive.")
    if len(name) > 1000 or name[1:2] == ":":
        raise ImportRefused("The path is not valid.")
