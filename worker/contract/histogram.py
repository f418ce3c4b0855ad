"""Latency histograms: parallel tuples of bucket midpoints (ns, ascending) and counts, as in fio's json+ output.

fio's buckets are at most 1/64 wide relative to their value, so any quantile read
from them is within 0.8 % of the true one (fio, stat.h: FIO_IO_U_PLAT_BITS = 6).

fio's last bucket has no upper bound: it contains all latencies above 17.05 s. A percentile in it is between 17 s and
the largest latency, which fio reports exactly. It is shown as "> 17 s".
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from operator import lt

import msgspec

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
