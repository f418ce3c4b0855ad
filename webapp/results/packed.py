"""Packed histograms as hosts send them, looked through before they are kept: what can be unpacked, and is one.

They are kept as they came, so that nothing is packed here; and all of a report are looked through together, because
it costs the same few steps for one as for a hundred.
"""

import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from webapp.results.bad_item import BadItem
from worker.contract.packing import LONGEST, MOST_BYTES

_TOGETHER_BYTES = 1024 * 1024  # unpacked, so that memory does not grow with what a host says

Ints = npt.NDArray[np.int64]


def check_packed(histograms: Iterable[bytes]) -> None:
    """Raises BadItem unless each is what `worker.contract.packing.pack` makes of a histogram."""
    for together in _shares(histograms):
        _check(together)


def _shares(histograms: Iterable[bytes]) -> Iterator[list[bytes]]:
    share, size = [], 0
    for packed in histograms:
        if packed:
            share.append(_unpressed(packed))
            size += len(share[-1])
        if size > _TOGETHER_BYTES:
            yield share
            share, size = [], 0
    if share:
        yield share


def _unpressed(packed: bytes) -> bytes:
    """Never more than MOST_BYTES, whatever it would grow to."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, MOST_BYTES)
    except zlib.error as error:
        raise BadItem(f"A histogram cannot be unpacked: {error}.") from error
    if len(raw) < 3 or not stream.eof or stream.unused_data:
        raise BadItem("A histogram cannot be unpacked: it is too long, or breaks off.")
    return raw


def _check(texts: list[bytes]) -> None:
    joined = b"".join(texts)
    data, sizes = np.frombuffer(joined, np.uint8), np.array([len(text) for text in texts])
    lasts = sizes.cumsum() - 1
    starts = lasts - sizes + 1
    ends = (data < 0x80).nonzero()[0]  # the last byte of each number
    if (data[lasts] >= 0x80).any() or ends[0] >= LONGEST or (ends[1:] - ends[:-1]).max(initial=0) > LONGEST:
        raise BadItem("A histogram breaks off in a number, or holds one that is out of range.")
    first = ends.searchsorted(starts)  # of each text, the place of its first number
    numbers = ends.searchsorted(lasts) - first + 1
    if (numbers != 1 + 2 * _buckets(data, starts)).any() or (numbers == 1).any():
        raise BadItem("A histogram does not hold as many buckets as it says.")
    if 0 in joined:
        _check_zeros(data, ends, first)


def _buckets(data: npt.NDArray[np.uint8], starts: Ints) -> Ints:
    """Each text's first number; MOST_BUCKETS has two bytes, and more than that agree with no text."""
    low, high = data[starts].astype(np.int64), data[starts + 1].astype(np.int64)
    return np.where(low < 0x80, low, low & 0x7F | high << 7)


def _check_zeros(data: npt.NDArray[np.uint8], ends: Ints, first: Ints) -> None:
    """No number may end in a byte of nothing; none may be 0 but the first midpoint, so that midpoints ascend."""
    zeros = (data[ends] == 0).nonzero()[0]
    if not np.isin(zeros, first + 1).all() or (data[ends[zeros] - 1] >= 0x80).any():
        raise BadItem("A histogram's buckets are not in order, or empty.")
