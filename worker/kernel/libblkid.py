"""The parts of libblkid (util-linux 2.31 or newer) that the worker uses, through ctypes. Needs no other program.

libblkid reads through an open descriptor, so that no other device can be at the same path meanwhile.
Reference: libblkid's documentation, “Low-level probing”.
"""

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from functools import cache

import msgspec

from worker.kernel.sysfs import SECTOR_BYTES

LIBRARY = "libblkid.so.1"

# blkid.h
_SUPERBLOCKS_TYPE, _SUPERBLOCKS_USAGE = 1 << 5, 1 << 7
_SUPERBLOCKS_MAGIC, _SUPERBLOCKS_BAD_CHECKSUM = 1 << 9, 1 << 10
_PARTITIONS_FORCE_GPT, _PARTITIONS_MAGIC = 1 << 1, 1 << 3  # a GPT also counts without its protective MBR

_Pointer, _Int, _Offset, _Text = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "blkid_new_probe": (_Pointer, ()),
    "blkid_free_probe": (None, (_Pointer,)),
    "blkid_probe_set_device": (_Int, (_Pointer, _Int, _Offset, _Offset)),
    "blkid_probe_set_sectorsize": (_Int, (_Pointer, ctypes.c_uint)),
    "blkid_probe_enable_superblocks": (_Int, (_Pointer, _Int)),
    "blkid_probe_set_superblocks_flags": (_Int, (_Pointer, _Int)),
    "blkid_probe_enable_partitions": (_Int, (_Pointer, _Int)),
    "blkid_probe_set_partitions_flags": (_Int, (_Pointer, _Int)),
    "blkid_do_probe": (_Int, (_Pointer,)),
    "blkid_probe_hide_range": (_Int, (_Pointer, ctypes.c_uint64, ctypes.c_uint64)),
    "blkid_probe_step_back": (_Int, (_Pointer,)),
    "blkid_probe_lookup_value": (
        _Int,
        (_Pointer, _Text, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_size_t)),
    ),
    "blkid_probe_get_partitions": (_Pointer, (_Pointer,)),
    "blkid_partlist_numof_partitions": (_Int, (_Pointer,)),
    "blkid_partlist_get_partition": (_Pointer, (_Pointer, _Int)),
    "blkid_partition_get_partno": (_Int, (_Pointer,)),
    "blkid_partition_get_start": (_Offset, (_Pointer,)),
    "blkid_partition_get_size": (_Offset, (_Pointer,)),
    "blkid_partition_get_uuid": (_Text, (_Pointer,)),
    "blkid_known_fstype": (_Int, (_Text,)),
    "blkid_known_pttype": (_Int, (_Text,)),
}
_BLKSSZGET = 0x1268  # linux/fs.h
# Sizes of a drive's logical block. A table or superblock that counts in blocks says nothing of their size, and another
# size was in use when it was written if the drive was reformatted or moved to another controller or USB bridge.
BLOCK_SIZES = (512, 4096)
MAX_COPIES = 4  # of one type that are looked for: a member of ZFS has up to 512
MAX_ROUNDS = 1000  # each round finds one signature


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """A signature. `type`: libblkid's TYPE of a superblock, or PTTYPE of a partition table."""

    type: str
    is_table: bool
    offset: int | None  # of its magic bytes, from the start of the device; None if libblkid does not say
    magic_bytes: int = 0


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A partition in the partition table on a disk."""

    number: int
    start: int  # sectors of 512 bytes
    size: int  # sectors of 512 bytes
    uuid: str  # PARTUUID in lower case; "" if the table gives none


@cache
def _library() -> ctypes.CDLL:
    """Raises OSError if the library is missing or too old."""
    library = ctypes.CDLL(LIBRARY, use_errno=True)
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise OSError(0, f"{LIBRARY} has no {name}: install util-linux 2.31 or newer") from error
        function.restype, function.argtypes = result, arguments
    return library


def is_known(name: str) -> bool:
    """Whether this libblkid can report the name as a TYPE or PTTYPE. Raises OSError."""
    library = _library()
    return bool(library.blkid_known_fstype(name.encode()) or library.blkid_known_pttype(name.encode()))


@contextmanager
def _probe(fd: int, offset: int, size: int, block_bytes: int) -> Iterator[int]:
    """`block_bytes`: size of the logical block that the tables are read with. Raises OSError."""
    library = _library()
    probe = library.blkid_new_probe()
    if not probe:
        raise OSError(0, "libblkid has no memory")
    try:
        ctypes.set_errno(0)
        if library.blkid_probe_set_device(probe, fd, offset, size) != 0:
            raise _failure("libblkid cannot read the device")
        library.blkid_probe_set_sectorsize(probe, block_bytes)
        yield probe
    finally:
        library.blkid_free_probe(probe)


def _failure(words: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number) if number else words)


def block_bytes(fd: int) -> int:
    """Size of the logical block of an open device; of a file 512."""
    try:
        return int(struct.unpack("i", ioctl(fd, _BLKSSZGET, bytes(4)))[0])
    except OSError:
        return SECTOR_BYTES


def detect(fd: int, *, offset: int = 0, size: int = 0) -> tuple[Detected, ...]:
    """All signatures on an open device or file, or on the part of it from `offset` on; `size` 0: to the end.

    Those that count in logical blocks are found with each size of a block. A signature that was found is hidden from
    the further search, so that other copies of it are found too. Superblocks with a wrong checksum count, and so do
    several that contradict each other.

    Raises OSError.
    """
    sizes = dict.fromkeys((block_bytes(fd), *BLOCK_SIZES))
    return tuple(dict.fromkeys(each for block in sizes for each in _detect(fd, offset, size, block)))


def _detect(fd: int, offset: int, size: int, block: int) -> Iterator[Detected]:
    """Raises OSError."""
    library = _library()
    copies: Counter[str] = Counter()
    signatures: set[Detected] = set()
    with _probe(fd, offset, size, block) as probe:
        library.blkid_probe_enable_superblocks(probe, 1)
        library.blkid_probe_set_superblocks_flags(
            probe, _SUPERBLOCKS_TYPE | _SUPERBLOCKS_USAGE | _SUPERBLOCKS_MAGIC | _SUPERBLOCKS_BAD_CHECKSUM
        )
        library.blkid_probe_enable_partitions(probe, 1)
        library.blkid_probe_set_partitions_flags(probe, _PARTITIONS_FORCE_GPT | _PARTITIONS_MAGIC)
        for _ in range(MAX_ROUNDS):
            ctypes.set_errno(0)
            result = library.blkid_do_probe(probe)
            if result < 0:
                raise _failure("libblkid cannot read the device")
            if result > 0:
                break
            signature = _signature(probe, offset)
            if signature in signatures:  # a format without magic bytes cannot be hidden: go on with the next format
                continue
            signatures.add(signature)
            yield signature
            copies[signature.type] += 1
            if signature.offset is not None and signature.magic_bytes and copies[signature.type] < MAX_COPIES:
                library.blkid_probe_hide_range(probe, signature.offset - offset, signature.magic_bytes)
                library.blkid_probe_step_back(probe)


def _signature(probe: int, offset: int) -> Detected:
    """The signature of the last round."""
    type_, table = _text(probe, "TYPE"), _text(probe, "PTTYPE")
    prefix = "SBMAGIC" if type_ else "PTMAGIC"
    place, magic = _text(probe, f"{prefix}_OFFSET"), _value(probe, prefix)
    return Detected(
        type=type_ or table or "unknown",
        is_table=not type_ and bool(table),
        offset=offset + int(place) if place else None,
        magic_bytes=len(magic),
    )


def _text(probe: int, name: str) -> str:
    return _value(probe, name).rstrip(b"\0").decode(errors="replace")


def _value(probe: int, name: str) -> bytes:
    """The bytes of a value, of texts with a final NUL; b"" if there is none."""
    data, length = ctypes.c_char_p(), ctypes.c_size_t()
    pointers = ctypes.byref(data), ctypes.byref(length)
    if _library().blkid_probe_lookup_value(probe, name.encode(), *pointers) != 0:
        return b""
    return ctypes.string_at(data, length.value)


def read_table(fd: int, *, offset: int = 0, size: int = 0, block: int = 0) -> tuple[TableEntry, ...]:
    """The partitions in the table on an open disk, or on the part of it from `offset` on; `size` 0: to the end.

    Their starts count from `offset`. `block`: size of the logical block when the table was written; 0: that of the
    disk. () without a table, or if it cannot be read. Raises OSError.
    """
    library = _library()
    with _probe(fd, offset, size, block or block_bytes(fd)) as probe:
        library.blkid_probe_enable_partitions(probe, 1)
        library.blkid_probe_set_partitions_flags(probe, _PARTITIONS_FORCE_GPT)
        table = library.blkid_probe_get_partitions(probe)
        if not table:
            return ()
        count = library.blkid_partlist_numof_partitions(table)
        rows = (library.blkid_partlist_get_partition(table, number) for number in range(max(0, count)))
        return tuple(_entry(library, row) for row in rows if row)


def _entry(library: ctypes.CDLL, row: int) -> TableEntry:
    return TableEntry(
        number=library.blkid_partition_get_partno(row),
        start=library.blkid_partition_get_start(row),
        size=library.blkid_partition_get_size(row),
        uuid=(library.blkid_partition_get_uuid(row) or b"").decode(errors="replace").lower(),
    )
