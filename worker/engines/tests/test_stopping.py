"""A stop rule on the samples of a stream, and the result of its window."""

import msgspec
import pytest

from worker.contract.items import DeviceSample, Direction, LatencyKind, Sample
from worker.contract.packing import Histogram, pack, unpack
from worker.contract.steadiness import Verdict, steadiness_in
from worker.contract.workload import Confidence, Settled, SteadyRounds, Stopped, StopRule
from worker.engines.base import direction_sample
from worker.engines.stopping import SharedStop, StopWatch

SLOW, FAST = 400, 1000


def sample(second: int, ios: int, latency_ns: int) -> Sample:
    parts = tuple(
        direction_sample(
            each, ios=ios, moved_bytes=4096 * ios, latency=Histogram(latency_ns=(latency_ns,), counts=(ios,))
        )
        for each in (Direction.READ, Direction.WRITE)
    )
    device = DeviceSample(
        device="sda", utilisation_percent=50, queue_depth=2, read_ios=ios, write_ios=ios, read_bytes=4096 * ios,
        write_bytes=4096 * ios,
    )  # fmt: skip
    return Sample(stream=0, offset_ms=1000 * second, length_ms=1000, at=0, directions=parts, device=device)


def watch(rule: StopRule | None, ios: list[int]) -> tuple[StopWatch, list[Sample]]:
    passed_on: list[Sample] = []
    found = StopWatch(rule, 5, passed_on.append)
    for second, each in enumerate(ios, start=1):
        found.take(sample(second, each, 1_000_000 if each == SLOW else 500_000))
    return found, passed_on


def test_the_result_is_that_of_the_window() -> None:
    found, passed_on = watch(Settled(hold_s=10), [SLOW] * 6 + [FAST] * 30)
    stopped = found.end(36_000)
    assert stopped is not None
    assert (stopped.rule, stopped.reached, stopped.from_ms) == (Settled(hold_s=10), True, 6000)
    assert 16_000 <= stopped.at_ms == stopped.to_ms < 36_000
    seconds = (stopped.to_ms - stopped.from_ms) // 1000
    for result in found.results(LatencyKind.LAT):
        assert (result.ios, result.bytes, result.runtime_ms) == (FAST * seconds, 4096 * FAST * seconds, 1000 * seconds)
        assert (result.iops, result.bytes_per_s) == (FAST, 4096 * FAST)
        assert unpack(result.latency) == Histogram(latency_ns=(500_000,), counts=(FAST * seconds,))
        assert (result.latency_min_ns, result.latency_mean_ns, result.latency_max_ns) == (500_000, 500_000, 500_000)
        assert result.latency_stddev_ns == 0
    device = found.device()
    assert device is not None
    assert (device.read_bytes, device.utilisation_percent) == (4096 * FAST * seconds, 50)
    assert len(passed_on) == 36  # also those after the rule was reached


def test_an_expected_direction_without_io_in_the_window_has_a_result_of_zero() -> None:
    found = StopWatch(Settled(hold_s=10), 5, lambda _: None)
    for second in range(1, 31):
        whole = sample(second, FAST, 500_000)
        nothing = msgspec.structs.replace(whole.directions[1], ios=0, bytes=0, latency=pack(Histogram()))
        found.take(msgspec.structs.replace(whole, directions=(whole.directions[0], nothing)))
    assert found.end(30_000)
    assert [each.direction for each in found.results(LatencyKind.LAT)] == [Direction.READ]
    _, write = found.results(LatencyKind.LAT, (Direction.READ, Direction.WRITE))
    assert (write.direction, write.ios, write.iops, write.latency_max_ns) == (Direction.WRITE, 0, 0, 0)


@pytest.mark.parametrize("phase_ms", [50, 450, 550, 950])
def test_settled_accepts_no_window_that_is_too_short_for_a_verdict(phase_ms: int) -> None:
    """Samples that do not end with whole seconds."""
    watched, samples = StopWatch(Settled(hold_s=10), 5, lambda _: None), []
    for second in range(31):
        each = sample(second, FAST, 500_000)
        length_ms = 1000 if second else phase_ms
        samples.append(msgspec.structs.replace(each, offset_ms=1000 * second + phase_ms, length_ms=length_ms))
        watched.take(samples[-1])
    stopped = watched.end(30_000 + phase_ms)
    assert stopped is not None
    assert stopped.reached
    timed = [(each.offset_ms, each.length_ms, 2.0 * FAST) for each in samples if each.offset_ms <= stopped.at_ms]
    assert steadiness_in(timed, stopped.from_ms, stopped.to_ms).verdict is not Verdict.TOO_SHORT


