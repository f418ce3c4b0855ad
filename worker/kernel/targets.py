"""A target that the guard has checked and holds open for a stream."""

from collections.abc import Callable
from typing import Protocol

import msgspec


class Recheck(Protocol):
    """Raises GuardRefused. `programs`: also examine all processes and mount namespaces of the host, which takes longer;
    not while programs of the worker use the target."""

    def __call__(self, *, programs: bool) -> None: ...


def _is_not_held(*, programs: bool) -> None:
    """For targets that are not opened."""


class LayoutArray(msgspec.Struct, frozen=True, kw_only=True):
    """The md array of a layout that the worker has built in the same run. The functions raise LayoutFailed."""

    name: str  # kernel name
    remove_member: Callable[[], None]  # fail, remove and erase the last member: the layout is not used again
    add_member: Callable[[], None]  # add it again, which starts the rebuild


class OpenTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target for an engine. Its descriptors and its lock are valid inside the guard's context manager.

    `path` is the path that the engine opens: the resolved path of a device, or the base name of
    a file. For directory and file targets the engine runs in the directory `cwd_fd`, which was
    opened without following links, so that nobody can replace a part of the path.
    """

    path: str
    numbers: str = ""  # major:minor of the block device at `path`; "" for directory and file targets
    device: str = ""  # kernel name of the block device under the target (for /sys/block statistics), "" if unknown
    size_bytes: int | None = None  # of the block device at `path`: of a partition, not of its disk; None for others
    several: tuple[str, ...] = ()  # devices of a file system on several devices (btrfs); `device` is then ""
    cwd_fd: int | None = None  # the engine's working directory, isolated from mounts; None for block targets
    directory_fd: int | None = None  # the same directory on the host's own mount
    pass_fds: tuple[int, ...] = ()  # further descriptors that the engine inherits
    target: str = ""  # id of the policy entry that allows the target
    members: tuple[str, ...] = ()  # kernel names of the drives under a layout; () without a layout
    array: LayoutArray | None = None  # only for streams that act on it
    recheck: Recheck = _is_not_held  # is the target still the one that was checked, and unused? before each write

    @property
    def devices(self) -> tuple[str, ...]:
        """Whole block devices that receive the I/O directly; () if unknown."""
        return (self.device,) if self.device else self.several
