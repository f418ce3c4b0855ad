"""What several streams measured, put together: as if fio had counted all of it in one job."""

import random
from collections import Counter
from statistics import fmean, stdev

import pytest
from msgspec.structs import replace

from webapp.results.ingest.parse import BadItem
from webapp.results.ingest.results import summed
from worker.contract.items import Direction, DirectionResult, LatencyKind
from worker.contract.packing import Histogram, pack, unpack


def measured(latencies: list[int], runtime_ms: int = 1000, direction: Direction = Direction.READ) -> DirectionResult:
    """As fio would tell of I/Os that took so long, each of 4 KiB."""
    count, buckets = len(latencies), sorted(Counter(latencies).items())
    return DirectionResult(
        direction=direction,
        ios=count,
        bytes=4096 * count,
        runtime_ms=runtime_ms,
        iops=count * 1000 / runtime_ms,
        bytes_per_s=4096 * count * 1000 / runtime_ms,
        latency_kind=LatencyKind.LAT,
        latency_min_ns=min(latencies),
        latency_mean_ns=fmean(latencies),
        latency_max_ns=max(latencies),
        latency_stddev_ns=stdev(latencies) if count > 1 else 0.0,
        latency=pack(Histogram(latency_ns=tuple(b for b, _ in buckets), counts=tuple(n for _, n in buckets))),
    )


def test_three_streams_are_what_all_their_ios_are() -> None:
    chance = random.Random(7)
    streams = [
        [chance.randrange(1000, 1000 * top) for _ in range(count)] for top, count in ((5, 400), (50, 90), (9, 1))
    ]
    whole = measured([each for stream in streams for each in stream])
    (found,) = summed([(measured(stream),) for stream in streams])
    assert (found.ios, found.bytes) == (whole.ios, whole.bytes) == (491, 491 * 4096)
    assert (found.latency_min_ns, found.latency_max_ns) == (whole.latency_min_ns, whole.latency_max_ns)
    assert found.latency_mean_ns == pytest.approx(whole.latency_mean_ns)
    assert found.latency_stddev_ns == pytest.approx(whole.latency_stddev_ns)
    assert unpack(found.latency) == unpack(whole.latency)
    assert unpack(found.latency).percentile(99) == unpack(whole.latency).percentile(99)


def test_rates_add_up_each_over_its_own_time() -> None:
    (found,) = summed([(measured([10] * 100, 1000),), (measured([10] * 100, 4000),)])
    assert (found.iops, found.bytes_per_s, found.runtime_ms) == (125, 125 * 4096, 4000)


def test_directions_stay_apart_and_one_stream_is_what_it_is() -> None:
    read, write = measured([10, 20]), measured([30], direction=Direction.WRITE)
    assert summed([(read, write)]) == (read, write)
    found = summed([(read, write), (read,)])
    assert [(each.direction, each.ios) for each in found] == [(Direction.READ, 4), (Direction.WRITE, 1)]


def test_a_stream_without_an_io_is_no_latency_of_zero() -> None:
    nothing = replace(measured([1]), ios=0, iops=0, latency_min_ns=0, latency_mean_ns=0, latency_max_ns=0, latency=b"")
    (found,) = summed([(measured([10, 20]),), (nothing,)])
    assert (found.latency_min_ns, found.latency_mean_ns) == (10, 15)
    (empty,) = summed([(nothing,), (nothing,)])
    assert (empty.ios, empty.latency_mean_ns, empty.latency_stddev_ns, empty.latency) == (0, 0, 0, b"")


def test_latencies_of_two_kinds_are_not_mixed() -> None:
    with pytest.raises(BadItem, match="two kinds"):
        summed([(measured([1]),), (replace(measured([1]), latency_kind=LatencyKind.CLAT),)])
