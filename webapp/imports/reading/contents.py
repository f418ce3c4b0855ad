"""The texts in a file: itself, or the files in an archive. Archives are recognised by content, not by name."""

import codecs
import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path, PurePosixPath
from typing import IO, cast

from webapp.imports.reading import unpacking
from webapp.imports.reading.limits import MIB, Budget, Exhausted, LeftOut, Limits, Read, Refused
from webapp.imports.reading.order import LogSpool, in_order
from webapp.imports.reading.tar_stream import TarEntry, tar_entries
from webapp.imports.reading.zip_directory import Directory, Place, ZipEntry
from webapp.imports.values import ArchiveDamaged, ImportRefused

# Bytes as text: UTF-8, UTF-16 with a byte order mark, otherwise Latin-1.

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file show that it is no text."""
    return b"\0" in head and not head.startswith(_UTF_16)


def decode(data: bytes) -> str:
    """Raises ImportRefused for binary files."""
    if data.startswith(_UTF_16):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise ImportRefused("The file begins like UTF-16 but is not valid UTF-16.") from error
        if "\0" in text:
            raise ImportRefused("The file is binary, not text.", code="import_binary")
        return text
    if b"\0" in data:
        raise ImportRefused("The file is binary, not text.", code="import_binary")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


Found = Iterator[Read | Refused | LeftOut]
_HEAD = 512
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "RAR", _ZSTD: "Zstandard"}
_PACKED_NAMES = (".gz", ".bz2", ".xz")
_MAX_NAME = 1000
_SHOWN_NAME = 200  # characters of a name that is too long


def content(file: IO[bytes], path: str, budget: Budget, depth: int = 0, *, size: int | None = None) -> Found:
    """A seekable file of `size` bytes: text or an archive. `depth` is the number of archives around it."""
    try:
        head = file.read(_HEAD)
        file.seek(0)
        if head.startswith(_ZIP):
            yield from _zip(file, path, budget, _deeper(depth, budget))
        elif new := unpacking.decompressor_of(head):
            yield from _packed(file, new, path, budget, _deeper(depth, budget))
        elif _is_tar(head):
            yield from _tar(file, path, budget, _deeper(depth, budget))
        else:
            yield _text(file, head, path, budget, size)
    except ImportRefused as refusal:
        yield Refused(path, refusal.message, refusal.code)
    except Exhausted:
        yield budget.leave_out(path)
    except unpacking.ERRORS as error:
        yield Refused(path, f"The archive is damaged: {str(error)[:200]}.", "import_damaged")


def _deeper(depth: int, budget: Budget) -> int:
    if depth >= budget.limits.depth:
        most = budget.limits.depth
        raise ImportRefused(f"The archives are nested more than {most} deep.", code="import_nested")
    return depth + 1


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _text(file: unpacking.Stream, head: bytes, path: str, budget: Budget, size: int | None) -> Read:
    """`size` is the number of bytes that is stated for the file, so that a larger one is not read first."""
    for magic, name in _OTHERS.items():
        if head.startswith(magic):
            raise ImportRefused(f"{name} archives cannot be read. Use zip or tar.gz.", code="import_method")
    if is_binary(head):
        raise ImportRefused("The file is binary, not text.", code="import_binary")
    most = budget.limits.file_bytes
    data = file.read(most + 1) if size is None or size <= most else b""
    if max(size or 0, len(data)) > most:
        raise ImportRefused(f"The file is larger than {most // MIB} MiB.", code="import_file_too_large")
    budget.count_text(len(data))
    return Read(path, decode(data))


def _packed(file: IO[bytes], new: unpacking.New, path: str, budget: Budget, depth: int) -> Found:
    """A packed tar, or one packed file, which then loses the end of its name."""
    stream = unpacking.Unpacked(file, new, budget)
    begin = stream.read(_HEAD)
    rest = _Joined(begin, stream)
    if _is_tar(begin):
        yield from _tar(rest, path, budget, depth)
        return
    name = next((path.removesuffix(end) for end in _PACKED_NAMES if path.endswith(end)), path)
    try:
        yield from _member(rest, name, budget, depth, size=None)
    except ImportRefused as refusal:
        yield Refused(name, refusal.message, refusal.code)


class _Joined:
    """A stream with the bytes that were already read of it in front."""

    def __init__(self, begin: bytes, stream: unpacking.Stream) -> None:
        self._begin, self._stream = begin, stream

    def read(self, count: int) -> bytes:
        begin, self._begin = self._begin[:count], self._begin[count:]
        return begin + self._stream.read(count - len(begin)) if len(begin) < count else begin


def _spooled(stream: unpacking.Stream, budget: Budget) -> IO[bytes]:
    """A stream as a seekable file: in memory if it is small, otherwise on disk. Raises ImportRefused and Exhausted."""
    spool = tempfile.SpooledTemporaryFile(max_size=4 * MIB)  # noqa: SIM115  the caller closes it
    count = 0
    try:
        while some := stream.read(MIB):
            count += len(some)
            budget.count_unpacked(len(some))
            if count > budget.limits.nested_bytes:
                most = f"{budget.limits.nested_bytes // MIB:,} MiB"
                raise ImportRefused(f"A packed file is larger than {most}.", code="import_file_too_large")
            spool.write(some)
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return cast(IO[bytes], spool)


def _member(stream: unpacking.Stream, path: str, budget: Budget, depth: int, *, size: int | None) -> Found:
    """A file in an archive. Text is read at once; an archive inside needs a seekable file."""
    head = stream.read(_HEAD)
    rest = _Joined(head, stream)
    if head.startswith(_ZIP) or unpacking.decompressor_of(head) or _is_tar(head):
        with _spooled(rest, budget) as inner:
            yield from content(inner, path, budget, depth)
        return
    yield _text(rest, head, path, budget, size)


def _zip(file: IO[bytes], path: str, budget: Budget, depth: int) -> Found:
    directory = Directory(file, budget)
    count = 0

    def counted() -> Iterator[Place]:
        nonlocal count
        for place in directory.places():
            count += 1
            yield place

    places = nsmallest(budget.files_left + 1, counted())
    for place in places:
        yield from _zip_entry(directory, directory.entry(place), path, budget, depth)
    if budget.files_left == 0 and count > len(places):
        yield budget.leave_out(path, count - len(places))


def _zip_entry(directory: Directory, entry: ZipEntry, path: str, budget: Budget, depth: int) -> Found:
    shown = f"{path}/{_shown(entry.name)}"
    if not budget.take_file():
        yield budget.leave_out(shown)
        return
    try:
        _check_name(entry.name)
        if entry.is_link:
            raise ImportRefused("Links are not followed.", code="import_link")
        if entry.is_encrypted:
            raise ImportRefused("The file is encrypted.", code="import_encrypted")
        budget.check_ratio(entry.size, entry.packed_bytes)
        yield from _member(directory.open(entry), shown, budget, depth, size=entry.size)
    except ImportRefused as refusal:
        yield Refused(shown, refusal.message, refusal.code)
    except Exhausted:
        yield budget.leave_out(shown)
    except unpacking.ERRORS as error:
        yield Refused(shown, f"The file cannot be unpacked: {str(error)[:200]}.", "import_damaged")


def _tar(file: unpacking.Stream, path: str, budget: Budget, depth: int) -> Found:
    """Read as a stream: one pass, no seeking. If it ends early, logs may be missing in any trial."""
    with LogSpool() as spool:
        try:
            yield from spool.without_logs(_tar_files(file, path, budget, depth))
        except Exception as error:
            yield from spool.refused("The archive ends before all logs of its tests are read.", "import_truncated")
            if isinstance(error, Exhausted) and (limit := budget.limit_reached):
                raise ImportRefused(f"{limit.message} The rest is left out.", code=limit.code) from error
            raise
        yield from spool.logs()


def _tar_files(file: unpacking.Stream, path: str, budget: Budget, depth: int) -> Found:
    for entry in tar_entries(file, budget):
        yield from _tar_entry(entry, f"{path}/{_shown(entry.name)}", budget, depth)


def _tar_entry(entry: TarEntry, shown: str, budget: Budget, depth: int) -> Found:
    if not budget.take_file():
        yield budget.leave_out(shown)
        return
    try:
        _check_name(entry.name)
        if not entry.is_file:
            raise ImportRefused("Links and devices are not read.", code="import_link")
        if entry.is_sparse:
            raise ImportRefused(
                "Sparse files are not read. Pack them without the option --sparse.", code="import_sparse"
            )
        yield from _member(entry, shown, budget, depth, size=entry.size)
    except ArchiveDamaged:
        raise
    except ImportRefused as refusal:
        yield Refused(shown, refusal.message, refusal.code)
    except Exhausted:
        yield budget.leave_out(shown)


def _shown(name: str) -> str:
    """A name of 64 KiB, a hundred thousand times, would fill memory and database."""
    return name if len(name) <= _MAX_NAME else f"{name[:_SHOWN_NAME]}…"


def _check_name(name: str) -> None:
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts or "\0" in name:
        raise ImportRefused("The path leads out of the archive.", code="import_path")
    if len(name) > _MAX_NAME or name[1:2] == ":":
        raise ImportRefused("The path is not valid.", code="import_path")


# Walks files and folders.
#
# Nothing is written except nested archives and logs of tar archives, which go to unnamed temporary files. Links,
# devices, absolute paths and paths with `..` are refused.


def read(path: Path, limits: Limits | None = None) -> Found:
    """Every file of a path: its text, or why it is left out. Files are in the order of `order.in_order`. After the
    files that the limits allow, the others are counted, and the last Refused says how many they are."""
    return _read({"" if path.is_dir() else path.name: path}, Budget(limits or Limits()))


def read_all(paths: Sequence[Path], limits: Limits | None = None) -> Found:
    """Every file of several paths, as if they were in one folder. Their names begin where the paths differ."""
    if len(paths) == 1:
        return read(paths[0], limits)
    whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  resolve() follows links
    top = Path(os.path.commonpath([path.parent for path in whole]))
    return _read({str(path.relative_to(top)): path for path in whole}, Budget(limits or Limits()))


def read_in_turn(files: Iterable[tuple[str, Path]], limits: Limits | None = None) -> Found:
    """Every file of several files and archives by their names, with common limits. Each one is read before the next one
    is taken."""
    budget = Budget(limits or Limits())
    for name, path in files:
        yield from _clocked(_entry(path, name, budget), budget)
    yield from _left_out(budget)


def _read(paths: Mapping[str, Path], budget: Budget) -> Found:
    """`paths` by their names."""
    for name in sorted(paths, key=in_order):
        yield from _clocked(_entry(paths[name], name, budget), budget)
    yield from _left_out(budget)


def _clocked(files: Found, budget: Budget) -> Found:
    """Count the time of the reading, without that of the caller between two files."""
    while True:
        budget.start_clock()
        file = next(files, None)
        budget.stop_clock()
        if file is None:
            return
        yield file
        del file  # otherwise its text is in memory while the next one is read


def _left_out(budget: Budget) -> Found:
    if budget.left_out:
        code = budget.limit_reached.code if budget.limit_reached else "import_too_many_files"
        most = f"At most {budget.limits.files:,} files and {budget.limits.total_bytes // MIB:,} MiB are read at once."
        if code not in ("import_too_many_files", "import_too_many_bytes") and budget.limit_reached:
            most = f"{most} {budget.limit_reached.message}"
        yield Refused("", f"{most} Number of files left out: {budget.left_out:,}. Import them in several parts.", code)


def _entry(path: Path, shown: str, budget: Budget) -> Found:
    if path.is_symlink():
        yield Refused(shown or path.name, "Links are not followed.", "import_link")
    elif path.is_dir():
        yield from _folder(path, shown, budget)
    else:
        yield from _on_disk(path, shown, budget)


def _folder(folder: Path, inside: str, budget: Budget) -> Found:
    if inside.count("/") >= budget.limits.folders:
        yield Refused(inside, f"The folders are nested more than {budget.limits.folders} deep.")
        return
    done: set[str] = set()
    while True:
        # One more than may be read: the first file that is left out tells whether it cuts the logs of a trial.
        most = budget.files_left + 1
        try:
            names = _names(folder, most, done)
        except OSError as error:
            yield Refused(inside or folder.name, f"The folder cannot be read: {error.strerror}.")
            return
        for name in names:
            yield from _entry(folder / name, f"{inside}/{name}" if inside else name, budget)
        if len(names) < most:
            return
        done.update(names)
        if budget.files_left == 0:
            yield budget.leave_out(inside, _count(folder, budget.limits.folders, done))
            return


def _names(folder: Path, most: int, done: Collection[str]) -> list[str]:
    """The first names of a folder that are not done, at most so many. Raises OSError."""
    with os.scandir(folder) as entries:
        return nsmallest(most, (entry.name for entry in entries if entry.name not in done), key=in_order)


def _count(folder: Path | str, depth: int, done: Collection[str] = ()) -> int:
    """The number of files below a folder, without those that are done."""
    try:
        with os.scandir(folder) as entries:
            return sum(
                _count(entry.path, depth - 1) if depth and entry.is_dir(follow_symlinks=False) else 1
                for entry in entries
                if entry.name not in done
            )
    except OSError:
        return 1


def _on_disk(path: Path, shown: str, budget: Budget) -> Found:
    if not budget.take_file():
        yield budget.leave_out(shown)
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe must not wait for a writer
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                yield Refused(shown, "This is not a regular file.")
                return
            budget.count_on_disk(status.st_size)
            yield from content(file, shown, budget, size=status.st_size)
    except OSError as error:
        yield Refused(shown, f"The file cannot be read: {error.strerror}.")
