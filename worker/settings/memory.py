"""Settings of memory: limits on dirty memory (Documentation/admin-guide/sysctl/vm.rst), huge pages; dropped caches.

The kernel has two files for each limit on dirty memory: a share of memory and an amount. Writing
one sets the other to 0, so both are captured together, and a trial can request only one of them.
"""

import os
from pathlib import Path

from worker.kernel.sysfs import active_choice
from worker.settings.base import KernelFile, SettingFailed, read_file, refused, write_file

PROC_VM = Path("/proc/sys/vm")


class DirtyLimit(KernelFile):
    """`vm.dirty_ratio` or `vm.dirty_bytes`; a captured state is `dirty_ratio=20`."""

    def __init__(self, name: str, other: str, description: str) -> None:
        super().__init__(f"vm.{name}", description, file=f"{PROC_VM}/{name}")
        self._faces = (name, other)

    @property
    def key(self) -> str:
        return f"vm.{self._share}"

    def capture(self, subject: str) -> str:
        """The file in effect; the share if both are 0."""
        values = {face: read_file(PROC_VM / face, face) for face in self._faces}
        in_force = next((face for face, value in values.items() if value != "0"), self._share)
        return f"{in_force}={values[in_force]}"

    def apply(self, subject: str, value: str) -> None:
        if value == "0" and self._faces[0] != self._share:
            raise refused(f"{self.name} cannot be 0, because 0 activates the other of the two settings: set that one.")
        super().apply(subject, value)

    def restore(self, subject: str, state: str) -> None:
        face, _, value = state.partition("=")
        if value == "0":  # the kernel accepts a share of 0 only if the share was different before
            write_file(PROC_VM / face, "1", f"vm.{face}")
        write_file(PROC_VM / face, value, f"vm.{face}")

    @property
    def _share(self) -> str:
        return next(face for face in self._faces if face.endswith("_ratio"))


MEMORY_SETTINGS = (
    DirtyLimit("dirty_ratio", "dirty_bytes", "share of memory that may be dirty before writers are throttled, %"),
    DirtyLimit("dirty_bytes", "dirty_ratio", "amount of memory that may be dirty before writers are throttled, bytes"),
    DirtyLimit(
        "dirty_background_ratio",
        "dirty_background_bytes",
        "share of dirty memory that starts background writing, %",
    ),
    DirtyLimit(
        "dirty_background_bytes",
        "dirty_background_ratio",
        "amount of dirty memory that starts background writing, bytes",
    ),
    KernelFile(
        "vm.dirty_expire_centisecs",
        "age at which dirty data is written, 1/100 s",
        file=f"{PROC_VM}/dirty_expire_centisecs",
    ),
    KernelFile(
        "vm.dirty_writeback_centisecs",
        "interval of checks for old dirty data, 1/100 s; 0 never",
        file=f"{PROC_VM}/dirty_writeback_centisecs",
    ),
    KernelFile(
        "transparent_hugepage",
        "huge pages for the memory of programs",
        file="/sys/kernel/mm/transparent_hugepage/enabled",
        choices=("always", "madvise", "never"),
        meaning=active_choice,
    ),
)


# Drop the page cache, dentries and inodes, and check the kernel's counters.

_FILE = Path("/proc/sys/vm/drop_caches")
_COUNTERS = ("drop_pagecache", "drop_slab")


def drop_caches() -> None:
    """Write dirty pages, drop the clean ones, and check the kernel's counters. Raises SettingFailed."""
    os.sync()
    before = _counts()
    try:
        fd = os.open(_FILE, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"3\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise SettingFailed(
            "setting_refused", f"The caches were not dropped: {error.strerror} ({_FILE}). This requires root."
        ) from error
    after = _counts()
    if any(after[name] <= before[name] for name in _COUNTERS):
        raise SettingFailed("setting_refused", f"The kernel accepted the write to {_FILE} but dropped nothing.")


def _counts() -> dict[str, int]:
    rows = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    counts = {row[0]: int(row[1]) for row in rows if row[0] in _COUNTERS}
    if len(counts) != len(_COUNTERS):
        raise SettingFailed("setting_refused", "This kernel does not count dropped caches: cannot verify the drop.")
    return counts
