"""Intervals are differences of cumulative counters and add up to the final dump."""

import math

from hypothesis import given
from hypothesis import strategies as st

from worker.contract.histogram import merge
from worker.contract.items import DeviceSample, Direction, DirectionSample, LatencyKind
from worker.contract.packing import unpack
from worker.engines.fio.difference import Differ
from worker.engines.fio.output import Dump, Flow, Job, Latency

KIB4 = 4096
NO_LIMIT = {Direction.READ: math.inf}


def dump(bins: dict[int, int], *, io_bytes: int | None = None, runtime_ms: int = 1000) -> Dump:
    count = sum(bins.values())
    flow = Flow(
        io_bytes=count * KIB4 if io_bytes is None else io_bytes, runtime=runtime_ms, lat_ns=Latency(N=count, bins=bins)
    )
    return Dump("", "fio-3.33", 0, (Job(read=flow),))


def differ(io_bytes: int | None = KIB4) -> Differ:
    return Differ(LatencyKind.LAT, (Direction.READ,), io_bytes=io_bytes)


def device(ios: int) -> DeviceSample:
    return DeviceSample(
        device="sda", utilisation_percent=0, queue_depth=0, read_ios=ios, write_ios=0, read_bytes=ios * KIB4,
        write_bytes=0,
    )  # fmt: skip


@given(
    st.lists(st.dictionaries(st.integers(0, 30), st.integers(1, 1000)), min_size=1, max_size=8),
    st.sampled_from([KIB4, None]),
)
def test_it_adds_up_to_the_final_dump(seconds: list[dict[int, int]], io_bytes: int | None) -> None:
    machine = differ(io_bytes)
    bins: dict[int, int] = {}
    parts: list[DirectionSample] = []
    for more in seconds:
        bins = {b: bins.get(b, 0) + more.get(b, 0) for b in bins.keys() | more.keys()}
        parts += machine.advance(dump(bins))
    final = dump(bins | {99: 2})
    parts += machine.advance(final, final=True)
    (result,) = machine.results(final)
    assert sum(p.ios for p in parts) == result.ios
    assert sum(p.bytes for p in parts) == result.bytes
    assert merge(unpack(p.latency) for p in parts) == unpack(result.latency)


def test_an_expected_direction_without_io_has_a_result_of_zero() -> None:
    machine = Differ(LatencyKind.LAT, (Direction.READ, Direction.WRITE), io_bytes=KIB4, expected=(Direction.WRITE,))
    read, write = machine.results(dump({100: 5}, runtime_ms=2000))
    assert (read.direction, read.ios, read.iops) == (Direction.READ, 5, 2.5)
    assert (write.direction, write.ios, write.iops, write.runtime_ms) == (Direction.WRITE, 0, 0, 2000)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 700)), min_size=1, max_size=12))
def test_estimates_are_taken_off_later_intervals(seconds: list[tuple[int, int]]) -> None:
    """Each second: I/Os of fio, and I/Os that the device counted while fio printed nothing; then the rest comes."""
    machine, ios, estimated = differ(), 1000, 0
    parts = [*machine.advance(dump({100: ios}))]
    for more, counted in seconds:
        parts += machine.estimate(device(counted), device(ios + estimated), NO_LIMIT)
        estimated += counted
        ios += more
        parts += machine.advance(dump({100: ios}))
    parts += machine.advance(dump({100: ios + estimated + 10_000}), final=True)
    assert sum(p.ios for p in parts) == ios + estimated + 10_000
    assert sum(p.bytes for p in parts) == KIB4 * sum(p.ios for p in parts)


def test_an_estimate_uses_the_share_of_the_device_so_far() -> None:
    """Two streams at one device: half of what it completed was this one's."""
    machine = differ()
    machine.advance(dump({100: 1000}))
    (part,) = machine.estimate(device(600), device(2000), NO_LIMIT)
    assert (part.ios, part.bytes, part.p50_ns) == (300, 300 * KIB4, None)
    (rest,) = machine.advance(dump({100: 1310, 9000: 2}))
    assert (rest.ios, unpack(rest.latency).total) == (12, 312)


def test_an_estimate_is_not_faster_than_what_was_reported() -> None:
    machine = differ()
    machine.advance(dump({100: 1000}))
    (part,) = machine.estimate(device(90_000), device(1000), {Direction.READ: 1000.0})
    assert part.ios == 1000


def test_a_frozen_device_is_zero() -> None:
    machine = differ()
    machine.advance(dump({100: 1000}))
    (part,) = machine.estimate(device(0), device(1000), NO_LIMIT)
    assert (part.ios, part.bytes) == (0, 0)


def test_it_reads_percentiles_from_the_interval_alone() -> None:
    machine = differ()
    machine.advance(dump({100: 50_000}))
    (part,) = machine.advance(dump({100: 50_000, 9000: 2000}))
    assert (part.p50_ns, part.p99_ns) == (9000, 9000)
    assert part.p999_ns is None  # 2,000 I/Os are too few for 99.9 %


def test_ios_and_bytes_are_of_the_same_moment() -> None:
    """fio 3.33, one of two jobs stopped: bytes of 4,782 I/Os when the dump was due, latencies of 6,930 when printed."""
    (part,) = differ().advance(dump({100: 6930}, io_bytes=4782 * KIB4))
    assert (part.ios, part.bytes) == (6930, 6930 * KIB4)


def test_it_measures_nothing_in_the_ramp() -> None:
    machine = differ()
    assert not machine.measured(dump({}, io_bytes=10**9))
    assert machine.measured(dump({100: 3}, io_bytes=10**9))
    (part,) = machine.advance(dump({100: 103}, io_bytes=10**9))  # a job that is still in its ramp counts bytes
    assert (part.ios, part.bytes) == (103, 103 * KIB4)


def test_an_interval_without_io_has_its_direction() -> None:
    machine = differ()
    machine.advance(dump({100: 5}))
    (part,) = machine.advance(dump({100: 5}))
    assert (part.direction, part.ios, part.bytes) == (Direction.READ, 0, 0)
