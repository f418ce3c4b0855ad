"""Applies a stop rule to the samples of streams while they run, and computes the result of the rule's window."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import fmean

from worker.contract.items import DeviceSample, Direction, DirectionResult, LatencyKind, Sample
from worker.contract.packing import merge, unpack
from worker.contract.steadiness import per_second
from worker.contract.workload import Stopped, StopRule
from worker.engines.base import direction_result
from worker.stop_rules import Window, find_window, first_look, next_look

# A longer sample says nothing about its single seconds, which would look perfectly even. Samples are long if a
# job completes no I/O in a second, as with many jobs and large blocks on a slow drive.
MAX_SAMPLE_MS = 2000


class SharedStop:
    """The samples of streams with the same stop rule. The rule looks at the sum of their I/Os and ends all of them.

    The rule is reached for all streams or for none. So it cannot be reached after one of them has ended.
    """

    def __init__(self, streams: int = 1) -> None:
        self._streams = streams
        self._lock = threading.Lock()
        self._samples: dict[int, list[Sample]] = {}  # by stream
        self._look_at_s = 0
        self._ended = False  # one of the streams
        self.window: Window | None = None  # the first one that the rule accepted

    def take(self, sample: Sample, rule: StopRule, least_runtime_s: int, most_s: int) -> None:
        with self._lock:
            self._samples.setdefault(sample.stream, []).append(sample)
            self._look_at_s = self._look_at_s or first_look(rule, least_runtime_s)
            if self.window is None and not self._ended and self._reached_ms() >= 1000 * self._look_at_s:
                self._look(rule, most_s)

    def end(self) -> Window | None:
        """End the rule with one of the streams. Returns the same window to all of them."""
        with self._lock:
            self._ended = True
            return self.window

    def _reached_ms(self) -> int:
        """The time of which all streams have samples."""
        if len(self._samples) < self._streams:
            return 0
        return min(samples[-1].offset_ms for samples in self._samples.values())

    def _look(self, rule: StopRule, most_s: int) -> None:
        rates = [sum(ios) for ios in zip(*map(_rates, self._samples.values()), strict=False)]  # of common seconds
        window = find_window(rule, rates, most_s)
        if window and all(
            _is_known(each) for samples in self._samples.values() for each in _overlapping(samples, window)
        ):
            self.window = window
        self._look_at_s = next_look(rule, len(rates))


class StopWatch:
    """Takes the samples of one stream in order and passes them on. Without a rule it never reaches one. `most_s`: the
    maximum time of the measured part; 0: unknown."""

    def __init__(
        self,
        rule: StopRule | None,
        least_runtime_s: int,
        on_sample: Callable[[Sample], None],
        shared: SharedStop | None = None,
        *,
        most_s: int = 0,
    ) -> None:
        self._rule = rule
        self._least_runtime_s = least_runtime_s
        self._most_s = most_s
        self._on_sample = on_sample
        self._shared = shared or SharedStop()
        self._samples: list[Sample] = []

    @property
    def window(self) -> Window | None:
        return self._shared.window

    def take(self, sample: Sample) -> None:
        if self._rule is not None and self.window is None:
            self._samples.append(sample)
            self._shared.take(sample, self._rule, self._least_runtime_s, self._most_s)
        self._on_sample(sample)

    def end(self, ended_ms: int) -> Stopped | None:
        """End the stream and return how it ended. `ended_ms` is the length of its measured part. None without a rule.

        Call it after the last sample and before the results are read.
        """
        if self._rule is None:
            return None
        window = self._shared.end()
        if window is None:
            return Stopped(rule=self._rule, reached=False, at_ms=ended_ms, from_ms=0, to_ms=ended_ms)
        covered = self.samples
        return Stopped(
            rule=self._rule,
            reached=True,
            at_ms=self._samples[-1].offset_ms,
            from_ms=covered[0].offset_ms - covered[0].length_ms,
            to_ms=covered[-1].offset_ms,
            interval_percent=None if window.interval is None else 100 * window.interval,
        )

    @property
    def samples(self) -> Sequence[Sample]:
        """The samples of the window."""
        assert self.window is not None
        return _inside(self._samples, self.window)

    def results(self, kind: LatencyKind, expected: Collection[Direction] = ()) -> tuple[DirectionResult, ...]:
        """The result of the window, for each direction with I/O and each expected one."""
        directions = [each.direction for each in self._samples[-1].directions]
        results = [_result(self.samples, each, kind) for each in directions]
        has_io = any(each.ios for each in results)
        return tuple(each for each in results if each.ios or (has_io and each.direction in expected))

    def device(self) -> DeviceSample | None:
        """The devices over the window."""
        devices = [each.device for each in self.samples]
        known = [each for each in devices if each is not None]
        if not known or len(known) < len(devices):
            return None
        lengths = [each.length_ms for each in self.samples]
        return DeviceSample(
            device=known[0].device,
            utilisation_percent=fmean((each.utilisation_percent for each in known), lengths),
            queue_depth=fmean((each.queue_depth for each in known), lengths),
            read_ios=sum(each.read_ios for each in known),
            write_ios=sum(each.write_ios for each in known),
            read_bytes=sum(each.read_bytes for each in known),
            write_bytes=sum(each.write_bytes for each in known),
        )


def _inside(samples: Sequence[Sample], window: Window) -> Sequence[Sample]:
    """The samples whose middle lies in the window."""
    from_ms, to_ms = 1000 * window.from_s, 1000 * window.to_s
    return [each for each in samples if from_ms <= each.offset_ms - each.length_ms / 2 < to_ms]


def _overlapping(samples: Sequence[Sample], window: Window) -> Iterator[Sample]:
    """All samples with a part in the window."""
    from_ms, to_ms = 1000 * window.from_s, 1000 * window.to_s
    return (each for each in samples if from_ms < each.offset_ms and each.offset_ms - each.length_ms < to_ms)


def _rates(samples: Sequence[Sample]) -> Sequence[float]:
    """I/Os of each whole second."""
    return per_second((each.offset_ms, each.length_ms, float(_ios(each))) for each in samples)


def _is_known(sample: Sample) -> bool:
    """Whether its single seconds are known. Estimated I/Os are of a longer time, and have no latencies."""
    return sample.length_ms <= MAX_SAMPLE_MS and not (sample.estimated and _ios(sample))


def _ios(sample: Sample) -> int:
    return sum(part.ios for part in sample.directions)


def _result(samples: Sequence[Sample], direction: Direction, kind: LatencyKind) -> DirectionResult:
    parts = [part for each in samples for part in each.directions if part.direction is direction]
    return direction_result(
        direction,
        ios=sum(part.ios for part in parts),
        moved_bytes=sum(part.bytes for part in parts),
        runtime_ms=sum(each.length_ms for each in samples),
        latency=merge(unpack(part.latency) for part in parts),
        kind=kind,
    )
