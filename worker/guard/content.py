"""What a write would overwrite: every signature must be named by the policy, whatever `destroy` says.

    target ─┬─ itself, its partitions, and what is built on it: each signature must be in `destroy_signatures`
            ├─ partitions in its table for which the kernel has no device: the same
            └─ its disk and everything below: the same, without the signatures of the layer that makes the target

A member of LVM, md, ZFS or another combined device that is not in use here may be in use on another host, which shares
the drive or gets it back. A file system that is not mounted may be somebody's only copy. The labels do not say whose
they are. So an empty drive needs only `destroy = true`, and everything else is named. libblkid decides what a
signature is (`worker.kernel.signatures`).

Random data looks like a signature of two bytes once in some ten thousand times. So that a series of trials does not
lock itself out, the guard erases such a signature at the end of the trial that wrote it, while it still holds the
device.
"""

import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator

import msgspec

from worker.guard.refusal import GuardRefused
from worker.kernel import libblkid, sysfs
from worker.kernel.signatures import Signature, is_known, read_signatures
from worker.policy import ANY_SIGNATURE, PolicyEntry

log = logging.getLogger(__name__)

_MAX_SHOWN = 6
_NESTED_TABLES = 2  # levels of partitions in partitions that are searched
_SHORT = 4  # bytes of a magic number that random data may have; libblkid checks little else of such formats
_MD_MEMBERS = frozenset({"linux_raid_member", "isw_raid_member", "ddf_raid_member"})
# Start of a volume's UUID in device-mapper -> signatures of the devices that it is made of.
_OF_VOLUMES = (
    ("LVM-", frozenset({"LVM2_member", "LVM1_member"})),
    ("CRYPT-", frozenset({"crypto_LUKS", "BitLocker", "cs_fvault2"})),
    ("VDO-", frozenset({"vdo"})),
    ("stratis-", frozenset({"stratis"})),
    ("DMRAID-", frozenset({
        "isw_raid_member", "ddf_raid_member", "lsi_mega_raid_member", "nvidia_raid_member",
        "promise_fasttrack_raid_member", "silicon_medley_raid_member", "via_raid_member", "adaptec_raid_member",
        "jmicron_raid_member", "hpt37x_raid_member", "hpt45x_raid_member",
    })),
)  # fmt: skip


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A signature that a write would overwrite, or that lies under it."""

    device: str  # kernel name
    type: str
    offset: int | None  # bytes from the start of the device

    def __str__(self) -> str:
        return f"{self.type} on {self.device}" + ("" if self.offset is None else f" at byte {self.offset}")


class SignatureNotNamed(GuardRefused):
    """Signatures that the policy does not name."""

    def __init__(self, entry: PolicyEntry, policy: str, signatures: tuple[Found, ...]) -> None:
        self.found = signatures
        self.line = line(entry, signatures)
        shown = ", ".join(map(str, signatures[:_MAX_SHOWN])) + (" …" if len(signatures) > _MAX_SHOWN else "")
        super().__init__(
            "guard_signature",
            f"{entry.path} would be overwritten, but it contains {shown}. If nobody needs this data, here or on "
            f"another host, set this line in the [[target]] {entry.id!r} of {policy}: {self.line}",
        )


def line(entry: PolicyEntry, signatures: Iterable[Found]) -> str:
    """The line of the policy that permits these signatures and those that are already named."""
    types = dict.fromkeys((*entry.destroy_signatures, *(each.type for each in signatures)))
    return f"destroy_signatures = {json.dumps(list(types))}"


def refuse_unnamed_signatures(entry: PolicyEntry, name: str, policy: str, fd: int | None = None) -> None:
    """`fd`: the device, if it is held. Raises GuardRefused guard_signature or guard_unreadable."""
    if ANY_SIGNATURE in entry.destroy_signatures:
        return
    try:
        unnamed = tuple(each for each in _all(name, fd) if each.type not in entry.destroy_signatures)
    except OSError as error:
        words = f"{entry.path} would be overwritten, but its content cannot be read: {error.strerror or error}."
        raise GuardRefused("guard_unreadable", words) from error
    if unnamed:
        raise SignatureNotNamed(entry, policy, unnamed)


def unknown_signatures(entry: PolicyEntry) -> tuple[str, ...]:
    """Names in `destroy_signatures` that libblkid never reports here, such as a misspelled one."""
    try:
        return tuple(each for each in entry.destroy_signatures if each != ANY_SIGNATURE and not is_known(each))
    except OSError:
        return ()


def signatures_on(name: str) -> tuple[Found, ...]:
    """Everything that a write to the device would overwrite, or that lies under it. Raises OSError."""
    return tuple(_all(name, None))


def own_signatures(name: str, fd: int) -> tuple[Signature, ...]:
    """The signatures on a device that is held, without those of its partitions. Raises OSError."""
    return _read(name, fd, with_parts=False)


def erase_accidental(name: str, fd: int, before: Collection[Signature]) -> tuple[Signature, ...]:
    """Erase the short signatures that appeared on a device since `before`, while the worker alone could write to it.

    Returns them. `fd`: the device, held exclusively.
    """
    erased = []
    try:
        for each in own_signatures(name, fd):
            if each not in before and each.offset is not None and 0 < each.magic_bytes <= _SHORT:
                os.pwrite(fd, bytes(each.magic_bytes), each.offset)
                erased.append(each)
                log.info("Erased %s at byte %d of %s: random data that looked like it.", each.type, each.offset, name)
        if erased:
            os.fsync(fd)
    except OSError as error:
        log.warning("%s could not be searched for accidental signatures: %s", name, error)
    return tuple(erased)


def _all(name: str, fd: int | None) -> Iterator[Found]:
    for each in (name, *sysfs.above(name)):
        yield from _on(each, fd if each == name else None)
    uppers = [name]
    seen = {name}
    for upper in uppers:
        explained = _explained_by(upper)
        for lower in sysfs.parents(upper):
            yield from _on(lower, None, explained=explained, tables=not sysfs.is_partition(upper), is_below=True)
            if lower not in seen:
                seen.add(lower)
                uppers.append(lower)


def member_types(stable_id: str) -> frozenset[str]:
    """Types of the signatures on the members of an array or volume."""
    if stable_id.startswith("md-uuid-"):
        return _MD_MEMBERS
    return _types_of_volume(stable_id.removeprefix("dm-uuid-"))


def _types_of_volume(uuid: str) -> frozenset[str]:
    return next((types for start, types in _OF_VOLUMES if uuid.startswith(start)), frozenset())


def _explained_by(upper: str) -> frozenset[str]:
    """Types of the signatures of the layer that makes the device out of those below it."""
    if sysfs.kind(upper) == "raid":
        return _MD_MEMBERS
    return _types_of_volume(sysfs.attribute(upper, "dm/uuid"))


def _on(
    name: str, fd: int | None, *, explained: frozenset[str] = frozenset(), tables: bool = True, is_below: bool = False
) -> Iterator[Found]:
    """`tables`: partition tables count. `is_below`: the device is not overwritten itself."""
    opened = _open(name) if fd is None else fd
    try:
        signatures = _read(name, opened, with_parts=not is_below)
    finally:
        if opened != fd:
            os.close(opened)
    for each in signatures:
        if each.type not in explained and (tables or not each.is_table):
            yield Found(device=name, type=each.type, offset=each.offset)


def _open(name: str) -> int:
    """Raises OSError, also if the node is that of another device."""
    fd = os.open(sysfs.device_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    facts = os.fstat(fd)
    numbers = sysfs.block_numbers(facts)
    if not numbers or numbers != sysfs.major_minor(name):
        os.close(fd)
        raise OSError(0, f"{sysfs.device_path(name)} is not the node of {name}")
    return fd


def _read(name: str, fd: int, *, with_parts: bool) -> tuple[Signature, ...]:
    size = sysfs.size_bytes(name)
    if not size:
        return ()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # read the device, not a copy from before a change
    signatures = read_signatures(fd, size)
    return tuple(dict.fromkeys((*signatures, *(_in_table(name, fd, size) if with_parts else ()))))


def _in_table(name: str, fd: int, size: int) -> Iterator[Signature]:
    """Signatures in the partitions of the table on a device for which the kernel has no device."""
    known = frozenset(map(sysfs.extent, sysfs.partitions(name)))
    yield from _in_partitions(fd, 0, size, known, _NESTED_TABLES)


def _in_partitions(
    fd: int, offset: int, size: int, known: Collection[tuple[int | None, int | None]], levels: int
) -> Iterator[Signature]:
    """Also in partitions of partitions: a partition that was the disk of a virtual machine has a table of its own."""
    tables = (libblkid.read_table(fd, offset=offset, size=size, block=block) for block in (0, *libblkid.BLOCK_SIZES))
    for entry in dict.fromkeys(entry for table in tables for entry in table):
        start, length = entry.start * sysfs.SECTOR_BYTES, entry.size * sysfs.SECTOR_BYTES
        if (entry.start, entry.size) in known or not 0 < start < size or length <= 0:
            continue
        length = min(length, size - start)
        yield from read_signatures(fd, length, offset=offset + start)
        if levels:
            yield from _in_partitions(fd, offset + start, length, (), levels - 1)
