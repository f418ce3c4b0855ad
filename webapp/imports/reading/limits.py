"""What a reading returns for each file, and its limits."""

import msgspec

from webapp.imports.errors import ImportRefused

MIB = 1024**2


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults keep the memory below 300 MB."""

    file_bytes: int = 24 * MIB  # of one file, unpacked
    total_bytes: int = 8 * 1024 * MIB  # of all texts, and again of everything that is unpacked
    files: int = 200_000
    ratio: int = 200  # unpacked to packed bytes, from `ratio_from` on
    ratio_from: int = 16 * MIB
    depth: int = 5  # of archives in archives
    folders: int = 64  # of folders in folders
    nested_bytes: int = 1024 * MIB  # of an archive inside another one


class Read(msgspec.Struct, frozen=True):
    """The text of a file. `path` is relative to what is read; archives count as folders."""

    path: str
    text: str


class Refused(msgspec.Struct, frozen=True):
    """A file that is left out, with the reason as a sentence."""

    path: str
    reason: str


class LeftOut(msgspec.Struct, frozen=True):
    """Files beyond a limit of the whole reading, which were only counted."""

    path: str  # of the first of them
    files: int


class Exhausted(Exception):
    """The files read so far have as many bytes as one reading may have."""


class Budget:
    """The numbers of files and bytes read so far, and of files left out."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.left_out = 0
        self._files = self._bytes = self._unpacked = 0

    @property
    def files_left(self) -> int:
        """Files that may still be read."""
        full = max(self._bytes, self._unpacked) > self.limits.total_bytes
        return 0 if full else self.limits.files - self._files

    def take_file(self) -> bool:
        """Whether one more file may be read; counts it."""
        taken = self.files_left > 0
        self._files += taken
        return taken

    def leave_out(self, path: str, files: int = 1) -> LeftOut:
        self.left_out += files
        return LeftOut(path, files)

    def count_bytes(self, count: int) -> None:
        """Count a text that was read. Raises Exhausted."""
        self._bytes += count
        self._check_bytes()

    def count_unpacked(self, count: int) -> None:
        """Count bytes that were unpacked, also of files that are not read. Raises Exhausted."""
        self._unpacked += count
        self._check_bytes()

    def _check_bytes(self) -> None:
        if max(self._bytes, self._unpacked) > self.limits.total_bytes:
            raise Exhausted

    def check_ratio(self, unpacked: int, packed: int) -> None:
        if unpacked > self.limits.ratio_from and unpacked > self.limits.ratio * max(1, packed):
            raise ImportRefused(f"The archive unpacks to more than {self.limits.ratio} times its size.")
