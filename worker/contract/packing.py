"""Histograms as they travel and as they are kept: zlib over differences of midpoints and counts, as LEB128 varints.

Layout before compression: number of buckets, then for each bucket (midpoint - previous midpoint, count).
Midpoints ascend, so differences are positive and mostly small. The empty histogram is b"".

The host packs, once a second for each direction; the server checks what came and keeps the very bytes.
"""

import zlib
from collections.abc import Iterable
from itertools import chain
from operator import sub
from typing import Annotated

from msgspec import Meta

from worker.contract.histogram import Histogram

LONGEST = 7  # bytes of a number, which is below 2^49: six days in ns
MOST_BYTES = 32 * 1024  # of the numbers before compression; fio has 29 groups of 64 buckets (stat.h, PLAT_NR)

# In JSON as base64 (RFC 4648).
Packed = Annotated[bytes, Meta(max_length=MOST_BYTES)]

_LEVEL = 1  # higher ones take twice the time and save nothing on texts as short as these
_REMEMBERED = 2**14  # numbers below have one or two bytes, and are nearly all that there are


class BadPacking(ValueError):
    """These bytes were not written by `pack`."""


def pack(histogram: Histogram) -> bytes:
    """The bytes of a histogram; see `unpack`."""
    if not histogram.latency_ns:
        return b""
    differences = map(sub, histogram.latency_ns, chain((0,), histogram.latency_ns))
    numbers = chain.from_iterable(zip(differences, histogram.counts, strict=True))
    return zlib.compress(_varints(chain((len(histogram.latency_ns),), numbers)), _LEVEL)


def unpack(data: bytes | memoryview) -> Histogram:
    """The histogram that was packed. Raises BadPacking."""
    if not data:
        return Histogram()
    try:
        numbers = _numbers(zlib.decompress(data))
    except zlib.error as error:
        raise BadPacking(f"a packed histogram could not be read: {error}") from error
    if not numbers or len(numbers) != 1 + 2 * numbers[0]:
        raise BadPacking("a packed histogram breaks off")
    latencies, at = [], 0
    for difference in numbers[1::2]:
        at += difference
        latencies.append(at)
    return Histogram(latency_ns=tuple(latencies), counts=tuple(numbers[2::2]))


class _Varints(dict[int, bytes]):
    """The bytes of each number. A look-up is several times quicker than working them out."""

    def __missing__(self, number: int) -> bytes:
        packed, rest = bytearray(), number
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
        if number < _REMEMBERED:
            self[number] = bytes(packed)
        return bytes(packed)


_VARINTS = _Varints()


def _varints(numbers: Iterable[int]) -> bytes:
    return b"".join(map(_VARINTS.__getitem__, numbers))


def _numbers(data: bytes) -> list[int]:
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    return numbers
