"""Packed histograms as hosts send them, looked through before they are kept: what can be unpacked, and is one.

They are kept as they came, so that nothing is packed here; and those of a report are looked through together, because
it costs the same few steps for one as for a hundred.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from webapp.results.bad_item import BadItem
from worker.contract.packing import LONGEST, MOST_BUCKETS

_TOGETHER_BYTES = 24 * 1024  # what is small stays in the processor's caches: 64 KiB at once take 2.5 times as long
_SHORTEST = 2  # bytes: one bucket, one I/O
_END = b"\x01"  # after the last one, so that there is a place behind it

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def check_packed(histograms: Iterable[bytes]) -> None:
    """Raises BadItem unless each can be unpacked to a histogram by `worker.contract.packing`."""
    for together in _shares(histograms):
        _check(together)


def _shares(histograms: Iterable[bytes]) -> Iterator[list[bytes]]:
    share: list[bytes] = []
    size = 0
    for packed in filter(None, histograms):
        share.append(packed)
        size += len(packed)
        if size > _TOGETHER_BYTES:
            yield share
            share, size = [], 0
    if share:
        yield share


def _check(texts: list[bytes]) -> None:
    data = np.frombuffer(b"".join([*texts, _END]), np.uint8)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    lasts = sizes.cumsum() - 1
    starts = lasts - sizes + 1
    low = data < 0x80  # the last byte of each number
    ends = low.nonzero()[0]
    if not low[lasts].all() or ends[0] >= LONGEST or (ends[1:] - ends[:-1]).max() > LONGEST:
        raise BadItem("A histogram breaks off in a number, or holds one that is out of range.")
    if (sizes < _SHORTEST).any():
        raise BadItem("A histogram breaks off.")
    first = ends.searchsorted(starts) + 1  # of each text, the place of its first count among all numbers
    end = ends.searchsorted(lasts) + 1
    buckets = _buckets(data, starts)
    steps = first + buckets  # the place of its first step
    if (buckets == 0).any() or (buckets > MOST_BUCKETS).any() or (steps > end).any():
        raise BadItem("A histogram does not hold as many buckets as it says.")
    zeros = data == 0
    if (zeros[1:] & ~low[:-1]).any():
        raise BadItem("A histogram holds a number that is longer than it needs to be.")
    counts_at, steps_at = ends[first - 1] + 1, ends[steps - 1] + 1  # among the bytes
    changes = np.zeros(len(data), np.uint8)  # of the first byte of each number the lowest bit
    np.bitwise_and(data[1:], low[:-1], out=changes[1:])
    places = np.column_stack((counts_at, steps_at)).ravel()  # sums from each to the next: of counts, then of steps
    if (np.add.reduceat(changes, places, dtype=np.int32)[::2] != end - steps).any():
        raise BadItem("A histogram does not hold as many steps as it says.")
    # A step of 0 puts two buckets in one place; the next text's first number, up to which is summed, is none.
    nothing = np.add.reduceat(zeros, places, dtype=np.int32)[1::2]
    unchanged = (changes[counts_at] == 0) & (changes[ends[first] + 1] == 0) & (buckets > 1)
    if nothing.any() or unchanged.any():  # the second: after a midpoint of 0, whose step is 0, there must be one
        raise BadItem("A histogram's buckets are not in order.")


def _buckets(data: Bytes, starts: Ints) -> Ints:
    """Each text's first number; MOST_BUCKETS has two bytes, and of more bytes it is too large."""
    low, high = data[starts].astype(np.int64), data[starts + 1].astype(np.int64)
    return np.where(low < 0x80, low, low & 0x7F | high << 7)
