"""Targets of the policy without `destroy` protect their data also against targets that cover them.

A disk, array or volume with `destroy = true` covers its partitions, everything that is built on it, and the members it
is made of; a loop device covers its file. A partition, or a volume of LVM, covers only itself: a policy may allow it to
be overwritten and not its disk.

An array or volume that is stopped, and a multipath device without its daemon, has no device that shows its members.
As long as it is absent, it protects every device with a member of its kind that nothing uses, and each of its paths.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from worker.contract.workload import TargetKind
from worker.guard.content import member_types, signatures_on
from worker.guard.loop_files import File
from worker.guard.refusal import GuardRefused
from worker.kernel import sysfs
from worker.kernel.sysfs import is_part_of, shortened
from worker.policy import Policy, PolicyEntry

# Other devices with the same data: a LUN or SAS drive with two paths that no multipath device combines, a multipath
# device that has lost its paths, and device-mapper devices on the same device, such as the snapshots of an origin.
#
# A mount or an exclusive open of one name does not protect the others. The kernel treats them as different devices.

_ALLOCATING = ("LVM-", "stratis-", "DMRAID-")  # start of the UUIDs of volumes that never share data
_DM_PARTITION = re.compile(r"part[0-9]+-(.+)")


def twins(name: str, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Kernel names of other devices that show data of the device, or of the drives below it; () if there are none."""
    disk = sysfs.whole(name, sys)
    layers = (disk, *sysfs.below(disk, sys))
    related = {*layers, *sysfs.above(disk, sys)}
    drives = [each for each in layers if _is_drive(each, sys)]
    others = (other for other in sysfs.names(sys) if drives and other not in related and _is_drive(other, sys))
    paths = [other for other in others if any(_same_drive(drive, other, sys) for drive in drives)]
    beside = (
        holder
        for upper in layers
        if sysfs.kind(upper, sys) == "dm"
        for lower in sysfs.slaves(upper, sys)
        for holder in sysfs.holders(lower, sys)
        if holder not in related and _may_share(upper, holder, lower, sys)
    )
    return tuple(dict.fromkeys((*paths, *beside)))


def _is_drive(name: str, sys: Path) -> bool:
    return sysfs.kind(name, sys) == "disk" or _dm_uuid(name, sys).startswith("mpath-")


def _dm_uuid(name: str, sys: Path) -> str:
    return sysfs.attribute(name, "dm/uuid", sys)


def _same_drive(one: str, other: str, sys: Path) -> bool:
    """Compare world-wide names; if one of them is missing, serial, model, size and namespace."""
    names = [sysfs.wwid(each, sys) for each in (one, other)]
    for uuid, path in ((_dm_uuid(one, sys), names[1]), (_dm_uuid(other, sys), names[0])):
        if uuid:
            return _is_map_of(uuid, path)
    if all(names):
        return names[0] == names[1]
    drives = (sysfs.read_device(each, sys) for each in (one, other))
    facts = [(each.serial, each.model, each.size_bytes, sysfs.attribute(each.name, "nsid", sys)) for each in drives]
    return bool(facts[0][0]) and facts[0] == facts[1]


def _is_map_of(uuid: str, wwid: str) -> bool:
    """Whether a multipath device, or a partition of it, is that of a path with this world-wide name.

    multipath uses the spelling of scsi_id(8), which has a digit for the type of the name, or the kernel's.
    """
    kind, _, rest = wwid.partition(".")
    digit = {"naa": "3", "eui": "2", "t10": "1"}.get(kind, "")
    return bool(wwid) and uuid.endswith((f"mpath-{wwid}", f"mpath-{digit}{'_'.join(rest.split())}"))


def _may_share(upper: str, beside: str, lower: str, sys: Path) -> bool:
    """Whether two device-mapper devices on `lower` may use the same part of it.

    The volumes of LVM on a device never do, except the snapshots of an origin; nor do the partitions of a map.
    """
    ours, theirs, base = (_dm_uuid(each, sys) for each in (upper, beside, lower))
    if any(ours.startswith(start) and theirs.startswith(start) for start in _ALLOCATING):
        return base.endswith("-real")
    parts = [_DM_PARTITION.fullmatch(uuid) for uuid in (ours, theirs)]
    return not all(part and part[1] == base for part in parts)


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
            is_covered = (
                sysfs.device_at(other.path) in covered
                or any(is_part_of(other.identity, disk) for disk in disks)
                or _may_consist_of(other, name, covered)
            )
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
        return any(_is_map_of(other.identity, sysfs.wwid(each)) for each in covered if not sysfs.is_partition(each))
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


def _file_at(path: str) -> tuple[int, int] | None:
    """Device and inode; None if there is no file."""
    try:
        facts = Path(path).stat() if path else None
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if facts else None
