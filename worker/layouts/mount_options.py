"""Compare mount options with those that the kernel shows for a mount (proc_pid_mountinfo(5)).

The kernel shows what is not at its default: `commit=5` of ext4 is shown by the absence of any `commit`, `commit=30` of
btrfs likewise, and both forms are read (fs/ext4/super.c, ext4_show_options; fs/btrfs/super.c, btrfs_show_options).
Where a default depends on the machine (btrfs' `thread_pool`), absence says nothing. Tried on Linux 6.18 with ext4, XFS
and btrfs.
"""

import re
from collections.abc import Sequence

# At their defaults, so shown by the absence of their opposites.
_DEFAULTS = {
    "nodiscard": "discard",
    "auto_da_alloc": "noauto_da_alloc",
    "barrier": "nobarrier",
    "barrier=1": "nobarrier",
    "delalloc": "nodelalloc",
    "integrity": "nointegrity",
}
# Values that are not shown, by file system; others of these options are.
_HIDDEN: dict[str, dict[str, tuple[str, ...]]] = {
    "ext4": {"commit": ("5", "0"), "max_batch_time": ("15000",), "data": ("ordered",)},
    "btrfs": {"commit": ("30",)},
}
_SAME = {"barrier=0": "nobarrier"}
_SIZE = re.compile(r"(\d+)([kmg])", re.I)
_UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}


def observed(asked: Sequence[str], shown: str, kind: str) -> tuple[str, ...]:
    """Of the options asked for, those that hold, in the words of the mount.

    `shown` is a mount's whole list, `kind` its file system.
    """
    there = _by_name(shown)
    return tuple(option for option in asked if _holds(option, there, kind))


def contradicted(asked: Sequence[str], shown: str, kind: str) -> tuple[str, ...]:
    """Of the options asked for, those that the kernel took and did not follow."""
    there = _by_name(shown)
    unseen = (option for option in asked if not _holds(option, there, kind))
    return tuple(option for option in unseen if _must_be_seen(option.partition("="), there, kind))


def _must_be_seen(option: tuple[str, str, str], there: dict[str, str], kind: str) -> bool:
    """A word is shown or shown by its opposite; a value where it is shown at all, or would be if it held."""
    name, sign, _ = option
    return not sign or name in there or name in _HIDDEN.get(kind, {})


def _by_name(shown: str) -> dict[str, str]:
    pairs = (option.partition("=") for option in shown.split(","))
    return {name: value for name, _, value in pairs}


def _holds(option: str, there: dict[str, str], kind: str) -> bool:
    if opposite := _DEFAULTS.get(option):
        return not any(name == opposite for name in there)
    name, _, value = _SAME.get(option, option).partition("=")
    if name not in there:
        return value in _HIDDEN.get(kind, {}).get(name, ())
    return _plain(there[name]) == _plain(value) or (bool(value) and there[name].startswith(f"{value}:")) or not value


def _plain(value: str) -> str:
    """`256k` is 262144."""
    size = _SIZE.fullmatch(value)
    return str(int(size[1]) * _UNITS[size[2].lower()]) if size else value
