"""Mount options as asked for, held against what the kernel shows of a mount (proc_pid_mountinfo(5)).

The kernel shows what is not at its default. Tried on Linux 6.18 with ext4, XFS and btrfs; `commit=5` and
`thread_pool=4` are the kind that is taken and not shown.
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
_SAME = {"barrier=0": "nobarrier"}
_SIZE = re.compile(r"(\d+)([kmg])", re.I)
_UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}


def observed(asked: Sequence[str], shown: str) -> tuple[str, ...]:
    """Of the options asked for, those that hold, in the words of the mount; `shown` is a mount's whole list."""
    there = _by_name(shown)
    return tuple(option for option in asked if _holds(option, there))


def contradicted(asked: Sequence[str], shown: str) -> tuple[str, ...]:
    """Of the options asked for, those that the kernel took and did not follow."""
    there = _by_name(shown)
    unseen = (option for option in asked if not _holds(option, there))
    return tuple(option for option in unseen if "=" not in option or option.partition("=")[0] in there)


def _by_name(shown: str) -> dict[str, str]:
    pairs = (option.partition("=") for option in shown.split(","))
    return {name: value for name, _, value in pairs}


def _holds(option: str, there: dict[str, str]) -> bool:
    if opposite := _DEFAULTS.get(option):
        return not any(name == opposite for name in there)
    name, _, value = _SAME.get(option, option).partition("=")
    if name not in there:
        return False
    return _plain(there[name]) == _plain(value) or (bool(value) and there[name].startswith(f"{value}:")) or not value


def _plain(value: str) -> str:
    """`256k` is 262144."""
    size = _SIZE.fullmatch(value)
    return str(int(size[1]) * _UNITS[size[2].lower()]) if size else value
