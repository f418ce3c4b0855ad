"""Check and hold block devices: is it the right device, is it unused, may it be overwritten?

The device is opened with O_EXCL and then checked again, so the result stays valid until the lease ends.
"""

import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.contract.workload import Stream
from worker.guard import openers
from worker.guard.lease import Lease
from worker.guard.members import foreign_member
from worker.guard.refusal import GuardRefused, Survey
from worker.guard.twins import twins
from worker.inventory import signature, sysfs, usage
from worker.open_target import OpenTarget
from worker.policy import PolicyEntry

_LOOP_GET_STATUS64 = 0x4C05
_LOOP_STATUS_BYTES = 232


@contextmanager
def lease(entry: PolicyEntry, armed_serials: tuple[str, ...], *, writes: bool) -> Iterator[Lease]:
    """Check a device and hold it. Everything is checked again once it is held, because it cannot change any more.

    Raises GuardRefused.
    """
    name, path = resolve(entry)
    identify(entry, name)
    if writes:
        refuse_unless_destroyable(entry, name, armed_serials)
    exclusive = writes or not entry.read_mounted
    others = twins(name) if exclusive else ()
    if exclusive:
        _refuse_if_any_used(name, others, path)
    with Lease(
        path, name=name, twins=others, size_bytes=sysfs.size_bytes(name), writes=writes, exclusive=exclusive
    ) as held:
        identify(entry, name)
        _check_loop_file(name, held.fd)
        if exclusive:
            _refuse_if_any_used(name, others, path)
            openers.refuse_if_opened(path, _identities((name, *others)), strict=writes)
        if writes:
            _refuse_foreign_member(entry, name)
        yield held


@contextmanager
def hold(entry: PolicyEntry, stream: Stream, armed_serials: tuple[str, ...]) -> Iterator[OpenTarget]:
    with lease(entry, armed_serials, writes=stream.workload.writes) as held:
        _refuse_too_small(stream, held)
        yield OpenTarget(path=held.path, numbers=held.numbers, device=sysfs.whole(held.name), target=entry.id)


def refuse_other_node(open_target: OpenTarget) -> None:
    """Refuse a block device whose path no longer names the drive that is held. Engines open the path.

    While a drive is held, no other drive gets its device numbers. Raises GuardRefused.
    """
    if open_target.numbers and _numbers_at(open_target.path) != open_target.numbers:
        raise GuardRefused("guard_path", f"{open_target.path} no longer names the drive that was checked.")


def _numbers_at(path: str) -> str:
    """major:minor of the block device; "" if there is none."""
    try:
        facts = Path(path).lstat()
    except OSError:
        return ""
    return f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}" if stat.S_ISBLK(facts.st_mode) else ""


@contextmanager
def hold_whole(entry: PolicyEntry, armed_serials: tuple[str, ...], *, purpose: str) -> Iterator[Lease]:
    """Hold a whole drive that will be overwritten. `purpose` starts the sentence that refuses a partition."""
    with lease(entry, armed_serials, writes=True) as held:
        if sysfs.is_partition(held.name):
            raise GuardRefused("guard_path", f"{entry.path} is a partition. {purpose} whole drives.")
        yield held


def _refuse_if_any_used(name: str, others: Iterable[str], path: str) -> None:
    refuse_if_used(name, path)
    for other in others:
        refuse_if_used(other, f"{path}, which is also {sysfs.device_path(other)},")


def _identities(names: Iterable[str]) -> set[openers.Identity]:
    """Everything through which another program could use one of these devices without opening it exclusively."""
    found: set[openers.Identity] = set()
    for name in names:
        found |= _device_identities(name)
        if file := sysfs.backing_file(name):
            found.add(openers.identity(Path(file).stat()))
    return found


def _device_identities(name: str) -> set[openers.Identity]:
    """Of the device, its partitions, and its disk."""
    return set().union(*map(openers.device_identities, (name, sysfs.whole(name), *sysfs.partitions(name))))


