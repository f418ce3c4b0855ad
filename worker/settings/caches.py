"""Drop the page cache, dentries and inodes, and check the kernel's counters."""

import os
from pathlib import Path

from worker.settings.base import SettingFailed

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
    found = {row[0]: int(row[1]) for row in rows if row[0] in _COUNTERS}
    if len(found) != len(_COUNTERS):
        raise SettingFailed("setting_refused", "This kernel does not count dropped caches: cannot verify the drop.")
    return found
