"""Where a stream does its I/O, as the guard found and holds it."""

import msgspec


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard hands to an engine. Its descriptors stay open, and its claim holds, while the guard is inside.

    `path` is what fio opens: the device's resolved path for a block target, the
    file's base name for a file target. Directory and file targets are worked on
    from inside `cwd_fd`, a directory that was opened without following links, so
    that no name on the way can be exchanged.
    """

    path: str
    device: str = ""  # kernel name of the block device it is or lies on (for /sys/block statistics), "" if unknown
    several: tuple[str, ...] = ()  # those under a file system over several of them (btrfs); `device` is "" then
    cwd_fd: int | None = None  # fio's working directory; None for block targets
    pass_fds: tuple[int, ...] = ()  # further descriptors fio is to inherit
    target: str = ""  # id of the policy's entry that allowed it
    members: tuple[str, ...] = ()  # kernel names of the drives under a layout; () without one

    @property
    def devices(self) -> tuple[str, ...]:
        """Whole block devices that the I/O goes to directly; () if unknown."""
        return (self.device,) if self.device else self.several
