"""Find the format on a device by magic numbers.

The magic numbers come from the formats' documentation and util-linux's libblkid. "" means that none
of these formats was found, not that the device is empty.
"""

import os

import msgspec


class Magic(msgspec.Struct, frozen=True):
    name: str
    offset: int  # bytes; negative: from the end
    pattern: bytes


_BCACHE = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
_BCACHEFS = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
_MD = bytes.fromhex("fc4e2ba9")
MAGICS = (
    Magic("gpt", 512, b"EFI PART"),
    Magic("gpt", 4096, b"EFI PART"),
    Magic("gpt (backup)", -512, b"EFI PART"),
    Magic("luks", 0, b"LUKS\xba\xbe"),
    Magic("luks", 0x4000, b"SKUL\xba\xbe"),
    # type of the label, as used by LVM, libblkid and wipefs
    *(Magic("lvm2", sector * 512 + 24, b"LVM2 001") for sector in range(4)),
    Magic("md raid", 0, _MD),
    Magic("md raid", 4096, _MD),
    Magic("ext2/3/4", 0x438, b"\x53\xef"),
    Magic("xfs", 0, b"XFSB"),
    Magic("btrfs", 0x10040, b"_BHRfS_M"),
    Magic("bcache", 0x1018, _BCACHE),
    Magic("bcachefs", 0x1018, _BCACHEFS),
    Magic("swap", 4086, b"SWAPSPACE2"),
    Magic("swap", 4086, b"SWAP-SPACE"),
    Magic("swap", 65526, b"SWAPSPACE2"),
    Magic("f2fs", 0x400, bytes.fromhex("1020f5f2")),
    Magic("erofs", 0x400, bytes.fromhex("e2e1f5e0")),
    Magic("nilfs2", 0x406, b"\x34\x34"),
    Magic("ntfs", 3, b"NTFS    "),
    Magic("exfat", 3, b"EXFAT   "),
    Magic("vfat", 54, b"FAT1"),
    Magic("vfat", 82, b"FAT32"),
    Magic("jfs", 0x8000, b"JFS1"),
    Magic("reiserfs", 0x10034, b"ReIsEr"),
    Magic("iso9660", 0x8001, b"CD001"),
    Magic("udf", 0x8001, b"BEA01"),
    Magic("squashfs", 0, b"hsqs"),
    Magic("ceph bluestore", 0, b"bluestore block device"),
    Magic("oracle asm", 32, b"ORCLDISK"),
    Magic("vmfs", 0x100000, bytes.fromhex("0dd001c0")),
    Magic("intel raid", -1024, b"Intel Raid ISM Cfg"),
    Magic("ddf raid", -512, bytes.fromhex("de11de11")),
    Magic("dos partition table", 510, b"\x55\xaa"),  # last, because boot sectors of file systems have the same end
)
_ZFS_UBERBLOCKS = (128 * 1024, 384 * 1024)  # of the first two labels; each ring is 128 KiB
_ZFS_MAGIC = (bytes.fromhex("0cb1ba0000000000"), bytes.fromhex("0000000000bab10c"))
_HEAD_BYTES = 512 * 1024


def read_signature(fd: int, size_bytes: int) -> str:
    """Name of the first format found on an open device or file. Raises OSError."""
    return next(iter(read_signatures(fd, size_bytes)), "")


def read_signatures(fd: int, size_bytes: int) -> tuple[str, ...]:
    """Names of all formats found on an open device or file. Raises OSError."""
    head = os.pread(fd, min(_HEAD_BYTES, size_bytes), 0)
    by_magic = (
        magic.name for magic in MAGICS if _at(fd, head, magic.offset, size_bytes, len(magic.pattern)) == magic.pattern
    )
    return tuple(dict.fromkeys(filter(None, (*by_magic, _old_md(fd, head, size_bytes), _zfs(head)))))


def _at(fd: int, head: bytes, offset: int, size_bytes: int, length: int) -> bytes:
    start = offset if offset >= 0 else size_bytes + offset
    if start < 0 or start + length > size_bytes:
        return b""
    return head[start : start + length] if start + length <= len(head) else os.pread(fd, length, start)


def _old_md(fd: int, head: bytes, size_bytes: int) -> str:
    """md superblocks 0.90 and 1.0 are near the end."""
    sectors = size_bytes // 512
    places = ((size_bytes & ~0xFFFF) - 0x10000, ((sectors - 16) & ~7) * 512)
    return "md raid" if any(_at(fd, head, place, size_bytes, 4) == _MD for place in places if place > 0) else ""


def _zfs(head: bytes) -> str:
    slots = (start + step for start in _ZFS_UBERBLOCKS for step in range(0, 128 * 1024, 1024))
    return "zfs" if any(head[slot : slot + 8] in _ZFS_MAGIC for slot in slots) else ""