def _refuse_foreign_member(entry: PolicyEntry, name: str) -> None:
    try:
        found = foreign_member(name, entry.destroy_members)
    except OSError as error:
        raise GuardRefused("guard_foreign_member", f"{entry.path} cannot be read: {error.strerror}.") from error
    if found:
        raise GuardRefused(
            "guard_foreign_member",
            f"{entry.path} would be overwritten, but {found}, perhaps of another host. If nobody needs it, wipe it by "
            f"hand, or list the format in destroy_members of {entry.id!r} in the policy.",
        )


def survey(entry: PolicyEntry, *, own_layout: bool = False) -> Survey:
    name = path = ""
    try:
        name, path = resolve(entry)
        identify(entry, name)
        if not entry.read_mounted and not own_layout:
            _refuse_if_any_used(name, twins(name), path)
    except GuardRefused as refused:
        if not name:
            return Survey(problem=refused.message)
        return _found(name, path, problem=refused.message)
    return _found(name, path)


def _found(name: str, path: str, *, problem: str = "") -> Survey:
    return Survey(device=sysfs.whole(name), size_bytes=sysfs.size_bytes(name), opens=path, problem=problem)


def resolve(entry: PolicyEntry) -> tuple[str, str]:
    """Kernel name and /dev path of the device that the policy's path points to now."""
    try:
        path = os.path.realpath(entry.path, strict=True)
        facts = Path(path).stat()
    except OSError as error:
        raise GuardRefused("guard_path", f"{entry.path}: {error.strerror}. Is the drive connected?") from error
    if not stat.S_ISBLK(facts.st_mode):
        raise GuardRefused("guard_path", f"{entry.path} is not a block device.")
    name = sysfs.name_of(f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}")
    if not name:
        raise GuardRefused("guard_path", f"{path} is a device node without a device.")
    return name, path


def identify(entry: PolicyEntry, name: str) -> None:
    """Refuse a drive other than the one in the policy."""
    found, own = sysfs.stable_id(name), sysfs.serial(name)
    if found != entry.stable_id:
        raise GuardRefused(
            "guard_serial_changed",
            f"{entry.path} is {found}, but the policy lists {entry.stable_id}: the drive or the policy is outdated.",
        )
    if own != entry.serial and (entry.serial or entry.destroy):
        raise GuardRefused(
            "guard_serial_changed",
            f"{entry.path} has the serial {own or 'none'}, but the policy lists {entry.serial or 'none'}. "
            "Check the label on the drive, then correct the policy.",
        )
    if sysfs.size_bytes(name) == 0:
        raise GuardRefused("guard_path", f"{entry.path} has size 0: no medium, or an unused loop device.")
    _refuse_unsafe_loop(name)


def _refuse_unsafe_loop(name: str) -> None:
    """Refuse a loop device whose file is missing or is not a regular file: only the file identifies it."""
    file = sysfs.backing_file(name)
    if not file:
        return
    try:
        facts = Path(file).lstat()
    except OSError as error:
        raise GuardRefused("guard_path", f"{name} uses {file}, which does not exist ({error.strerror}).") from error
    if not stat.S_ISREG(facts.st_mode):
        raise GuardRefused("guard_held", f"{name} uses {file}, which is not a regular file: list that device.")


def refuse_unless_destroyable(entry: PolicyEntry, name: str, armed_serials: tuple[str, ...]) -> None:
    """Refuse unless the policy allows overwriting this drive and a person has armed it."""
    if not entry.destroy:
        found = _signature(name)
        content = f" and it contains {found}" if found else ""
        raise GuardRefused(
            "guard_signature" if found else "guard_not_destroyable",
            f"{entry.path} would be overwritten{content}; the policy has no destroy = true for {entry.id!r}.",
        )
    if sysfs.attribute(name, "ro") == "1":
        raise GuardRefused("guard_path", f"{entry.path} is read-only, but the workload writes.")
    if entry.arming_serial not in armed_serials:
        raise GuardRefused(
            "guard_not_armed",
            f"{entry.path} would be overwritten; this run is not armed for {entry.arming_serial}.",
        )


