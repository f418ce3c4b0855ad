"""Memory modules from the firmware's SMBIOS tables (/sys/firmware/dmi/tables/DMI, readable only by root).

DMTF DSP0134 3.6: a structure consists of type, length, handle, a formatted part, and strings. Each string ends with
a zero byte, and the list with another one. Type 17 is Memory Device (7.18).
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from worker.contract.inventory import MemoryModule
from worker.inventory.sysfs import SYS
from worker.text_limits import MAX_LABEL

_MEMORY_DEVICE, _END = 17, 127
_UNKNOWN_SIZE, _EXTENDED = 0xFFFF, 0x7FFF
_KINDS = {
    0x12: "DDR", 0x13: "DDR2", 0x18: "DDR3", 0x1A: "DDR4", 0x1B: "LPDDR", 0x1C: "LPDDR2", 0x1D: "LPDDR3",
    0x1E: "LPDDR4", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3", 0x07: "RAM",
}  # fmt: skip


def memory_modules(sys: Path = SYS) -> tuple[MemoryModule, ...]:
    """Occupied slots; () if the tables are missing, unreadable or invalid."""
    try:
        table = (sys / "firmware/dmi/tables/DMI").read_bytes()
    except OSError:
        return ()
    return parse(table)


def parse(table: bytes) -> tuple[MemoryModule, ...]:
    found = (_module(body, strings) for kind, body, strings in structures(table) if kind == _MEMORY_DEVICE)
    return tuple(module for module in found if module is not None)


def structures(table: bytes) -> Iterator[tuple[int, bytes, tuple[str, ...]]]:
    """Yield (type, formatted part with header, strings), until the end structure or a truncated one."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\x00\x00", at + length)
        if length < 4 or end < 0:
            return
        strings = table[at + length : end].split(b"\x00")
        yield kind, table[at : at + length], tuple(text.decode("ascii", "replace").strip() for text in strings)
        if kind == _END:
            return
        at = end + 2


def _module(body: bytes, strings: tuple[str, ...]) -> MemoryModule | None:
    size = _size_bytes(body)
    if not size:
        return None
    speed = _word(body, 0x20) or _word(body, 0x15)  # configured, else rated; MT/s
    return MemoryModule(
        slot=_string(body, 0x10, strings),
        bank=_string(body, 0x11, strings),
        size_bytes=size,
        kind=_KINDS.get(body[0x12], "") if len(body) > 0x12 else "",
        data_bits=_word(body, 0x0A),
        transfers_per_s=speed * 1_000_000 if speed else None,
    )


def _size_bytes(body: bytes) -> int:
    """0 is an empty slot. Bit 15 means KiB instead of MiB; 0x7fff means that the extended size (MiB) applies."""
    if len(body) < 0x0E:
        return 0
    (size,) = struct.unpack_from("<H", body, 0x0C)
    if size in (0, _UNKNOWN_SIZE):
        return 0
    if size == _EXTENDED:
        return (struct.unpack_from("<I", body, 0x1C)[0] & 0x7FFFFFFF) * 2**20 if len(body) >= 0x20 else 0
    return int(size & 0x7FFF) * (2**10 if size & 0x8000 else 2**20)


def _word(body: bytes, offset: int) -> int | None:
    """0 and 0xffff mean unknown."""
    if len(body) < offset + 2:
        return None
    (value,) = struct.unpack_from("<H", body, offset)
    return value if value not in (0, 0xFFFF) else None


def _string(body: bytes, offset: int, strings: tuple[str, ...]) -> str:
    number = body[offset] if len(body) > offset else 0
    return strings[number - 1][:MAX_LABEL] if 0 < number <= len(strings) else ""
