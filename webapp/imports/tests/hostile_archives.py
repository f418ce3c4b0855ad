"""Archives that are small and would cost much: each is one known attack on programs that unpack."""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable

from webapp.imports.reading.limits import MIB

BLOCK = 512  # of a tar archive


def header(name: bytes, kind: bytes, size: int = 0, *, more: bytes = b"") -> bytes:
    """A header of a tar archive; `more` are the bytes from 345 on. A size that does not fit is a binary number."""
    octal = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    fields = name[:100].ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + octal + b"00000000000\0"
    block = bytearray((fields + b" " * 8 + kind).ljust(257, b"\0") + b"ustar  \0")
    block = bytearray(bytes(block).ljust(345, b"\0") + more.ljust(BLOCK - 345, b"\0"))
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _data(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % BLOCK)


def extended(kind: bytes, data: bytes) -> bytes:
    return header(b"././@LongLink", kind, len(data)) + _data(data)


def record(key: bytes, value: bytes) -> bytes:
    rest = b" " + key + b"=" + value + b"\n"
    length = next(n for n in range(len(rest), len(rest) + 9) if len(str(n)) + len(rest) == n)
    return str(length).encode() + rest


def sparse_members(count: int = 100, real_bytes: int = 2**35) -> bytes:
    """GNU format: one block of data, and a hole of many gigabytes."""
    part = b"%011o\0%011o\0" % (0, BLOCK)
    more = (b"\0" * (386 - 345) + part).ljust(483 - 345, b"\0") + b"\x80" + real_bytes.to_bytes(11, "big")
    return gzip.compress(b"".join(header(b"s%d" % n, b"S", BLOCK, more=more) + b"x" * BLOCK for n in range(count)))


def sparse_maps(blocks: int = 100_000) -> bytes:
    """A sparse file whose map goes on for ever, block after block."""
    more = b"\0" * (482 - 345) + b"\1"
    return gzip.compress(header(b"s", b"S", 0, more=more) + (b"\0" * 504 + b"\1" + b"\0" * 7) * blocks)


def pax_sparse_map_without_line_ends() -> bytes:
    """Format 1.0: the map is in the data, and a reader that looks for its line end in all bytes so far is quadratic."""
    records = record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.minor", b"0")
    data = b"1" * (40 * MIB)
    return gzip.compress(extended(b"x", records) + header(b"s", b"0", len(data)) + _data(data))


def pax_records_that_overlap(headers: int = 200) -> bytes:
    """Each record is three bytes long by its own words, and has no `=` (CVE-2024-6232)."""
    return gzip.compress(extended(b"x", b"3 a" * 21_000 + b"=\n") * headers)


def pax_headers_of_digits(headers: int = 200) -> bytes:
    return gzip.compress(extended(b"x", b"1" * 65_000) * headers)


def chained_pax_headers(headers: int = 70_000) -> bytes:
    return gzip.compress(extended(b"x", record(b"comment", b"a")) * headers, 6)


def long_names(count: int = 3_000) -> bytes:
    name = b"n" * 60_000 + b"_bw.1.log"
    return gzip.compress((extended(b"L", name) + header(b"short", b"0")) * count, 6)


def links(count: int = 30_000) -> bytes:
    return gzip.compress(b"".join(header(b"l%d" % n, b"12"[n % 2 : n % 2 + 1], 2**33) for n in range(count)), 6)


def folders(count: int = 100_000) -> bytes:
    return gzip.compress(header(b"d/" * 49, b"5") * count)


def large_members(count: int = 20) -> bytes:
    """Each is refused, and must be skipped."""
    return gzip.compress((header(b"z", b"0", 25 * MIB) + b"a" * (25 * MIB)) * count, 6)


def size_that_lies() -> bytes:
    return gzip.compress(header(b"z", b"0", 2**80) + b"a" * 100_000)


def empty_gzip_parts(count: int = 200_000) -> bytes:
    return gzip.compress(b"a") + gzip.compress(b"") * count


def empty_bzip2_parts(count: int = 200_000) -> bytes:
    return bz2.compress(b"a") + bz2.compress(b"") * count


def empty_xz_parts(count: int = 100_000) -> bytes:
    return lzma.compress(b"a") + lzma.compress(b"") * count


