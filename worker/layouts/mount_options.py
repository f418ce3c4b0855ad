"""Compare requested mount options with those that the kernel shows for a mount (proc_pid_mountinfo(5)).

The kernel hides options that have their default value, such as `commit=5` of ext4 and `commit=30` of btrfs
(fs/ext4/super.c, ext4_show_options; fs/btrfs/super.c, btrfs_show_options). If a default depends on the machine, such as
`thread_pool` of btrfs, a missing option proves nothing. Tested on Linux 6.18 with ext4, XFS and btrfs.
"""

import re
from collections.abc import Sequence

# Defaults: in effect if the kernel does not show the opposite.
_DEFAULTS = {
    "nodiscard": "discard",
    "auto_da_alloc": "noauto_da_alloc",
    "barrier": "nobarrier",
    "barrier=1": "nobarrier",
    "delalloc": "nodelalloc",
    "integrity": "nointegrity",
}
# Default values that the kernel hides, by file system.
_HIDDEN: dict[str, dict[str, tuple[str, ...]]] = {
    "ext4": {"commit": ("5", "0"), "max_batch_time": ("15000",), "data": ("ordered",)},
    "btrfs": {"commit": ("30",)},
}
_SAME = {"barrier=0": "nobarrier"}
_SIZE = re.compile(r"(\d+)([kmg])", re.I | re.ASCII)
_UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}


def observed(asked: Sequence[str], shown: str, kind: str) -> tuple[str, ...]:
    """The requested options that are in effect, as the kernel spells them.

    `shown` is the complete list of the mount, `kind` its file system.
    """
    there = _by_name(shown)
    return tuple(option for option in asked if _holds(option, there, kind))


def contradicted(asked: Sequence[str], shown: str, kind: str) -> tuple[str, ...]:
    """The requested options that the kernel accepted but did not apply."""
    there = _by_name(shown)
    unseen = (option for option in asked if not _holds(option, there, kind))
    return tuple(option for option in unseen if _must_be_seen(option.partition("="), there, kind))


def _must_be_seen(option: tuple[str, str, str], there: dict[str, str], kind: str) -> bool:
    """Whether the kernel would show the option: a flag or its opposite, or a value that is not the hidden default."""
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
