"""Check and hold block devices: is it the right device, is it unused, may it be overwritten?

The device is opened with O_EXCL and then checked again, so the result stays valid until the lease ends.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from worker.contract.workload import Stream
from worker.guard import loop_files, openers
from worker.guard.content import erase_accidental, own_signatures, refuse_unnamed_signatures, signatures_on
from worker.guard.lease import Lease, refuse_used_by_loop
from worker.guard.protection import refuse_protected, twins
from worker.guard.refusal import GuardRefused, Survey
from worker.kernel import sysfs, usage
from worker.kernel.signatures import identity, part_uuid
from worker.kernel.targets import OpenTarget
from worker.policy import ANY_SIGNATURE, Policy, PolicyEntry


@contextmanager
def leases(
    entries: Sequence[PolicyEntry], policy: Policy, armed_serials: tuple[str, ...], *, writes: bool
) -> Iterator[tuple[Lease, ...]]:
    """Check devices and hold them. Everything is checked again once they are held, because it cannot change any more.

    The processes of the host are examined once for all devices. Raises GuardRefused.
    """
    with ExitStack() as stack:
        drives = tuple(stack.enter_context(_lease(entry, armed_serials, writes=writes)) for entry in entries)
        _refuse_if_opened([drive for drive in drives if drive.exclusive], strict=writes)
        for entry, drive in zip(entries, drives, strict=True):
            if writes:
                refuse_protected(entry, drive.name, policy)
                refuse_unnamed_signatures(entry, drive.name, str(policy.path), drive.fd)
        yield drives


@contextmanager
def _lease(entry: PolicyEntry, armed_serials: tuple[str, ...], *, writes: bool) -> Iterator[Lease]:
    name, path = resolve(entry)
    identify(entry, name)
    if writes:
        refuse_unless_destroyable(entry, name, armed_serials)
    exclusive = writes or not entry.read_mounted
    others = twins(name) if exclusive else ()
    if exclusive:
        _refuse_if_any_used(name, others, path, strict=writes)
    with Lease(path, name=name, twins=others, writes=writes, exclusive=exclusive) as drive:
        identify(entry, name)
        _check_loop_file(name)
        if exclusive:
            _refuse_if_any_used(name, others, path, strict=writes)
        yield drive


@contextmanager
def hold(entry: PolicyEntry, policy: Policy, stream: Stream, armed_serials: tuple[str, ...]) -> Iterator[OpenTarget]:
    with leases((entry,), policy, armed_serials, writes=stream.workload.writes) as (drive,):
        _refuse_too_small(stream, drive)
        name, writes = drive.name, stream.workload.writes

        def recheck(*, programs: bool) -> None:
            refuse_replaced(drive)
            if drive.exclusive:
                drive.recheck()
                _refuse_shared_files((name, *drive.twins), strict=writes)
            if drive.exclusive and programs:
                _refuse_if_any_used(name, drive.twins, drive.path, strict=writes)
                _refuse_if_opened([drive], strict=writes)

        watched = writes and ANY_SIGNATURE not in entry.destroy_signatures
        before = own_signatures(name, drive.fd) if watched else ()
        yield OpenTarget(
            path=drive.path,
            numbers=drive.numbers,
            device=sysfs.whole(name),
            size_bytes=drive.size_bytes,
            target=entry.id,
            recheck=recheck,
        )
        if watched:
            erase_accidental(name, drive.fd, before)


def refuse_replaced(drive: Lease) -> None:
    """Refuse a block device whose path no longer names the drive that is held. Engines open the path.

    While a drive is held, no other drive gets its device numbers. Raises GuardRefused.
    """
    numbers = _numbers_at(drive.path)
    if not numbers:
        raise GuardRefused("device_gone", f"{drive.path} disappeared after it was checked.")
    if numbers != drive.numbers:
        raise GuardRefused("guard_path", f"{drive.path} no longer names the drive that was checked.")


def _numbers_at(path: str) -> str:
    """major:minor of the block device; "" if there is none."""
    try:
        facts = Path(path).lstat()
    except OSError:
        return ""
    return sysfs.block_numbers(facts)


@contextmanager
def hold_whole(
    entries: Sequence[PolicyEntry], policy: Policy, armed_serials: tuple[str, ...], *, purpose: str
) -> Iterator[tuple[Lease, ...]]:
    """Hold whole drives that will be overwritten. `purpose` starts the sentence that refuses a partition."""
    with leases(entries, policy, armed_serials, writes=True) as drives:
        for entry, drive in zip(entries, drives, strict=True):
            if sysfs.is_partition(drive.name):
                raise GuardRefused("guard_path", f"{entry.path} is a partition. {purpose} whole drives.")
        yield drives


def _refuse_if_any_used(name: str, others: Iterable[str], path: str, *, strict: bool) -> None:
    refuse_if_used(name, path, strict=strict)
    for other in others:
        refuse_if_used(other, f"{path} (also {sysfs.device_path(other)})", strict=strict)


def _refuse_if_opened(drives: Collection[Lease], *, strict: bool) -> None:
    """Refuse drives if a program has one of them open, or a device or file below one.

    A virtual machine may have a whole drive on which this host has found volumes of LVM.
    """
    reachable = {drive.path: _reachable((drive.name, *drive.twins)) for drive in drives}
    if len(reachable) > 1:  # one look at all processes, and one for each drive only if it finds any use
        everything = set[openers.Identity]().union(*(wanted | lower for wanted, lower in reachable.values()))
        if not openers.exports(everything, strict=strict) and not openers.openers(everything, strict=strict):
            return
    for path, (wanted, lower) in reachable.items():
        openers.refuse_if_opened(path, wanted, lower=lower, strict=strict)


def _refuse_if_exported(path: str, names: Iterable[str]) -> None:
    wanted, lower = _reachable(names)
    if users := openers.exports(wanted | lower):
        raise GuardRefused("guard_held", f"{path} is used by {', '.join(users)}: stop it first.")


def _reachable(names: Iterable[str]) -> tuple[set[openers.Identity], set[openers.Identity]]:
    """Of the devices with their partitions and disks, and of everything below them."""
    devices = {related for name in names for related in (name, sysfs.whole(name), *sysfs.partitions(name))}
    lower = {each for name in devices for each in sysfs.below(name)}
    return _identities(devices), _identities(lower - devices)


def _identities(names: Iterable[str]) -> set[openers.Identity]:
    """Everything through which another program could use one of these devices without opening it exclusively."""
    files = (used.file.identities for name in names if (used := loop_files.loop_file(name)))
    return set().union(*map(openers.device_identities, names), *files)


def write_problem(entry: PolicyEntry, policy: Policy) -> str:
    """Why a trial that writes to the device would be refused, although it is present and free; "" if it would not."""
    try:
        name, _path = resolve(entry)
        refuse_unless_destroyable(entry, name, (entry.arming_serial,))
        refuse_protected(entry, name, policy)
        refuse_unnamed_signatures(entry, name, str(policy.path))
    except GuardRefused as refused:
        return refused.message
    return ""


def survey(entry: PolicyEntry, *, own_layout: bool = False) -> Survey:
    name = path = ""
    try:
        name, path = resolve(entry)
        identify(entry, name)
        if not entry.read_mounted and not own_layout:
            others = twins(name)
            _refuse_if_any_used(name, others, path, strict=False)
            _refuse_if_exported(path, (name, *others))
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
    name = sysfs.name_of(sysfs.numbers_of(facts.st_rdev))
    if not name:
        raise GuardRefused("guard_path", f"{path} is a device node without a device.")
    return name, path


def identify(entry: PolicyEntry, name: str) -> None:
    """Refuse a drive other than the one in the policy."""
    current, serial = identity(name), sysfs.serial(name)
    if current != entry.stable_id:
        raise GuardRefused(
            "guard_serial_changed",
            f"{entry.path} is now {current}, but the policy lists {entry.stable_id}. If it is the right one, write "
            f'stable_id = "{current}" in the [[target]] {entry.id!r} of the policy.',
        )
    if serial != entry.serial and (entry.serial or entry.destroy):
        raise GuardRefused(
            "guard_serial_changed",
            f"{entry.path} has the serial {serial or 'none'}, but the policy lists {entry.serial or 'none'}. "
            "Check the label on the drive, then correct the policy.",
        )
    if sysfs.size_bytes(name) == 0:
        raise GuardRefused("guard_path", f"{entry.path} has size 0: no medium, or an unused loop device.")
    if sysfs.attribute(sysfs.whole(name), "queue/zoned") == "host-managed":
        raise GuardRefused(
            "guard_zoned",
            f"{entry.path} is a zoned drive (host-managed): its zones can only be written in order. Use a file system "
            "that supports such drives, and a directory on it as target.",
        )
    _refuse_unsafe_loop(name)


def _refuse_unsafe_loop(name: str) -> None:
    """Refuse a loop device whose file is missing or is not a regular file: only the file identifies it."""
    file = sysfs.backing_file(name)
    if not file:
        if loop_files.loop_file(name):
            raise GuardRefused("guard_path", f"{name} uses a file whose path the kernel does not show.")
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
        signatures = _content(name)
        content = f" and it contains {signatures}" if signatures else ""
        raise GuardRefused(
            "guard_not_destroyable",
            f"{entry.path} would be overwritten{content}; the policy has no destroy = true for {entry.id!r}.",
        )
    if sysfs.attribute(name, "dm/uuid").startswith("part"):
        raise GuardRefused(
            "guard_partition",
            f"{entry.path} would be overwritten, but it is a partition that kpartx has made: its id contains only its "
            "number, so nothing tells it from another partition with this number. Use the whole device.",
        )
    if sysfs.is_partition(name) and not part_uuid(name):
        raise GuardRefused(
            "guard_partition",
            f"{entry.path} would be overwritten, but its disk's partition table has no UUID for it, so nothing tells "
            "it from another partition with its number. Create it again with a GPT.",
        )
    if sysfs.attribute(name, "ro") == "1":
        raise GuardRefused("guard_path", f"{entry.path} is read-only, but the workload writes.")
    if entry.arming_serial not in armed_serials:
        raise GuardRefused(
            "guard_not_armed",
            f"{entry.path} would be overwritten; this run is not armed for {entry.arming_serial}.",
        )


def _content(name: str) -> str:
    """The signatures on a device in words. A device that cannot be read counts as one with data."""
    try:
        return ", ".join(dict.fromkeys(each.type for each in signatures_on(name)))
    except OSError as error:
        return f"unreadable data ({error.strerror or error})"


def refuse_if_used(name: str, path: str, *, strict: bool) -> None:
    """Refuse a device if it, or one above or below it, is mounted, swap, held or a disk that the host runs from.

    `strict`: also refuse it if a loop device of the host cannot be asked which file it uses.
    """
    try:
        now = usage.read_usage(everywhere=True)
    except (OSError, ValueError) as error:
        raise GuardRefused("guard_mounted", f"The mounts of this host cannot be read: {error}.") from error
    related = (name, *sysfs.above(name), *sysfs.below(name))
    for each in related:
        _refuse_mounted(each, path, now)
    if disks := now.root_disks().intersection((name, *sysfs.below(name))):
        raise GuardRefused("guard_mounted", f"{path} is on {min(disks)}, and this host runs from that disk.")
    for each in (name, *sysfs.partitions(name)):
        if holders := (*sysfs.holders(each), *usage.kernel_users(each)):
            raise GuardRefused("guard_held", f"{each} is held by {', '.join(holders)}: stop them first.")
    refuse_used_by_loop(name, strict=strict)
    _refuse_shared_files((name,), strict=strict)
    for each in (name, *sysfs.below(name)):
        _refuse_file_in_use(each, now)


def _refuse_mounted(each: str, path: str, now: usage.Usage) -> None:
    if mounts := now.mounts_of(each):
        points = ", ".join(mount.shown for mount in mounts)
        raise GuardRefused("guard_mounted", f"{path}: {each} is mounted on {points}. Unmount it first.")
    if each in now.swaps:
        raise GuardRefused("guard_held", f"{path}: {each} is used as swap. Run swapoff first.")
    if each in usage.btrfs_members():
        raise GuardRefused("guard_mounted", f"{path}: {each} is part of a mounted btrfs. Unmount it first.")


def _refuse_shared_files(names: Iterable[str], *, strict: bool) -> None:
    """Refuse a loop device whose file another one uses: exclusive opening protects the device, not the file.

    So do the loop devices below an array or volume.
    """
    for name in dict.fromkeys(layer for each in names for layer in (each, *sysfs.below(each))):
        used = loop_files.loop_file(name)
        if used and (others := loop_files.on_files((used.file,), besides=used.loop, strict=strict)):
            raise GuardRefused(
                "guard_held", f"the file of {name} is also used by {', '.join(others)}: detach all but one of them."
            )


def _refuse_file_in_use(name: str, now: usage.Usage) -> None:
    """Refuse a loop device whose file is mounted without a loop device, or is used as swap."""
    used = loop_files.loop_file(name)
    if not used:
        return
    path = sysfs.backing_file(name)
    for mounted in now.mounted_files:
        if _may_be_mounted_as(mounted, used.file, path):
            raise GuardRefused(
                "guard_mounted",
                f"the file of {name} may be mounted on {mounted.mount.shown} ({mounted.mount.kind}). Unmount it first.",
            )
    if now.unseen_images and any(_may_be_image(kind, path) for kind in usage.FILE_MOUNTS):
        raise GuardRefused(
            "guard_mounted",
            f"the file of {name} may be an image that is mounted where no mount table shows it: unmounted lazily while "
            "a program still uses it, or never attached. End that program.",
        )
    if used.file.identities & {openers.identity_at(swap) for swap in now.swap_files}:
        raise GuardRefused("guard_held", f"the file of {name} is used as swap. Run swapoff first.")


def _may_be_mounted_as(mounted: usage.MountedFile, file: loop_files.File, path: str) -> bool:
    """Whether the file at the path could be mounted there.

    The path in the mount table does not decide: another file may be there now, or it was that of a descriptor.
    """
    if mounted.file and file.may_be(loop_files.File(*mounted.file)):
        return True
    kind = mounted.mount.kind
    if kind not in usage.FILE_MOUNTS:
        return False
    return mounted.has_more or "fsoffset=" in mounted.mount.options or _may_be_image(kind, path)


def _may_be_image(kind: str, path: str) -> bool:
    """Whether the file contains such a file system."""
    offset, magic = usage.FILE_MOUNTS[kind]
    try:
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read(len(magic)) == magic
    except OSError:
        return True


def _check_loop_file(name: str) -> None:
    """Refuse a loop device whose file was replaced by another one at the same path."""
    used = loop_files.loop_file(name)
    if not used:
        return
    file = sysfs.backing_file(name)
    facts = Path(file).lstat()
    if (facts.st_dev, facts.st_ino) != (used.file.device, used.file.inode):
        raise GuardRefused("guard_serial_changed", f"the file of {name} is no longer the one at {file}.")


def _refuse_too_small(stream: Stream, drive: Lease) -> None:
    """The used part, from its offset to its end, must be inside the device."""
    wanted = stream.workload.end_bytes or 0
    if wanted > drive.size_bytes:
        raise GuardRefused(
            "guard_no_space", f"{drive.path} has {drive.size_bytes} bytes, but the workload needs {wanted}."
        )