def gzip_of_gzip() -> bytes:
    data = gzip.compress(b"0" * (100 * MIB), 9)
    for _ in range(3):
        data = gzip.compress(data, 9)
    return data


def bzip2_bomb() -> bytes:
    """40 bytes for each 45 MB."""
    return bz2.compress(b"\0" * (20 * MIB)) * 50


def bombs_below_the_ratio(count: int = 200) -> bytes:
    """Each member is small enough to have no ratio of its own."""
    buffer = io.BytesIO()
    packed = gzip.compress(b"0" * (15 * MIB), 9)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for n in range(count):
            archive.writestr(f"{n}.gz", packed)
    return gzip.compress(buffer.getvalue())


def _zip_of(method: int, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("bomb", data)
    return buffer.getvalue()


def zip_with_a_bzip2_bomb() -> bytes:
    return _lie(_zip_of(zipfile.ZIP_BZIP2, b"\0" * (150 * MIB)))


def zip_with_an_lzma_bomb() -> bytes:
    return _lie(_zip_of(zipfile.ZIP_LZMA, b"\0" * (150 * MIB)))


def zip_with_a_deflate_bomb() -> bytes:
    return _lie(_zip_of(zipfile.ZIP_DEFLATED, b"a" * (250 * MIB)))


def _lie(data: bytes, size: int = 1000) -> bytes:
    place = data.index(b"PK\x01\x02")
    return data[: place + 24] + struct.pack("<I", size) + data[place + 28 :]


def overlapping_zip(count: int = 10_000) -> bytes:
    """All entries are one stream (D. Fifield, "A better zip bomb", WOOT 2019)."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    text = b"a" * (20 * MIB)
    packed = packer.compress(text) + packer.flush()
    fields = struct.pack("<HHHHHIII", 20, 0, 8, 0, 0, zlib.crc32(text), len(packed), len(text))
    local = b"PK\x03\x04" + fields + struct.pack("<HH", 1, 0) + b"a" + packed
    names = [b"%d" % n for n in range(count)]
    directory = b"".join(
        b"PK\x01\x02\x14\0" + fields + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name for name in names
    )
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(local), 0)
    return local + directory + b"PK\x05\x06" + end


def zip64_with_lying_sizes() -> bytes:
    text = b"iops\n1\n"
    extra = struct.pack("<HHQQQ", 1, 24, 2**60, 2**61, 0)
    fields = struct.pack("<HHHHHIII", 45, 0, 0, 0, 0, zlib.crc32(text), 2**32 - 1, 2**32 - 1)
    local = b"PK\x03\x04" + fields + struct.pack("<HH", 1, 0) + b"a" + text
    entry = b"PK\x01\x02\x2d\0" + fields + struct.pack("<HHHHHII", 1, len(extra), 0, 0, 0, 0, 2**32 - 1) + b"a" + extra
    return local + entry + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)


def zip_with_long_names(count: int = 1_500) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for n in range(count):
            archive.writestr(f"{n}" + "1a" * 30_000, b"")
    return gzip.compress(buffer.getvalue())


# Each with the codes of which the reading must name one.
ATTACKS: dict[Callable[[], bytes], set[str]] = {
    sparse_members: {"import_sparse"},
    sparse_maps: {"import_ratio"},
    pax_sparse_map_without_line_ends: {"import_ratio"},
    pax_records_that_overlap: {"import_damaged"},
    pax_headers_of_digits: {"import_damaged"},
    chained_pax_headers: {"import_ratio"},
    long_names: {"import_ratio"},
    links: {"import_link"},
    folders: {"import_ratio"},
    large_members: {"import_ratio"},
    size_that_lies: {"import_truncated"},
    empty_gzip_parts: set(),
    empty_bzip2_parts: set(),
    empty_xz_parts: set(),
    gzip_of_gzip: {"import_ratio"},
    bzip2_bomb: {"import_binary"},
    bombs_below_the_ratio: {"import_ratio"},
    zip_with_a_bzip2_bomb: {"import_binary"},
    zip_with_an_lzma_bomb: {"import_method"},
    zip_with_a_deflate_bomb: {"import_ratio"},
    overlapping_zip: {"import_zip_overlap"},
    zip64_with_lying_sizes: {"import_zip_overlap"},
    zip_with_long_names: {"import_ratio"},
}
