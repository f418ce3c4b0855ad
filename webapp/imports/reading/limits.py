"""The files that a reading returns, and its limits."""

import msgspec

from webapp.imports.errors import ImportRefused

MIB = 1024**2


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults keep the memory below 300 MB."""

    file_bytes: int = 24 * MIB  # of one file, unpacked
    total_bytes: int = 8 * 1024 * MIB  # of all files, unpacked
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


class Exhausted(Exception):
    """A limit of the whole reading is reached. The reading ends with a Refused that says so."""


class Budget:
    """The numbers of files and bytes read so far. Raises Exhausted."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.files = 0
        self.bytes = 0

    def count_file(self) -> None:
        self.files += 1
        if self.files > self.limits.files:
            raise Exhausted(f"There are more than {self.limits.files:,} files. Import them in several parts.")

    def count_bytes(self, count: int) -> None:
        self.bytes += count
        if self.bytes > self.limits.total_bytes:
            raise Exhausted(f"The files have more than {self.limits.total_bytes // MIB:,} MiB. Import them in parts.")

    def check_ratio(self, unpacked: int, packed: int) -> None:
        if unpacked > self.limits.ratio_from and unpacked > self.limits.ratio * max(1, packed):
            raise ImportRefused(f"The archive unpacks to more than {self.limits.ratio} times its size.")
