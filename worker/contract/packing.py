"""The packed form of histograms, in messages and in the database: LEB128 varints, most of them one byte long.

The first number is the number of buckets. Then follows for each bucket 2 × (count - 1), plus 1 if its distance to the
previous midpoint differs from the previous distance; neighbouring buckets of fio often have the same width. Then follow
these different distances in order; the first one is the distance from 0. The empty histogram is b"".

This is about as short as zlib, which would take a fifth of the server's time in a backlog. The host packs once a second
for each direction; the server checks the bytes and stores them unchanged.
"""

import re
from collections.abc import Iterable
from itertools import chain, compress
from operator import ne, sub
from typing import Annotated

from msgspec import Meta

from worker.contract.histogram import Histogram

MAX_NUMBER_BYTES = 7  # bytes of a number, which is below 2^49: six days in ns, 2^48 I/Os
MAX_BUCKETS = 4096  # fio has 29 groups of 64 (stat.h, PLAT_NR)
MAX_PACKED_BYTES = 32 * 1024

# In JSON as base64 (RFC 4648).
Packed = Annotated[bytes, Meta(max_length=MAX_PACKED_BYTES)]

_REMEMBERED_BYTES = 2  # nearly all numbers are this short
_REMEMBERED = 2 ** (7 * _REMEMBERED_BYTES)


class BadPacking(ValueError):
    """The bytes were not written by `pack`."""


def pack(histogram: Histogram) -> bytes:
    """The packed histogram, see `unpack`. Raises ValueError if a bucket is empty."""
    if not histogram.latency_ns:
        return b""
    if min(histogram.counts) < 1:
        raise ValueError("a histogram with an empty bucket is not packed")
    steps = list(map(sub, histogram.latency_ns, chain((0,), histogram.latency_ns)))
    changes = list(map(ne, steps, chain((0,), steps)))
    counts = [2 * count - 2 + change for count, change in zip(histogram.counts, changes, strict=True)]
    return _varints(chain((len(counts),), counts, compress(steps, changes)))


def unpack(data: bytes | memoryview) -> Histogram:
    """The histogram that was packed. Raises BadPacking."""
    if not data:
        return Histogram()
    buckets, *numbers = _numbers(bytes(data))
    counts, steps = numbers[:buckets], iter(numbers[buckets:])
    latencies, at, step = [], 0, 0
    for count in counts:
        if count & 1:
            step = next(steps, 0)
            if not step:
                raise BadPacking("a packed histogram breaks off, or has two buckets in one place")
        at += step
        latencies.append(at)
    if not 0 < buckets == len(counts) or next(steps, None) is not None:
        raise BadPacking("a packed histogram breaks off, or goes on after its end")
    try:
        return Histogram(latency_ns=tuple(latencies), counts=tuple([1 + (count >> 1) for count in counts]))
    except ValueError as error:
        raise BadPacking(f"a packed histogram is none: {error}") from error


class _Varints(dict[int, bytes]):
    """The bytes of each number. A table look-up is several times faster than computing them."""

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


_NUMBER = re.compile(rb"[\x80-\xff]*[\x00-\x7f]")


class _Numbers(dict[bytes, int]):
    """The number of each byte string."""

    def __missing__(self, packed: bytes) -> int:
        number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(packed))
        if len(packed) <= _REMEMBERED_BYTES:
            self[packed] = number
        return number


_NUMBERS = _Numbers()


def _numbers(data: bytes) -> list[int]:
    if data[-1] & 0x80:
        raise BadPacking("a packed histogram breaks off in a number")
    return list(map(_NUMBERS.__getitem__, _NUMBER.findall(data)))
