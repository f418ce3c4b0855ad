"""The signatures on a device: superblocks of file systems, members and volumes, and partition tables.

libblkid decides what is a signature. Three additions cover what some of its versions miss:

    bcachefs        unknown before util-linux 2.39
    ceph_bluestore  unknown before util-linux 2.36
    zfs_member      before util-linux 2.40, found only with at least 4 uberblocks; ZFS imports a label with one, and the
                    labels of cache devices and spares have none

A GPT is also found if it was written for a disk with sectors of another size. Bridges of USB change that size, and a
drive that another host may get back is known there.

One false report is left out: libblkid before 2.39 takes any two bytes "H+" or "HX" at offset 1024 for HFS+, which
random data has once in 32,768 times. A volume header of HFS+ has a block size that is a power of two, 512 or larger
(Apple Technical Note TN1150).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from worker.kernel import libblkid, sysfs
from worker.kernel.libblkid import Detected
from worker.kernel.sysfs import SYS, shortened

_BCACHEFS = 0x1018  # offset of its magic; the first version has the magic of bcache
_BCACHEFS_MAGICS = (
    bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"),
    bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef"),
)
_BLUESTORE = b"bluestore block device"
# OpenZFS, include/sys/vdev_impl.h: labels of 256 KiB, two at each end of the device, which is rounded down to 256 KiB.
_ZFS_LABEL, _ZFS_NVLIST, _ZFS_RING = 256 * 1024, 16 * 1024, 128 * 1024
_ZFS_NVLIST_HEADS = (b"\x01\x00", b"\x01\x01")  # XDR, either byte order
_ZFS_UBERBLOCKS = (bytes.fromhex("0cb1ba0000000000"), bytes.fromhex("0000000000bab10c"))
_ZFS_STEP = 1024
# Of cache devices and spares: header, version and flags of the list, sizes and length of its first name, in XDR.
_ZFS_FIRST_NAME, _ZFS_FIRST = 24, b"version\0"
_GPT_MAGIC = b"EFI PART"  # at the start of the second sector, and of the last one
_HFSPLUS, _HFSPLUS_BLOCK_SIZE = 1024, 40  # offset of the volume header; of the block size in it, big-endian
ADDED = ("bcachefs", "ceph_bluestore", "zfs_member")


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """`type`: as blkid(8) and wipefs(8) show it: TYPE of a superblock, or PTTYPE of a partition table."""

    type: str
    is_table: bool = False
    offset: int | None = None  # bytes from the start of the device; None if unknown
    magic_bytes: int = 0  # length of what is at `offset`; 0 if unknown


def read_signatures(fd: int, size_bytes: int, *, offset: int = 0) -> tuple[Signature, ...]:
    """All signatures on an open device or file, or on `size_bytes` of it from `offset` on. Raises OSError."""
    by_libblkid = [each for each in libblkid.detect(fd, offset=offset, size=size_bytes) if _is_real(fd, offset, each)]
    signatures = [
        Signature(type=each.type, is_table=each.is_table, offset=each.offset, magic_bytes=each.magic_bytes)
        for each in by_libblkid
    ]
    types = {each.type for each in signatures}
    return (*signatures, *(each for each in _added(fd, offset, size_bytes, types) if each.type not in types))


def is_known(name: str) -> bool:
    """Whether a signature of this type can be reported on this host. Raises OSError."""
    return name in ADDED or libblkid.is_known(name)


def _is_real(fd: int, offset: int, signature: Detected) -> bool:
    if signature.type != "hfsplus" or signature.offset != offset + _HFSPLUS:
        return True
    block_bytes = int.from_bytes(os.pread(fd, 4, signature.offset + _HFSPLUS_BLOCK_SIZE), "big")
    is_embedded = os.pread(fd, 2, signature.offset) == b"BD"  # in a volume of HFS, whose header comes first
    return is_embedded or (block_bytes >= 512 and block_bytes & (block_bytes - 1) == 0)


def _added(fd: int, offset: int, size_bytes: int, types: set[str]) -> Iterator[Signature]:
    if "bcache" not in types and os.pread(fd, 16, offset + _BCACHEFS) in _BCACHEFS_MAGICS:
        yield Signature(type="bcachefs", offset=offset + _BCACHEFS)
    if os.pread(fd, len(_BLUESTORE), offset) == _BLUESTORE:
        yield Signature(type="ceph_bluestore", offset=offset)
    for header in _gpt_headers(fd, offset, size_bytes):
        yield Signature(type="gpt", is_table=True, offset=header, magic_bytes=len(_GPT_MAGIC))
    if place := _zfs_label(fd, offset, size_bytes):
        yield Signature(type="zfs_member", offset=place)


def _gpt_headers(fd: int, offset: int, size_bytes: int) -> Iterator[int]:
    """Offset of each header of a GPT, also of one that libblkid finds invalid. Raises OSError."""
    for sector in libblkid.BLOCK_SIZES:
        for place in (sector, size_bytes - sector):
            if 0 < place <= size_bytes - sector and os.pread(fd, len(_GPT_MAGIC), offset + place) == _GPT_MAGIC:
                yield offset + place


def _zfs_label(fd: int, offset: int, size_bytes: int) -> int | None:
    """Offset of the first uberblock in a label that ZFS could import, or of a label of a cache device or spare."""
    end = size_bytes - size_bytes % _ZFS_LABEL
    for start in (0, _ZFS_LABEL, end - 2 * _ZFS_LABEL, end - _ZFS_LABEL):
        if start < 0 or os.pread(fd, 2, offset + start + _ZFS_NVLIST) not in _ZFS_NVLIST_HEADS:
            continue
        if os.pread(fd, len(_ZFS_FIRST), offset + start + _ZFS_NVLIST + _ZFS_FIRST_NAME) == _ZFS_FIRST:
            return offset + start + _ZFS_NVLIST
        ring = os.pread(fd, _ZFS_LABEL - _ZFS_RING, offset + start + _ZFS_RING)
        for step in range(0, len(ring), _ZFS_STEP):
            if ring[step : step + 8] in _ZFS_UBERBLOCKS:
                return offset + start + _ZFS_RING + step
    return None


# The identity of a target's device: of a disk its stable id, of a partition also its UUID, start and size.
#
# A partition's number alone is not an identity: after repartitioning another partition has it. PARTUUID comes from
# the table on the disk. It is a GPT partition's own UUID; in a table of kind dos, the disk's id and the partition's
# number, so start and size are part of the identity too. A partition that is not in the table with this start and
# size (another table was written, or the kernel was told of it by hand), and one in a table without ids, has no UUID.

UDEV = Path("/run/udev/data")


def identity(name: str, sys: Path = SYS) -> str:
    """`wwn-0x5000c500a1b2c3d4-part1:<PARTUUID>@<start>+<size>`, start and size in sectors of 512 bytes.

    Devices that are not partitions have their stable id. Reads the disk of a partition, unless `sys` is recorded.
    """
    if not sysfs.is_partition(name, sys):
        return sysfs.stable_id(name, sys)
    start, size = sysfs.extent(name, sys)
    return shortened(f"{sysfs.unshortened_id(name, sys)}:{part_uuid(name, sys)}@{start or 0}+{size or 0}")


def part_uuid(name: str, sys: Path = SYS) -> str:
    """PARTUUID of a partition in lower case; "" if it has none, or if it cannot be read."""
    if sys != SYS:
        return _of_event(name, sys)
    try:
        return _in_table(name)
    except PermissionError:  # without root rights: what the kernel or udev has read
        return _of_event(name, sys) or _assigned(
            sysfs.text(UDEV / f"b{sysfs.major_minor(name)}"), "E:ID_PART_ENTRY_UUID="
        )
    except OSError:
        return ""


def _in_table(name: str) -> str:
    """Raises OSError."""
    disk = sysfs.whole(name)
    place = sysfs.number(name, "partition"), *sysfs.extent(name)
    fd = os.open(sysfs.device_path(disk), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        facts = os.fstat(fd)
        numbers = sysfs.block_numbers(facts)
        if not numbers or numbers != sysfs.major_minor(disk):
            return ""
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # read the disk, not a copy from before a change
        return next((e.uuid for e in libblkid.read_table(fd) if (e.number, e.start, e.size) == place), "")
    finally:
        os.close(fd)


def _of_event(name: str, sys: Path) -> str:
    """From the kernel (6.10 or newer)."""
    return _assigned(sysfs.attribute(name, "uevent", sys), "PARTUUID=")


def _assigned(lines: str, key: str) -> str:
    return next((line.removeprefix(key).lower() for line in lines.splitlines() if line.startswith(key)), "")
