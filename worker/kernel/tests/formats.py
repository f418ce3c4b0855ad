"""Signatures written by hand, for formats whose tools need kernel drivers or packages that tests do not have.

Layouts: md(4) and Documentation/admin-guide/md.rst; LVM2's lib/label/label.h; OpenZFS's include/sys/vdev_impl.h;
mdadm's super-intel.c; util-linux's libblkid/src/superblocks.
"""

import os
import struct

KIB, MIB = 1024, 1024 * 1024

Pieces = tuple[tuple[int, bytes], ...]  # offset, content


def md_1(size: int, place: str) -> Pieces:
    """A superblock of version 1.0, 1.1 or 1.2."""
    offset = {"1.0": (size & ~0xFFF) - 0x2000, "1.1": 0, "1.2": 4096}[place]
    block = bytearray(256)
    struct.pack_into("<II", block, 0, 0xA92B4EFC, 1)
    struct.pack_into("<Q", block, 144, offset // 512)
    struct.pack_into("<I", block, 216, _md_sum(bytes(block)))
    return ((offset, bytes(block)),)


def _md_sum(block: bytes) -> int:
    total: int = sum(struct.unpack(f"<{len(block) // 4}I", block))
    return ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF


def md_0(size: int) -> Pieces:
    offset = (size & ~0xFFFF) - 0x10000
    return ((offset, struct.pack("<IIII", 0xA92B4EFC, 0, 90, 0) + bytes(4 * KIB - 16)),)


def intel(size: int, sector: int = 512) -> Pieces:
    return (((size // sector - 2) * sector, b"Intel Raid ISM Cfg Sig. 1.0.00" + bytes(50)),)


def lvm2() -> Pieces:
    """A label with a wrong checksum, which counts too."""
    return ((512, b"LABELONE" + struct.pack("<QII", 1, 0, 32) + b"LVM2 001" + b"a" * 32),)


def zfs_label(size: int, number: int, uberblocks: int = 1) -> Pieces:
    """One of the four labels."""
    end = size - size % (256 * KIB)
    start = (0, 256 * KIB, end - 512 * KIB, end - 256 * KIB)[number]
    ring = tuple((start + 128 * KIB + slot * KIB, struct.pack("<Q", 0x00BAB10C)) for slot in range(uberblocks))
    return ((start + 16 * KIB, b"\x01\x01\0\0" + bytes(8)), *ring)


def zfs_spare() -> Pieces:
    """The first label of a spare, as `zpool create` of OpenZFS 2.1 writes it."""
    head = b"\x01\x01\0\0" + struct.pack(">IIIII", 0, 1, 36, 32, 7) + b"version\0"
    return ((16 * KIB, head),)


def accidental_journal() -> Pieces:
    """The two bytes of ext's magic number, with the flag of a journal device and nothing else."""
    block = bytearray(1024)
    block[0x38:0x3A] = b"\x53\xef"
    struct.pack_into("<I", block, 0x60, 8)
    return ((1024, bytes(block)),)


def write(path: str, pieces: Pieces) -> None:
    with open(path, "r+b") as file:  # noqa: PTH123 - may be a device
        for offset, content in pieces:
            file.seek(offset)
            file.write(content)
        file.flush()
        os.fsync(file.fileno())
