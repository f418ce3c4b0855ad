"""Histograms, and their packed form in messages and in the database: LEB128 varints, most of them one byte long.

The first number is the number of buckets. Then follows for each bucket 2 × (count - 1), plus 1 if its distance to the
previous midpoint differs from the previous distance; neighbouring buckets of fio often have the same width. Then follow
these different distances in order; the first one is the distance from 0. The empty histogram is b"".

This is about as short as zlib, which would take a fifth of the server's time in a backlog. The host packs once a second
for each direction; the server checks the bytes and stores them unchanged.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, chain, compress
from operator import lt, ne, sub
from typing import Annotated

import msgspec
from msgspec import Meta

# Latency histograms: parallel tuples of bucket midpoints (ns, ascending) and counts, as in fio's json+ output.
#
# fio's buckets are at most 1/64 wide relative to their value, so any quantile read from them is within 0.8 % of the
# true one (fio, stat.h: FIO_IO_U_PLAT_BITS = 6).
#
# fio's last bucket has no upper bound: it contains all latencies above 17.05 s. A percentile in it is between 17 s
# and the largest latency, which fio reports exactly. It is shown as "> 17 s".

LAST_BUCKET_NS = 17_112_760_320  # (fio, stat.c: plat_idx_to_val of FIO_IO_U_PLAT_NR - 1)
BEYOND = "> 17 s"  # a latency in the last bucket


_BITS = 6  # fio, stat.h: FIO_IO_U_PLAT_BITS


def bucket_ns(ns: int) -> int:
    """Midpoint of fio's histogram bucket for a latency (fio, stat.c: plat_val_to_idx, plat_idx_to_val)."""
    top = ns.bit_length() - 1
    if top <= _BITS:
        return ns
    width = 1 << (top - _BITS)
    return ns // width * width + width // 2


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """`counts[i]` I/Os took about `latency_ns[i]`."""

    latency_ns: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.latency_ns) != len(self.counts):
            raise ValueError("latency_ns and counts differ in length")
        if not all(map(lt, self.latency_ns, self.latency_ns[1:])):
            raise ValueError("latency_ns is not ascending")

    @property
    def total(self) -> int:
        return sum(self.counts)

    def percentile(self, percent: float) -> int | None:
        """The nearest-rank percentile in ns: the smallest bucket that at least `percent` % of I/Os do not exceed."""
        so_far = list(accumulate(self.counts))
        if not so_far or not so_far[-1]:
            return None
        rank = max(1, -(-so_far[-1] * round(percent * 1000) // 100_000))
        return self.latency_ns[min(bisect_left(so_far, rank), len(so_far) - 1)]

    def mean_ns(self) -> float | None:
        total = self.total
        if not total:
            return None
        return sum(b * c for b, c in zip(self.latency_ns, self.counts, strict=True)) / total


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """The histogram of all I/Os of several histograms."""
    counts: dict[int, int] = {}
    for histogram in histograms:
        for latency, count in zip(histogram.latency_ns, histogram.counts, strict=True):
            counts[latency] = counts.get(latency, 0) + count
    ordered = sorted(counts)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(counts[b] for b in ordered))


MIN_BEYOND = 10  # I/Os on the smaller side of a percentile: with fewer it is not reliable (our convention)


def least_count(percent: float) -> int:
    """The number of I/Os that a percentile needs: p99 1,000, p99.9 10,000, the median 20, p1 1,000."""
    share = min(percent, 100 - percent) / 100
    return math.ceil(round(MIN_BEYOND / share, 6)) if share > 0 else 1


def supported_percentile(histogram: Histogram, percent: float) -> int | None:
    """The percentile in ns, or None if the interval has too few I/Os for it."""
    return histogram.percentile(percent) if histogram.total >= least_count(percent) else None


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
    return b"".join(map(_VARINTS.__getitem__, chain((len(counts),), counts, compress(steps, changes))))


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
