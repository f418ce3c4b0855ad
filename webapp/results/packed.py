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

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Marks = npt.NDArray[np.bool_]


def check_packed(histograms: Iterable[bytes]) -> None:
    """Raises BadItem unless each can be unpacked to a histogram by `worker.contract.packing`."""
    for together in _shares(histograms):
        _check(together)


def _shares(histograms: Iterable[bytes]) -> Iterator[list[bytes]]:
    share, size = [], 0
    for packed in histograms:
        if packed:
            share.append(packed)
            size += len(packed)
        if size > _TOGETHER_BYTES:
            yield share
            share, size = [], 0
    if share:
        yield share


def _check(texts: list[bytes]) -> None:
    data, sizes = np.frombuffer(b"".join(texts), np.uint8), np.array([len(text) for text in texts])
    lasts = sizes.cumsum() - 1
    starts = lasts - sizes + 1
    ends = (data < 0x80).nonzero()[0]  # the last byte of each number
    if (data[lasts] >= 0x80).any() or ends[0] >= LONGEST or (ends[1:] - ends[:-1]).max(initial=0) > LONGEST:
        raise BadItem("A histogram breaks off in a number, or holds one that is out of range.")
    if (sizes < _SHORTEST).any():
        raise BadItem("A histogram breaks off.")
    begins = np.concatenate(([0], ends[:-1] + 1))
    first = ends.searchsorted(starts) + 1  # of each text, the place of its first count among all numbers
    end = ends.searchsorted(lasts) + 1
    buckets = _buckets(data, starts)
    steps = first + buckets  # the place of its first step
    if (buckets == 0).any() or (buckets > MOST_BUCKETS).any() or (steps > end).any():
        raise BadItem("A histogram does not hold as many buckets as it says.")
    changes = (data[begins] & 1).astype(np.bool_)
    _check_steps(changes, first, steps, end)
    zeros = data[ends] == 0
    if (zeros & (begins < ends)).any():
        raise BadItem("A histogram holds a number that is longer than it needs to be.")
    if _between(zeros, steps, end).any():
        raise BadItem("A histogram's buckets are not in order.")


def _check_steps(changes: Marks, first: Ints, steps: Ints, end: Ints) -> None:
    """As many as there are counts that say so; after a midpoint of 0, whose step is 0, there must be one."""
    if (_between(changes, first, steps) != end - steps).any():
        raise BadItem("A histogram does not hold as many steps as it says.")
    second = np.minimum(first + 1, len(changes) - 1)
    if (~changes[first] & (steps - first > 1) & ~changes[second]).any():
        raise BadItem("A histogram's buckets are not in order.")


def _between(marks: Marks, start: Ints, end: Ints) -> Ints:
    """How many marks there are in each range of places."""
    sums = np.concatenate(([0], marks.cumsum(dtype=np.int64)))
    counted: Ints = sums[end] - sums[start]
    return counted


def _buckets(data: Bytes, starts: Ints) -> Ints:
    """Each text's first number; MOST_BUCKETS has two bytes, and of more bytes it is too large."""
    low, high = data[starts].astype(np.int64), data[starts + 1].astype(np.int64)
    return np.where(low < 0x80, low, low & 0x7F | high << 7)
