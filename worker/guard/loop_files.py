"""The files of loop devices, by device number and inode. The path in sysfs proves nothing: it may be gone, belong to
another mount namespace, or be too long to be shown.

    loop device ─► LOOP_GET_STATUS64 ─► (device, inode) of its file, and (major, minor) if the file is a block device

A stacked file system, such as an overlay, gives the file another device number and in most cases the same inode. So two
files with the same inode count as the same one if one of them is on such a file system, or on one that nobody knows.
An overlay keeps the inode of a file that it has copied from a lower layer, so the copy itself is searched too.
"""

import errno
import fcntl
import os
import stat
import struct
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from worker.guard.refusal import GuardRefused
from worker.kernel import sysfs, usage

DEV = Path("/dev")
_GET_STATUS = 0x4C05  # LOOP_GET_STATUS64 of linux/loop.h
_STATUS_BYTES = 232
_STATUS = struct.Struct("=QQQQQ")  # device, inode, rdevice, offset, size limit: the start of struct loop_info64
_SEEN_INODE_BITS = 0xFFFFFFFF  # overlays (xino) use the upper bits of an inode number for themselves
# File systems without a block device number whose files are nobody else's. All others may show files of another one.
_OWN_FILES = frozenset({"btrfs", "tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs", "zfs", "bcachefs"})

Numbers = tuple[int, int]  # major and minor


class File(msgspec.Struct, frozen=True):
    """A file as stat(2) shows it; `kind` is its file system, "" if unknown."""

    device: int
    inode: int
    kind: str = msgspec.field(default="")
    beneath: "File | None" = None  # of a file of an overlay: the one in its layers that stores the data, if it is found

    @property
    def identities(self) -> frozenset[tuple[str, int, int]]:
        """Of the file and of those beneath it, as worker.guard.openers names them."""
        itself = frozenset({("file", self.device, self.inode)})
        return itself | self.beneath.identities if self.beneath else itself

    def may_be(self, other: "File") -> bool:
        if self.identities & other.identities:
            return True
        if self.device == other.device or (self.inode ^ other.inode) & _SEEN_INODE_BITS:
            return False
        return self._may_be_stacked() or other._may_be_stacked()

    def _may_be_stacked(self) -> bool:
        return os.major(self.device) == 0 and self.kind not in _OWN_FILES


class LoopFile(msgspec.Struct, frozen=True):
    loop: str  # kernel name of the loop device
    file: File
    block: Numbers | None  # if the file is a block device
    offset: int
    size_limit: int


def loop_file(name: str) -> LoopFile | None:
    """What a loop device uses; None for an unused one and for other devices.

    Raises GuardRefused if the loop device cannot be asked.
    """
    disk = sysfs.whole(name)
    if sysfs.kind(disk) != "loop":
        return None
    try:
        with _opened(disk) as fd:
            status = fcntl.ioctl(fd, _GET_STATUS, bytes(_STATUS_BYTES))
    except OSError as error:
        if error.errno == errno.ENXIO or not sysfs.exists(disk) or not _is_used(disk):
            return None
        raise GuardRefused(
            "guard_held", f"{disk} cannot be asked which file it uses ({error.strerror}), so it may use the target.",
        ) from error  # fmt: skip
    device, inode, rdevice, offset, size_limit = _STATUS.unpack_from(status)
    block = (os.major(rdevice), os.minor(rdevice)) if rdevice else None
    return LoopFile(disk, _file_at(sysfs.backing_file(disk), device, inode), block, offset, size_limit)


def loop_files(*, strict: bool = True) -> tuple[LoopFile, ...]:
    """Of all loop devices of the host. Raises GuardRefused if `strict` and one cannot be asked, as in a container."""
    disks = (name for name in sysfs.names() if name.startswith("loop") and not sysfs.is_partition(name))
    return tuple(used for disk in disks if (used := _asked(disk, strict=strict)))


