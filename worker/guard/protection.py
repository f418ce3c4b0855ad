"""Targets of the policy without `destroy` protect their data also against targets that cover them.

A disk, array or volume with `destroy = true` covers its partitions, everything that is built on it, and the members it
is made of; a loop device covers its file. A partition, or a volume of LVM, covers only itself: a policy may allow it to
be overwritten and not its disk.

An array or volume that is stopped, and a multipath device without its daemon, has no device that shows its members.
As long as it is absent, it protects every device with a member of its kind that nothing uses, and each of its paths.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from worker.contract.workload import TargetKind
from worker.guard.content import member_types, signatures_on
from worker.guard.loop_files import File
from worker.guard.refusal import GuardRefused
from worker.kernel import sysfs
from worker.kernel.sysfs import is_part_of, shortened
from worker.policy import Policy, PolicyEntry

# Other kernel names of the same drive: a LUN or SAS drive with two paths and without multipath.
#
# A mount or an exclusive open of one name does not protect the others. The kernel treats them as different devices.


def twins(name: str, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Kernel names of the other paths to the disk of `name`; () if there is only one."""
    disk = sysfs.whole(name, sys)
    if sysfs.kind(disk, sys) != "disk":
        return ()
    related = {disk, *sysfs.below(disk, sys), *sysfs.above(disk, sys)}
    others = (other for other in sysfs.names(sys) if other not in related and sysfs.kind(other, sys) == "disk")
    return tuple(other for other in others if _same_drive(disk, other, sys))


def _same_drive(one: str, other: str, sys: Path) -> bool:
    """Compare world-wide names; if one of them is missing, serial, model, size and namespace."""
    names = [sysfs.wwid(each, sys) for each in (one, other)]
    if all(names):
        return names[0] == names[1]
    facts = [
        (
            sysfs.serial(each, sys),
            sysfs.model(each, sys),
            sysfs.size_bytes(each, sys),
            sysfs.attribute(each, "nsid", sys),
        )
        for each in (one, other)
    ]
    return bool(facts[0][0]) and facts[0] == facts[1]


def refuse_protected(entry: PolicyEntry, name: str, policy: Policy) -> None:
    """`name`: kernel name of the device that would be overwritten. Raises GuardRefused guard_protected."""
    covered = _covered(name)
    disks = [sysfs.unshortened_id(each) for each in covered if not sysfs.is_partition(each)]
    files = {_file_at(sysfs.backing_file(each)) for each in covered} - {None}
    for other in policy.targets:
        if other.id == entry.id or other.destroy:
            continue
        if other.kind is TargetKind.BLOCK:
            # By its id too: the kernel forgets a partition whose table was removed, but its data may still be there.
            is_covered = _name_at(other.path) in covered or any(is_part_of(other.identity, disk) for disk in disks)
            is_covered = is_covered or _may_consist_of(other, name, covered)
        else:
            is_covered = other.kind is TargetKind.FILE and _file_at(other.path) in files
        if is_covered:
            raise _protected(entry, other, policy)


def refuse_protected_file(entry: PolicyEntry, file: File, policy: Policy) -> None:
    """Refuse a file that a target without `destroy` lists by another path. Raises GuardRefused guard_protected."""
    for other in policy.targets:
        if other.id != entry.id and other.kind is TargetKind.FILE and not other.destroy:
            numbers = _file_at(other.path)
            if numbers and ("file", *numbers) in file.identities:
                raise _protected(entry, other, policy)


def _protected(entry: PolicyEntry, other: PolicyEntry, policy: Policy) -> GuardRefused:
    return GuardRefused(
        "guard_protected",
        f"{entry.path} would be overwritten, but {policy.path} protects {other.path} on it: the [[target]] "
        f"{other.id!r} has no destroy = true. Remove that target, or destroy = true of {entry.id!r}.",
    )


def _may_consist_of(other: PolicyEntry, name: str, covered: set[str]) -> bool:
    """Whether `other` is an absent array, volume or multipath device that the device may be a member or path of.

    Raises GuardRefused guard_unreadable.
    """
    if "mpath-" in other.identity:
        paths = (sysfs.wwid(each) for each in covered if not sysfs.is_partition(each))
        return any(path and other.identity.endswith((f"mpath-{path}", f"mpath-3{path[4:]}")) for path in paths)
    types = member_types(other.identity)
    if not types or _is_present(other.identity):
        return False
    try:
        return any(each.type in types and not sysfs.above(each.device) for each in signatures_on(name))
    except OSError as error:
        words = f"/dev/{name} would be overwritten, but its content cannot be read: {error.strerror or error}."
        raise GuardRefused("guard_unreadable", words) from error


def _is_present(identity: str) -> bool:
    """Whether the array or volume exists, or that of the partition."""
    assembled = (each for each in sysfs.names() if sysfs.kind(each) in ("raid", "dm"))
    return any(
        identity == shortened(each) or is_part_of(identity, each) for each in map(sysfs.unshortened_id, assembled)
    )


def _covered(name: str) -> set[str]:
    """Kernel names of all devices whose content a write to this one changes, except the disk of a partition."""
    names = {name, *twins(name), *_members(name)} if not sysfs.is_partition(name) else {name}
    return names.union(*map(sysfs.above, names))


def _members(name: str) -> Iterator[str]:
    """Devices that an array or volume consists of, down to the partitions or disks. A volume of LVM is a part."""
    if sysfs.attribute(name, "dm/uuid").startswith("LVM-"):
        return
    for lower in sysfs.slaves(name):
        yield lower
        yield from _members(lower)


def _name_at(path: str) -> str:
    """Kernel name of the block device at the path; "" if there is none."""
    try:
        numbers = Path(path).stat().st_rdev
    except OSError:
        return ""
    return sysfs.name_of(f"{os.major(numbers)}:{os.minor(numbers)}")


def _file_at(path: str) -> tuple[int, int] | None:
    """Device and inode; None if there is no file."""
    try:
        facts = Path(path).stat() if path else None
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if facts else None
