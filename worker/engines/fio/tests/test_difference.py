"""Intervals are differences of cumulative counters and add up to the final dump."""

from hypothesis import given
from hypothesis import strategies as st

from worker.contract.items import DeviceSample, Direction, DirectionSample, LatencyKind
from worker.contract.packing import merge, unpack
from worker.engines.fio.output import Differ, Dump, Flow, Job, Latency

KIB4 = 4096


def dump(bins: dict[int, int], *, io_bytes: int | None = None, runtime_ms: int = 1000) -> Dump:
    count = sum(bins.values())
    flow = Flow(
        io_bytes=count * KIB4 if io_bytes is None else io_bytes, runtime=runtime_ms, lat_ns=Latency(N=count, bins=bins)
    )
    return Dump("", "fio-3.33", 0, (Job(read=flow),))


def device(reads: int) -> DeviceSample:
    return DeviceSample(
        device="sda", utilisation_percent=0, queue_depth=0, read_ios=reads, write_ios=0, read_bytes=reads * KIB4,
        write_bytes=0,
    )  # fmt: skip


def differ(io_bytes: int | None = KIB4) -> Differ:
    return Differ(LatencyKind.LAT, (Direction.READ,), io_bytes=io_bytes)


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


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1), st.integers(0, 500)), min_size=1, max_size=12))
def test_shares_are_taken_off_later_intervals(seconds: list[tuple[int, float, int]]) -> None:
    machine, ios = differ(), 1000
    parts = [*machine.advance(dump({100: ios}))]
    for more, share, limit in seconds:
        ios += more
        parts += machine.spread(dump({100: ios}), share, device(limit))
    parts += machine.advance(dump({100: ios + 17}), final=True)
    assert sum(p.ios for p in parts) == ios + 17
    assert sum(p.bytes for p in parts) == KIB4 * sum(p.ios for p in parts)


def test_a_share_has_no_latencies() -> None:
    machine = differ()
    machine.advance(dump({100: 1000}))
    later = dump({100: 1310, 9000: 2})
    (part,) = machine.spread(later, 0.25, None)
    (rest,) = machine.advance(later)
    assert (part.ios, part.bytes, part.p50_ns) == (78, 78 * KIB4, None)
    assert (rest.ios, unpack(rest.latency).total) == (234, 312)


def test_a_share_is_not_more_than_the_device_completed() -> None:
    machine = differ()
    (part,) = machine.spread(dump({100: 1000}), 0.5, device(3))
    assert (part.ios, part.bytes) == (3, 3 * KIB4)


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
