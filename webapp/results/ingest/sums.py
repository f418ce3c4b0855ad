"""The sum of several streams of one trial. Pure.

    ios, bytes, IOPS, bytes/s    sums; the rates of each stream cover its own run time
    runtime                      the longest
    latency histogram            of all I/Os: fio's buckets are the same in every stream, so merging them is exact
    least and largest latency    of all streams
    mean                         m = sum(n_i m_i) / N, of streams with n_i I/Os, N in all
    standard deviation           s^2 = sum((n_i - 1) s_i^2 + n_i (m_i - m)^2) / (N - 1)

The last is how fio itself puts its jobs together (stat.c, __sum_stat), after T. Chan, G. Golub and R. LeVeque,
"Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
"""

from collections.abc import Sequence
from math import sqrt

from webapp.results.ingest.bad_item import BadItem
from worker.contract.histogram import merge
from worker.contract.items import Direction, DirectionResult
from worker.contract.packing import pack, unpack

Measured = tuple[DirectionResult, ...]  # of one stream, by direction


def summed(streams: Sequence[Measured]) -> Measured:
    """The sum of each direction that any stream has, in order of first appearance; a single one is returned unchanged.

    Raises BadItem if streams report two kinds of latency.
    """
    by_direction: dict[Direction, list[DirectionResult]] = {}
    for measured in (each for stream in streams for each in stream):
        by_direction.setdefault(measured.direction, []).append(measured)
    return tuple(_sum(found) for found in by_direction.values())


def _sum(found: Sequence[DirectionResult]) -> DirectionResult:
    if len(found) == 1:
        return found[0]
    if len({each.latency_kind for each in found}) > 1:
        raise BadItem("The streams of a trial report two kinds of latency (lat and clat), which cannot be merged.")
    timed = [each for each in found if each.ios] or found
    return DirectionResult(
        direction=found[0].direction,
        ios=sum(each.ios for each in found),
        bytes=sum(each.bytes for each in found),
        runtime_ms=max(each.runtime_ms for each in found),
        iops=sum(each.iops for each in found),
        bytes_per_s=sum(each.bytes_per_s for each in found),
        latency_kind=found[0].latency_kind,
        latency_min_ns=min(each.latency_min_ns for each in timed),
        latency_mean_ns=_mean(timed),
        latency_max_ns=max(each.latency_max_ns for each in timed),
        latency_stddev_ns=_stddev(timed),
        latency=pack(merge(unpack(each.latency) for each in timed)),
    )


def _mean(found: Sequence[DirectionResult]) -> float:
    total = sum(each.ios for each in found)
    return sum(each.ios * each.latency_mean_ns for each in found) / total if total else 0.0


def _stddev(found: Sequence[DirectionResult]) -> float:
    total, mean = sum(each.ios for each in found), _mean(found)
    if total < 2:
        return 0.0
    inside = sum((each.ios - 1) * each.latency_stddev_ns**2 for each in found if each.ios)
    between = sum(each.ios * (each.latency_mean_ns - mean) ** 2 for each in found)
    return sqrt((inside + between) / (total - 1))
