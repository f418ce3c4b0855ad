"""Check and hold block devices: is it the right one, is it free, may it be overwritten?

The device is opened with O_EXCL first and checked afterwards, so the result stays true:
while it is held nobody can mount it, use it for swap, build on it or open it exclusively,
and a hot-plugged drive cannot get its name.
"""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from worker.contract.workload import Stream
from worker.guard.refusal import GuardRefused, Survey
from worker.inventory import signature, sysfs, usage
from worker.open_target import OpenTarget
from worker.policy import PolicyEntry

_LOOP_GET_STATUS64 = 0x4C05
_LOOP_STATUS_BYTES = 232


@contextmanager
def hold(entry: PolicyEntry, stream: Stream, armed_serials: tuple[str, ...]) -> Iterator[OpenTarget]:
    writes = stream.workload.writes
    name, path = resolve(entry)
    identify(entry, name)
    if writes:
        refuse_unless_destroyable(entry, name, armed_serials)
    if writes or not entry.read_mounted:
        refuse_if_used(name, path)
    fd = _open(name, path, writes=writes, exclusive=writes or not entry.read_mounted)
    try:
        _check_again(entry, name, path, fd, writes=writes)
        _refuse_too_small(stream, name, path)
        yield OpenTarget(path=path, device=sysfs.whole(name), target=entry.id)
    finally:
        os.close(fd)


class Claim(msgspec.Struct, frozen=True):
    """A whole drive that is free to be built on."""

    name: str  # kernel name; "" for a drive that only its controller sees
    path: str  # node without links; such a drive's bay
    size_bytes: int


class HeldDrive(msgspec.Struct, frozen=True):
    """A whole drive that nobody else can open exclusively, mount or build on while it is held."""

    name: str  # kernel name
    path: str  # node without links
    fd: int  # open for reading and writing
    size_bytes: int


@contextmanager
def hold_whole(entry: PolicyEntry, armed_serials: tuple[str, ...], *, purpose: str) -> Iterator[HeldDrive]:
    """Hold a drive that is the right one, destroyable, armed, free and whole. Its serial is checked again once held."""
    name, path = resolve(entry)
    identify(entry, name)
    refuse_unless_destroyable(entry, name, armed_serials)
    refuse_if_used(name, path)
    if sysfs.is_partition(name):
        raise GuardRefused("guard_path", f"{entry.path} is a partition; {purpose} whole drives.")
    fd = _open(name, path, writes=True, exclusive=True)
    try:
        _check_again(entry, name, path, fd, writes=True)
        yield HeldDrive(name, path, fd, sysfs.size_bytes(name))
    finally:
        os.close(fd)


def claim(entry: PolicyEntry, armed_serials: tuple[str, ...]) -> Claim:
    """Check that a layout may be built on a drive: the right one, destroyable, armed, free and whole.

    The drive cannot be held during building: the building program opens it exclusively, and fails if another program
    was faster.
    """
    with hold_whole(entry, armed_serials, purpose="layouts are built on") as held:
        return Claim(held.name, held.path, held.size_bytes)


def survey(entry: PolicyEntry, *, own_layout: bool = False) -> Survey:
    name = path = ""
    try:
        name, path = resolve(entry)
        identify(entry, name)
        if not entry.read_mounted and not own_layout:
            refuse_if_used(name, path)
    except GuardRefused as refused:
        if not name:
            return Survey(problem=refused.message)
        return _found(name, path, problem=refused.message)
    return _found(name, path)


def _found(name: str, path: str, *, problem: str = "") -> Survey:
    return Survey(device=sysfs.whole(name), size_bytes=sysfs.size_bytes(name), opens=path, problem=problem)


def resolve(entry: PolicyEntry) -> tuple[str, str]:
    """Kernel name and /dev path of the device that the policy's path leads to now."""
    try:
        path = os.path.realpath(entry.path, strict=True)
        facts = Path(path).stat()
    except OSError as error:
        raise GuardRefused("guard_path", f"{entry.path}: {error.strerror}. Is the drive there?") from error
    if not stat.S_ISBLK(facts.st_mode):
        raise GuardRefused("guard_path", f"{entry.path} is not a block device.")
    name = sysfs.name_of(f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}")
    if not name:
        raise GuardRefused("guard_path", f"{path} is a node without a device behind it.")
    return name, path


def identify(entry: PolicyEntry, name: str) -> None:
    """Refuse a drive that is not the one in the policy."""
    found, own = sysfs.stable_id(name), sysfs.serial(name)
    if found != entry.stable_id:
        raise GuardRefused(
            "guard_serial_changed",
            f"{entry.path} is {found} now, the policy means {entry.stable_id}: another drive, or the policy is old.",
        )
    if own != entry.serial and (entry.serial or entry.destroy):
        raise GuardRefused(
            "guard_serial_changed",
            f"{entry.path} has the serial {own or 'none'}, the policy says {entry.serial or 'none'}. "
            "Compare the drive's label, then correct the policy.",
        )
    if sysfs.size_bytes(name) == 0:
        raise GuardRefused("guard_path", f"{entry.path} has no size: no medium, or a free loop device.")
    _refuse_unsafe_loop(name)


