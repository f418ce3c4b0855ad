"""Samples are differences of cumulative counters and add up to the final dump."""

from hypothesis import given
from hypothesis import strategies as st

from worker.contract.histogram import merge
from worker.contract.items import LatencyKind
from worker.contract.packing import unpack
from worker.engines.fio.difference import Differ, Interval, results_of
from worker.engines.fio.output import Dump, Flow, Job, Latency


def dump(at_ms: int, runtime_ms: int, bins: dict[int, int], io_bytes: int | None = None) -> Dump:
    count = sum(bins.values())
    flow = Flow(
        io_bytes=count * 4096 if io_bytes is None else io_bytes, runtime=runtime_ms, lat_ns=Latency(N=count, bins=bins)
    )
    return Dump("", "fio-3.33", at_ms, (Job(read=flow),))


def differ(*, ramp: bool = False, runtime_ms: int | None = None) -> Differ:
    return Differ(LatencyKind.LAT, ramp=ramp, runtime_ms=runtime_ms)


@given(st.lists(st.dictionaries(st.integers(0, 30), st.integers(1, 1000)), min_size=1, max_size=8), st.booleans())
def test_it_adds_up_to_the_final_dump(seconds: list[dict[int, int]], timed: bool) -> None:
    machine = differ(runtime_ms=len(seconds) * 1000 if timed else None)
    bins: dict[int, int] = {}
    found: list[Interval | None] = []
    for number, more in enumerate(seconds, start=1):
        bins = {b: bins.get(b, 0) + more.get(b, 0) for b in bins.keys() | more.keys()}
        found.append(machine.feed(dump(number * 1000, number * 1000, bins)))
    final = dump(len(seconds) * 1000 + 3, len(seconds) * 1000 + 3, bins | {99: 2})
    found.append(machine.feed(final, final=True))
    parts = [part for interval in found if interval for part in interval.directions]
    (result,) = results_of(final, LatencyKind.LAT)
    assert sum(p.ios for p in parts) == result.ios
    assert sum(p.bytes for p in parts) == result.bytes
    assert sum(p.runtime_ms for p in parts) == result.runtime_ms
    assert merge(unpack(p.latency) for p in parts) == unpack(result.latency)


def test_it_reads_percentiles_from_the_interval_alone() -> None:
    machine = differ()
    machine.feed(dump(1000, 1000, {100: 50_000}))
    interval = machine.feed(dump(2000, 2000, {100: 50_000, 9000: 2000}))
    assert interval is not None
    assert (interval.directions[0].p50_ns, interval.directions[0].p99_ns) == (9000, 9000)
    assert interval.directions[0].p999_ns is None  # 2,000 I/Os say nothing about 99.9 %


def test_it_measures_nothing_in_the_ramp() -> None:
    machine = differ(ramp=True)
    assert machine.feed(dump(1000, 829, {}, io_bytes=10**9)) is None
    assert machine.ramping
    assert machine.feed(dump(1200, 40, {100: 3})) is None  # some jobs may not have left it yet
    interval = machine.feed(dump(2200, 1040, {100: 103}))
    assert interval is not None
    assert (interval.duration_ms, interval.directions[0].ios) == (1040, 103)


def test_it_reports_a_second_without_io() -> None:
    machine = differ()
    machine.feed(dump(1000, 1000, {100: 5}))
    interval = machine.feed(dump(2003, 1000, {100: 5}))
    assert interval == Interval(1003, ())


def test_it_holds_the_last_second_back_for_the_rest() -> None:
    machine = differ(runtime_ms=2000)
    assert machine.feed(dump(1000, 1000, {100: 5})) is not None
    assert machine.feed(dump(2000, 2000, {100: 10})) is None
    last = machine.feed(dump(2004, 2004, {100: 11}), final=True)
    assert last is not None
    assert (last.duration_ms, last.directions[0].ios) == (1004, 6)
