"""What engines take from sysbench's text: samples, latencies and moments."""

import math
import re
import time
from collections import Counter
from collections.abc import Callable

from worker.contract.items import Direction, DirectionResult
from worker.contract.packing import Histogram, bucket_ns
from worker.engines.base import Moments, direction_result, direction_sample
from worker.engines.running import Reading, Sampler
from worker.engines.sysbench.following import Measured

_BUCKET = re.compile(r"^ *([0-9]+\.[0-9]{3}) \|\** +([0-9]+)$", re.MULTILINE)
EVENTS = r"^ *total number of events: *([0-9]+)$"
_MAX_MS = r"^ *max: *([0-9.]+)$"
_SUM_MS = r"^ *sum: *([0-9.]+)$"


class Seconds:
    """Sends the samples. sysbench prints rates, so each sample waits for the next: the last one has the remaining
    events, and all together have those of the result. `events_of`: those in a line; None if it has none."""

    def __init__(
        self,
        sampler: Sampler,
        direction: Direction,
        events_of: Callable[[str], float | None],
        *,
        event_bytes: int = 0,
    ) -> None:
        self._sampler, self._direction, self._events_of = sampler, direction, events_of
        self._event_bytes = event_bytes
        self._waiting: tuple[int, Reading] | None = None
        self._sent = 0

    def take(self, text: str) -> None:
        events = self._events_of(text)
        if events is not None:
            if self._waiting:
                self._send(*self._waiting)
            self._waiting = round(events), self._now()

    def finish(self, measured: Measured, total: int) -> DirectionResult:
        """Send the last sample. Returns the result of all events."""
        end = self._waiting[1] if self._waiting else self._now()
        self._send(max(0, total - self._sent), end)
        latency = latency_in(measured.report)
        return direction_result(
            self._direction,
            ios=total,
            moved_bytes=total * self._event_bytes,
            runtime_ms=measured.runtime_ms,
            latency=latency,
            moments=moments_of(measured, latency),
        )

    def _now(self) -> Reading:
        return self._sampler.with_telemetry(self._sampler.read(time.monotonic()))

    def _send(self, events: int, end: Reading) -> None:
        self._sent += events
        moved = direction_sample(self._direction, ios=events, moved_bytes=events * self._event_bytes)
        self._sampler.emit_earlier((moved,), end, estimated=False)


def latency_in(report: str) -> Histogram:
    """sysbench's histogram in the buckets that all engines use. It prints a value in ms with three digits."""
    counts: Counter[int] = Counter()
    for ms, count in _BUCKET.findall(report):
        counts[bucket_ns(round(1e6 * float(ms)))] += int(count)
    in_order = sorted(counts.items())
    return Histogram(latency_ns=tuple(ns for ns, _ in in_order), counts=tuple(count for _, count in in_order))


def moments_of(measured: Measured, latency: Histogram) -> Moments:
    """Mean and maximum are printed; the rest is from the histogram, because sysbench prints two digits."""
    mean = 1e6 * measured.number(_SUM_MS) / measured.number(EVENTS)
    pairs = zip(latency.latency_ns, latency.counts, strict=True)
    variance = sum(count * (ns - mean) ** 2 for ns, count in pairs) / max(1, latency.total)
    lowest = min(mean, *latency.latency_ns) if latency.latency_ns else mean
    return Moments(lowest, mean, max(mean, 1e6 * measured.number(_MAX_MS)), math.sqrt(variance))
