"""Tables put together by hand after DMTF DSP0134, type 17."""

import struct

import pytest

from worker.inventory import host
from worker.kernel.sysfs import SYS


def structure(kind: int, body: bytes, *strings: str) -> bytes:
    text = b"".join(s.encode() + b"\0" for s in strings) or b"\0"
    return bytes((kind, len(body) + 4)) + b"\x01\x00" + body + text + b"\0"


def module(size: int, *, extended: int = 0, rated: int = 3200, configured: int = 2933, bits: int = 64) -> bytes:
    body = struct.pack("<HHHHHBBBBBHH", 0x1000, 0xFFFE, 72, bits, size, 9, 0, 1, 2, 0x1A, 0x2080, rated)
    body += bytes(5) + struct.pack("<IH", extended, configured)
    return structure(17, body, "DIMM_A1", "NODE 0 CHANNEL 0")


END = structure(127, b"")
SYSTEM = structure(1, bytes(20), "Maker", "Server")


def test_it_reads_filled_slots() -> None:
    found = host.parse(SYSTEM + module(0x4000) + module(0) + module(0x7FFF, extended=65536) + END + module(0x4000))
    assert [m.size_bytes for m in found] == [16 * 2**30, 64 * 2**30]
    first = found[0]
    assert (first.slot, first.bank, first.kind, first.data_bits) == ("DIMM_A1", "NODE 0 CHANNEL 0", "DDR4", 64)
    assert first.transfers_per_s == 2_933_000_000


def test_it_takes_the_rated_speed_where_none_is_configured_and_knows_kib() -> None:
    (found,) = host.parse(module(0x8400, configured=0) + END)
    assert (found.transfers_per_s, found.size_bytes) == (3_200_000_000, 2**20)
    (found,) = host.parse(module(0x4000, rated=0, configured=0xFFFF) + END)
    assert found.transfers_per_s is None


@pytest.mark.parametrize("cut", [1, 3, 10, 30, 45])
def test_it_stops_where_a_table_is_cut_off(cut: int) -> None:
    assert len(host.parse(SYSTEM + module(0x4000) + module(0x4000)[:cut])) == 1


def test_it_takes_no_harm_from_nonsense() -> None:
    assert host.parse(bytes(1000)) == host.parse(b"\xff" * 1000) == host.parse(b"") == ()
    assert isinstance(host.memory_modules(SYS), tuple)
