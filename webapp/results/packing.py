"""Histograms as compact bytes: zlib over the differences of bucket midpoints and the counts, as LEB128 varints.

Layout before compression: number of buckets, then for each bucket (midpoint - previous midpoint, count).
Midpoints ascend, so differences are positive and mostly small. The empty histogram is b"".
"""

import zlib
from collections.abc import Sequence

import numpy as np

from worker.contract.histogram import Histogram

_LEVEL = 1  # higher ones take twice the time and save nothing on texts as short as these
_FEW = 64  # up to so many numbers plain Python is quicker than an array


class BadPacking(ValueError):
    """These bytes were not written by `pack`."""


def pack(histogram: Histogram) -> bytes:
    """The bytes of a histogram; see `unpack`."""
    if not histogram.latency_ns:
        return b""
    numbers = [len(histogram.latency_ns)]
    previous = 0
    for latency_ns, count in zip(histogram.latency_ns, histogram.counts, strict=True):
        numbers += (latency_ns - previous, count)
        previous = latency_ns
    return zlib.compress(_varints(numbers), _LEVEL)


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


def _varints(numbers: Sequence[int]) -> bytes:
    if len(numbers) > _FEW and max(numbers) < 2**63:
        return _many_varints(numbers)
    packed = bytearray()
    for number in numbers:
        while number > 0x7F:
            packed.append(number & 0x7F | 0x80)
            number >>= 7
        packed.append(number)
    return bytes(packed)


def _many_varints(numbers: Sequence[int]) -> bytes:
    """The same for all numbers at once: first how long each becomes, then the first byte of each, the second …"""
    values = np.array(numbers, dtype=np.int64)
    longest = max(1, -(-int(values.max()).bit_length() // 7))
    lengths = np.ones(len(values), dtype=np.int64)
    for place in range(1, longest):
        lengths += values >> (7 * place) > 0
    starts = np.cumsum(lengths) - lengths
    packed = np.zeros(int(lengths.sum()), dtype=np.uint8)
    for place in range(longest):
        here = lengths > place
        more = np.where(lengths[here] > place + 1, 0x80, 0)
        packed[starts[here] + place] = (values[here] >> (7 * place) & 0x7F) | more
    return packed.tobytes()


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