def _asked(disk: str, *, strict: bool) -> LoopFile | None:
    try:
        return loop_file(disk)
    except GuardRefused:
        if strict:
            raise
        return _by_path(disk)


def _by_path(disk: str) -> LoopFile | None:
    """By the path that sysfs shows, without its offset."""
    try:
        facts = Path(sysfs.backing_file(disk)).stat()
    except (OSError, ValueError):
        return None
    block = (os.major(facts.st_rdev), os.minor(facts.st_rdev)) if stat.S_ISBLK(facts.st_mode) else None
    return LoopFile(disk, File(facts.st_dev, facts.st_ino), block, 0, 0)


def on_devices(numbers: Collection[Numbers], *, strict: bool = True) -> tuple[str, ...]:
    """Loop devices that use one of these block devices, or a file on the file system of one, mounted or not.

    Raises GuardRefused if `strict` and a loop device cannot be asked.
    """
    return tuple(
        used.loop
        for used in loop_files(strict=strict)
        if used.block in numbers or (os.major(used.file.device), os.minor(used.file.device)) in numbers
    )


def on_files(files: Collection[File], *, besides: str = "", strict: bool = True) -> tuple[str, ...]:
    """Loop devices other than `besides` that use one of these files. Raises GuardRefused if `strict`."""
    return tuple(
        used.loop
        for used in loop_files(strict=strict)
        if used.loop != besides and not used.block and any(used.file.may_be(file) for file in files)
    )


def opened_file(fd: int) -> File:
    facts = os.fstat(fd)
    mount = usage.mount_of(fd)
    return File(facts.st_dev, facts.st_ino, mount.kind if mount else "", _beneath(fd, mount))


def _beneath(fd: int, mount: usage.Mount | None) -> File | None:
    """The file in the layers of an overlay; None for other file systems, and if its layers cannot be reached."""
    if mount is None or mount.kind != "overlay":
        return None
    path = Path(f"/proc/self/fd/{fd}").readlink()
    if not path.is_relative_to(mount.point):
        return None
    inside = mount.root.lstrip("/") / path.relative_to(mount.point)
    for layer in usage.overlay_layers(mount):
        if file := _regular_file(layer / inside):
            return file
    return None


def _regular_file(path: Path) -> File | None:
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return opened_file(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def _is_used(disk: str) -> bool:
    """By sysfs, which shows the folder `loop` and a size only of loop devices with a file."""
    return (sysfs.node(disk) / "loop").exists() or sysfs.size_bytes(disk) > 0


def _file_at(path: str, device: int, inode: int) -> File:
    """The file with these numbers; its file system is known if it is still at the path."""
    file = _regular_file(Path(path)) if path else None
    return file if file and (file.device, file.inode) == (device, inode) else File(device, inode)


@contextmanager
def _opened(disk: str) -> Iterator[int]:
    """The loop device by its numbers: the node in /dev if it is the right one, else a temporary node."""
    major, _, minor = sysfs.major_minor(disk).partition(":")
    if not minor:
        raise FileNotFoundError(errno.ENXIO, os.strerror(errno.ENXIO))  # removed since it was listed
    numbers = os.makedev(int(major), int(minor))
    path = DEV / disk
    if _is_node(path, numbers):
        with _descriptor(path, numbers) as fd:
            yield fd
        return
    folder = Path(tempfile.mkdtemp(prefix=".sweetspot-", dir=DEV))
    try:
        os.mknod(folder / disk, stat.S_IFBLK | 0o600, numbers)
        with _descriptor(folder / disk, numbers) as fd:
            yield fd
    finally:
        with suppress(FileNotFoundError):
            (folder / disk).unlink()
        folder.rmdir()


@contextmanager
def _descriptor(path: Path, numbers: int) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if os.fstat(fd).st_rdev != numbers:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        yield fd
    finally:
        os.close(fd)


def _is_node(path: Path, numbers: int) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISBLK(facts.st_mode) and facts.st_rdev == numbers
