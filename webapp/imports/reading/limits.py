"""What a reading returns for each file, and its limits.

A reading does work for files that it leaves out as well: it unpacks, skips and names them. So one budget counts all
work of a reading, whatever becomes of a file.
"""

import time
from collections.abc import Callable

import msgspec

from webapp.imports.values import ImportRefused

MIB = 1024**2
_UNPACKED_FREE = 64 * MIB  # of a reading, besides `ratio` times the bytes on disk
_CPU_OF_A_FILE_BYTES = 1024  # each file on disk has the time of so many bytes more, for opening and closing it


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults keep the memory below 350 MB."""

    file_bytes: int = 24 * MIB  # of one file, unpacked
    total_bytes: int = 8 * 1024 * MIB  # of all texts, and again of everything that is unpacked or copied
    files: int = 200_000
    entries: int = 1_000_000  # files, folders, links and headers in archives, and parts of packed files
    name_bytes: int = 64 * MIB  # of all names in archives
    ratio: int = 200  # unpacked to packed bytes, of an archive from `ratio_from` on, and of the whole reading
    ratio_from: int = 16 * MIB
    depth: int = 5  # of archives in archives
    folders: int = 64  # of folders in folders
    nested_bytes: int = 1024 * MIB  # of an archive inside another one
    cpu_s: float = 10.0  # CPU time of the reading, without that of parsers and the database
    cpu_s_per_mib: float = 1.0  # and so much more for each MiB on disk


class Read(msgspec.Struct, frozen=True):
    """The text of a file. `path` is relative to what is read; archives count as folders."""

    path: str
    text: str


class Refused(msgspec.Struct, frozen=True):
    """A file that is left out, with the reason as a sentence."""

    path: str
    reason: str
    code: str = "import_refused"


class LeftOut(msgspec.Struct, frozen=True):
    """Files beyond a limit of the whole reading, which were only counted."""

    path: str  # of the first of them
    files: int


class Exhausted(Exception):
    """The whole reading has reached a limit: Budget.limit_reached."""


class Budget:
    """The work of one reading so far, and the number of files left out."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.thread_time) -> None:
        self.limits = limits
        self.left_out = 0
        self.limit_reached: ImportRefused | None = None
        self._clock = clock
        self._started_s: float | None = None
        self._cpu_s = 0.0
        self._files = self._entries = self._name_bytes = self._on_disk = self._text_bytes = self._unpacked = 0

    @property
    def files_left(self) -> int:
        """Files that may still be read."""
        return 0 if self.limit_reached else self.limits.files - self._files

    def take_file(self) -> bool:
        """Whether one more file may be read; counts it."""
        taken = self.files_left > 0
        self._files += taken
        return taken

    def leave_out(self, path: str, files: int = 1) -> LeftOut:
        self.left_out += files
        return LeftOut(path, files)

    def start_clock(self) -> None:
        self._started_s = self._clock()

    def stop_clock(self) -> None:
        """Until the next start, the caller uses the CPU, not the reading."""
        self._cpu_s = self._spent_s()
        self._started_s = None

    def count_on_disk(self, count: int) -> None:
        """Count the bytes of a file as they are on disk or were sent."""
        self._on_disk += count + _CPU_OF_A_FILE_BYTES

    def count_entry(self, name_bytes: int = 0) -> None:
        """Count a file, folder, link or header of an archive, or a part of a packed file. Raises Exhausted."""
        self._entries += 1
        self._name_bytes += name_bytes
        self._check()

    def count_text(self, count: int) -> None:
        """Count a text that was read. Raises Exhausted."""
        self._text_bytes += count
        self._check()

    def count_unpacked(self, count: int) -> None:
        """Count bytes that were unpacked, copied or skipped, also of files that are left out. Raises Exhausted."""
        self._unpacked += count
        self._check()

    def check_ratio(self, unpacked: int, packed: int) -> None:
        if unpacked > self.limits.ratio_from and unpacked > self.limits.ratio * max(1, packed):
            raise ImportRefused(
                f"The archive unpacks to more than {self.limits.ratio} times its size.", code="import_ratio"
            )

    def _check(self) -> None:
        self.limit_reached = self.limit_reached or self._limit_reached()
        if self.limit_reached:
            raise Exhausted

    def _limit_reached(self) -> ImportRefused | None:
        limits = self.limits
        if max(self._text_bytes, self._unpacked) > limits.total_bytes:
            return ImportRefused(
                f"The files have more than {limits.total_bytes // MIB:,} MiB.", code="import_too_many_bytes"
            )
        if self._unpacked > _UNPACKED_FREE + limits.ratio * self._on_disk:
            return ImportRefused(
                f"All archives unpack to more than {limits.ratio} times their size.", code="import_ratio"
            )
        if self._entries > limits.entries or self._name_bytes > limits.name_bytes:
            most = f"{limits.entries:,} entries, or names of more than {limits.name_bytes // MIB} MiB"
            return ImportRefused(f"The archives have more than {most}.", code="import_too_many_entries")
        if self._spent_s() > limits.cpu_s + limits.cpu_s_per_mib * self._on_disk / MIB:
            return ImportRefused("Unpacking the archives takes too much time for their size.", code="import_cpu_time")
        return None

    def _spent_s(self) -> float:
        return self._cpu_s + (0.0 if self._started_s is None else self._clock() - self._started_s)
