"""A target that the guard has checked, opened and holds for a stream."""

import msgspec


class OpenTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard hands to an engine. Its descriptors stay open, and its claim holds, while the guard is inside.

    `path` is what fio opens: the device's resolved path for a block target, the
    file's base name for a file target. Directory and file targets are used from
    inside `cwd_fd`, a directory that was opened without following links, so that
    no name in the path can be exchanged.
    """

    path: str
    device: str = ""  # kernel name of the block device it is or lies on (for /sys/block statistics), "" if unknown
    several: tuple[str, ...] = ()  # block devices under a file system over several (btrfs); `device` is "" then
    cwd_fd: int | None = None  # fio's working directory; None for block targets
    pass_fds: tuple[int, ...] = ()  # further descriptors that fio inherits
    target: str = ""  # id of the policy's entry that allowed it
    members: tuple[str, ...] = ()  # kernel names of the drives under a layout; () without a layout

    @property
    def devices(self) -> tuple[str, ...]:
        """Whole block devices that receive the I/O directly; () if unknown."""
        return (self.device,) if self.device else self.several