def test_confidence_reports_its_interval() -> None:
    found, _ = watch(Confidence(percent=2), [995, 1005] * 10)
    stopped = found.end(20_000)
    assert stopped is not None
    assert stopped.interval_percent is not None
    assert 0 < stopped.interval_percent <= 2


def test_a_rule_that_is_not_reached_leaves_the_whole_measured_part() -> None:
    found, _ = watch(Confidence(percent=2), [SLOW, FAST] * 10)
    assert found.window is None
    assert found.end(20_123) == Stopped(
        rule=Confidence(percent=2), reached=False, at_ms=20_123, from_ms=0, to_ms=20_123
    )


def test_long_samples_are_not_taken_for_even_seconds() -> None:
    """fio reported only every 4 s: each sample is spread evenly over its seconds."""
    found = StopWatch(Confidence(percent=10), 5, lambda _sample: None)
    for number in range(1, 20):
        long_one = sample(4 * number, FAST, 500_000)
        found.take(msgspec.structs.replace(long_one, length_ms=4000))
    assert found.window is None


@pytest.mark.parametrize("seconds", [4, 100])
def test_without_a_rule_nothing_is_stopped(seconds: int) -> None:
    found, passed_on = watch(None, [FAST] * seconds)
    assert found.window is None
    assert found.end(1000 * seconds) is None
    assert len(passed_on) == seconds


def test_estimated_seconds_do_not_end_a_stream() -> None:
    """They look even, as they are at most the fastest sample, and have no latencies."""
    found = StopWatch(Confidence(percent=2), 5, lambda _: None)
    for second in range(1, 21):
        found.take(msgspec.structs.replace(sample(second, 1000, 500_000), estimated=second > 4))
    assert found.window is None


def test_a_rule_of_several_streams_looks_at_the_sum_and_ends_all_of_them() -> None:
    shared = SharedStop(2)
    streams = [StopWatch(Confidence(percent=2), 5, lambda _: None, shared) for _ in range(2)]
    for second in range(1, 21):
        for number, stream in enumerate(streams):
            ios = FAST if (second + number) % 2 else SLOW
            stream.take(msgspec.structs.replace(sample(second, ios, 500_000), stream=number))
    first, second_one = (stream.end(20_000) for stream in streams)
    assert first is not None
    assert first.reached
    assert second_one is not None
    assert (first.from_ms, first.to_ms) == (second_one.from_ms, second_one.to_ms)
    alone = watch(Confidence(percent=2), [FAST, SLOW] * 10)[0]
    assert alone.window is None, "each of them by itself is not known as well"


def test_a_rule_waits_for_the_slowest_of_several_streams() -> None:
    shared = SharedStop(2)
    stream = StopWatch(Confidence(percent=2), 5, lambda _: None, shared)
    for second in range(1, 21):
        stream.take(sample(second, FAST, 500_000))
    assert stream.window is None


def test_a_window_within_one_long_sample_of_a_stream_is_not_accepted() -> None:
    """The second stream reports nothing from 20 s to 60 s. The first one steps at 45 s, so the window begins there."""
    shared = SharedStop(2)
    streams = [StopWatch(Settled(hold_s=10), 50, lambda _: None, shared) for _ in range(2)]
    for second in range(1, 61):
        streams[0].take(sample(second, SLOW if second <= 45 else FAST, 500_000))
    for second in range(1, 21):
        streams[1].take(msgspec.structs.replace(sample(second, 100, 500_000), stream=1))
    streams[1].take(msgspec.structs.replace(sample(60, 4000, 500_000), stream=1, length_ms=40_000))
    assert shared.window is None


def test_a_rule_is_not_reached_after_a_stream_has_ended() -> None:
    """Else the result would add one stream's whole run to the window of another."""
    shared = SharedStop(2)
    streams = [StopWatch(SteadyRounds(round_s=2), 5, lambda _: None, shared) for _ in range(2)]
    for second in range(1, 10):
        for number, stream in enumerate(streams):
            stream.take(msgspec.structs.replace(sample(second, FAST, 500_000), stream=number))
    ends = []
    for number, stream in enumerate(streams):
        stream.take(msgspec.structs.replace(sample(10, FAST, 500_000), stream=number))
        ends.append(stream.end(10_000))
    assert [end and end.reached for end in ends] == [False, False]