def _signature(name: str) -> str:
    """The signature on a drive. A drive that cannot be read counts as a drive with data."""
    try:
        fd = os.open(sysfs.device_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return signature.read_signature(fd, sysfs.size_bytes(name))
        finally:
            os.close(fd)
    except OSError as error:
        return f"unreadable data ({error.strerror})"


def refuse_if_used(name: str, path: str) -> None:
    """Refuse a device if it, or one above or below it, is mounted, swap, held or a disk that the host runs from."""
    try:
        now = usage.read_usage()
    except (OSError, ValueError) as error:
        raise GuardRefused("guard_mounted", f"The mounts of this host cannot be read: {error}.") from error
    related = (name, *sysfs.above(name), *sysfs.below(name))
    for each in related:
        _refuse_mounted(each, path, now)
    if found := now.root_disks().intersection((name, *sysfs.below(name))):
        raise GuardRefused("guard_mounted", f"{path} is on {min(found)}, and this host runs from that disk.")
    for each in (name, *sysfs.partitions(name)):
        if holders := sysfs.holders(each):
            raise GuardRefused("guard_held", f"{each} is held by {', '.join(holders)}: stop them first.")
    _refuse_under_loop(name)
    _refuse_shared_file(name, now)


def _refuse_mounted(each: str, path: str, now: usage.Usage) -> None:
    if mounts := now.mounts_of(each):
        points = ", ".join(mount.point for mount in mounts)
        raise GuardRefused("guard_mounted", f"{path}: {each} is mounted on {points}. Unmount it first.")
    if each in now.swaps:
        raise GuardRefused("guard_held", f"{path}: {each} is used as swap. Run swapoff first.")
    if each in usage.btrfs_members():
        raise GuardRefused("guard_mounted", f"{path}: {each} is part of a mounted btrfs. Unmount it first.")


def _refuse_under_loop(name: str) -> None:
    """Refuse a device that a loop device uses as its file: the kernel shows no holder for it."""
    own = _device_identities(name)
    for other in sysfs.names():
        file = sysfs.backing_file(other)
        if file and openers.identity_at(file) in own:
            raise GuardRefused("guard_held", f"{name} is used by {other}: detach it first.")


def _refuse_shared_file(name: str, now: usage.Usage) -> None:
    """Refuse a loop device whose file is used elsewhere: exclusive opening protects the device, not the file."""
    file = sysfs.backing_file(name)
    if not file:
        return
    own = openers.identity_at(file)
    for other in sysfs.names():
        other_file = sysfs.backing_file(other)
        if other_file and sysfs.whole(other) != sysfs.whole(name) and openers.identity_at(other_file) == own:
            raise GuardRefused("guard_held", f"the file {file} of {name} is also used by {other}: detach one of them.")
    if own in [openers.identity_at(swap) for swap in now.swap_files]:
        raise GuardRefused("guard_held", f"the file {file} of {name} is used as swap. Run swapoff first.")


def _check_loop_file(name: str, fd: int) -> None:
    """Refuse a loop device whose file was replaced by another one at the same path."""
    file = sysfs.backing_file(name)
    if not file or sysfs.is_partition(name):
        return
    status = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_LOOP_STATUS_BYTES))
    _device, inode = struct.unpack_from("=QQ", status)
    if Path(file).lstat().st_ino != inode:
        raise GuardRefused("guard_serial_changed", f"the file of {name} is no longer the one at {file}.")


def _refuse_too_small(stream: Stream, held: Lease) -> None:
    wanted = stream.workload.size_bytes or 0
    if wanted > held.size_bytes:
        raise GuardRefused(
            "guard_no_space", f"{held.path} has {held.size_bytes} bytes, but the workload needs {wanted}."
        )