def _refuse_unsafe_loop(name: str) -> None:
    """Refuse a loop device whose file is missing or is not a regular file: only the file identifies it."""
    file = sysfs.backing_file(name)
    if not file:
        return
    try:
        facts = Path(file).lstat()
    except OSError as error:
        raise GuardRefused("guard_path", f"{name} lies on {file}, which is gone ({error.strerror}).") from error
    if not stat.S_ISREG(facts.st_mode):
        raise GuardRefused("guard_held", f"{name} lies on {file}, which is no regular file: name that device itself.")


def refuse_unless_destroyable(entry: PolicyEntry, name: str, armed_serials: tuple[str, ...]) -> None:
    """A write needs the policy's permission and a person's arming, both for this drive."""
    if not entry.destroy:
        found = _signature(name)
        holds = f" and it holds {found}" if found else ""
        raise GuardRefused(
            "guard_signature" if found else "guard_not_destroyable",
            f"{entry.path} would be overwritten{holds}; the policy does not say destroy = true for {entry.id!r}.",
        )
    if sysfs.attribute(name, "ro") == "1":
        raise GuardRefused("guard_path", f"{entry.path} is read-only; the workload writes.")
    if entry.arming_serial not in armed_serials:
        raise GuardRefused(
            "guard_not_armed",
            f"{entry.path} would be overwritten; nobody has armed this run for {entry.arming_serial}.",
        )


def _signature(name: str) -> str:
    """The signature on a drive. A drive that cannot be read counts as one that holds data."""
    try:
        fd = os.open(sysfs.device_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return signature.read_signature(fd, sysfs.size_bytes(name))
        finally:
            os.close(fd)
    except OSError as error:
        return f"what could not be read ({error.strerror})"


def refuse_if_used(name: str, path: str) -> None:
    """Refuse a device if it, or anything above or below it, is mounted, swap, held or the host's own disk."""
    try:
        now = usage.read_usage()
    except (OSError, ValueError) as error:
        raise GuardRefused("guard_mounted", f"What is mounted on this host cannot be read: {error}.") from error
    related = (name, *sysfs.above(name), *sysfs.below(name))
    for each in related:
        _refuse_mounted(each, path, now)
    if found := now.root_disks().intersection((name, *sysfs.below(name))):
        raise GuardRefused("guard_mounted", f"{path} is on {min(found)}, which this host runs from.")
    for each in (name, *sysfs.partitions(name)):
        if holders := sysfs.holders(each):
            raise GuardRefused("guard_held", f"{each} is held by {', '.join(holders)}: stop that first.")
    _refuse_shared_file(name, now)


def _refuse_mounted(each: str, path: str, now: usage.Usage) -> None:
    if mounts := now.mounts_of(each):
        points = ", ".join(mount.point for mount in mounts)
        raise GuardRefused("guard_mounted", f"{path}: {each} is mounted on {points}. Unmount it first.")
    if each in now.swaps:
        raise GuardRefused("guard_held", f"{path}: {each} is swap. swapoff it first.")
    if each in usage.btrfs_members():
        raise GuardRefused("guard_mounted", f"{path}: {each} is part of a mounted btrfs.")


def _refuse_shared_file(name: str, now: usage.Usage) -> None:
    """Refuse a loop device whose file is in use elsewhere: opening exclusively protects only the device."""
    file = sysfs.backing_file(name)
    if not file:
        return
    own = _identity(file)
    for other in sysfs.names():
        other_file = sysfs.backing_file(other)
        if other_file and sysfs.whole(other) != sysfs.whole(name) and _identity(other_file) == own:
            raise GuardRefused("guard_held", f"{file} under {name} is also under {other}: detach one of them.")
    if own in [_identity(swap) for swap in now.swap_files]:
        raise GuardRefused("guard_held", f"{file} under {name} is swap. swapoff it first.")


def _identity(file: str) -> tuple[int, int] | None:
    try:
        facts = Path(file).stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _open(name: str, path: str, *, writes: bool, exclusive: bool) -> int:
    flags = (os.O_RDWR if writes else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_EXCL if exclusive else 0)
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise GuardRefused(
                "guard_busy",
                f"{path} is in use: something has opened {name} for itself alone (LVM, ZFS, md, another trial …).",
            ) from error
        raise GuardRefused("guard_path", f"{path} cannot be opened: {error.strerror}.") from error


def _check_again(entry: PolicyEntry, name: str, path: str, fd: int, *, writes: bool) -> None:
    """Repeat the checks now that the device is held and cannot change any more."""
    facts = os.fstat(fd)
    if sysfs.name_of(f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}") != name:
        raise GuardRefused("guard_path", f"{path} became another device while it was being checked.")
    identify(entry, name)
    _check_loop_file(name, fd)
    if writes or not entry.read_mounted:
        refuse_if_used(name, path)


def _check_loop_file(name: str, fd: int) -> None:
    """Refuse a loop device whose file was replaced by another one at the same path."""
    file = sysfs.backing_file(name)
    if not file or sysfs.is_partition(name):
        return
    status = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_LOOP_STATUS_BYTES))
    _device, inode = struct.unpack_from("=QQ", status)
    if Path(file).lstat().st_ino != inode:
        raise GuardRefused("guard_serial_changed", f"{name} lies on a file that is no longer {file}.")


def _refuse_too_small(stream: Stream, name: str, path: str) -> None:
    wanted, size = stream.workload.size_bytes or 0, sysfs.size_bytes(name)
    if wanted > size:
        raise GuardRefused("guard_no_space", f"{path} has {size} bytes, the workload wants {wanted}.")
