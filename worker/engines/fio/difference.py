"""From fio's cumulative dumps to samples of an interval each, and to the result.

Everything in a dump counts from the beginning of the job, and again from the end of its
ramp. A sample is the difference of two dumps: counts, bytes, runtime and histogram bins
are differenced; means, maxima and printed percentiles never are.

The rest between the last dump of a second and fio's final one: a run with a runtime holds
its last sample back and gives it out with the rest, so it may last up to 1.5 s; a run with
an amount ends with a short sample. Either way the samples add up to the final dump exactly.
"""

import msgspec

from worker.contract.histogram import Histogram
from worker.contract.items import Direction, DirectionResult, DirectionSample, LatencyKind
from worker.contract.packing import pack
from worker.engines.fio.output import Dump, Flow, Latency
from worker.engines.sampling import direction_sample

RAMP_LEAST_MS = 500  # the first sample after a ramp holds at least this much: see Differ


class Interval(msgspec.Struct, frozen=True):
    """The measured part between two dumps."""

    duration_ms: int
    directions: tuple[DirectionSample, ...]


class Totals(msgspec.Struct, frozen=True):
    """What one direction has come to."""

    ios: int = 0
    bytes: int = 0
    runtime_ms: int = 0
    bins: dict[int, int] = {}


class Differ:
    """Feed it dumps in order.

    During the ramp fio counts bytes and runtime but no latencies, so as long as there are
    none nothing is measured. Jobs leave the ramp some ms apart and start their counters
    anew; the first sample is taken from zero, half a second or more later, when all have.
    """

    def __init__(self, kind: LatencyKind, *, ramp: bool, runtime_ms: int | None) -> None:
        self._kind = kind
        self._ramp = ramp
        self._hold_from_ms = runtime_ms - 500 if runtime_ms else None
        self._before: dict[Direction, Totals] = {}
        self._timestamp_ms: int | None = None
        self._seen_latencies = False

    @property
    def ramping(self) -> bool:
        """Nothing has been measured yet."""
        return self._ramp and not self._seen_latencies

    def feed(self, dump: Dump, *, final: bool = False) -> Interval | None:
        """The interval that ends with this dump; None in the ramp, while held back, or if nothing is left."""
        now = totals_of(dump, self._kind)
        self._seen_latencies = self._seen_latencies or any(total.ios for total in now.values())
        if not final and (self._in_ramp(now) or self._held_back(now)):
            return None
        interval = self._interval(dump, now)
        if final and not any(part.ios or part.bytes for part in interval.directions):
            return None
        self._before, self._timestamp_ms = now, dump.timestamp_ms
        return interval

    def _in_ramp(self, now: dict[Direction, Totals]) -> bool:
        if not self._ramp or self._before:
            return False
        return self.ramping or longest(now) < RAMP_LEAST_MS

    def _held_back(self, now: dict[Direction, Totals]) -> bool:
        return self._hold_from_ms is not None and longest(now) >= self._hold_from_ms

    def _interval(self, dump: Dump, now: dict[Direction, Totals]) -> Interval:
        duration_ms = longest(now) - longest(self._before)
        if duration_ms <= 0 and self._timestamp_ms is not None:
            duration_ms = dump.timestamp_ms - self._timestamp_ms
        parts = tuple(_sample(d, now[d], self._before.get(d, Totals())) for d in now)
        return Interval(max(1, duration_ms), tuple(part for part in parts if part.runtime_ms or part.ios or part.bytes))


def longest(totals: dict[Direction, Totals]) -> int:
    return max((t.runtime_ms for t in totals.values()), default=0)


def totals_of(dump: Dump, kind: LatencyKind) -> dict[Direction, Totals]:
    return {direction: _totals([getattr(job, direction) for job in dump.jobs], kind) for direction in Direction}


def _totals(flows: list[Flow], kind: LatencyKind) -> Totals:
    bins: dict[int, int] = {}
    for flow in flows:
        for latency_ns, count in latency_of(flow, kind).bins.items():
            bins[latency_ns] = bins.get(latency_ns, 0) + count
    return Totals(
        ios=sum(latency_of(flow, kind).N for flow in flows),
        bytes=sum(flow.io_bytes for flow in flows),
        runtime_ms=max((flow.runtime for flow in flows), default=0),
        bins=bins,
    )


def latency_of(flow: Flow, kind: LatencyKind) -> Latency:
    return flow.lat_ns if kind is LatencyKind.LAT else flow.clat_ns


def _sample(direction: Direction, now: Totals, before: Totals) -> DirectionSample:
    """A counter that went back has been set to zero in between, and counts from there."""
    latency = _histogram({b: n - before.bins.get(b, 0) for b, n in now.bins.items()})
    return direction_sample(
        direction,
        ios=_since(now.ios, before.ios),
        moved_bytes=_since(now.bytes, before.bytes),
        runtime_ms=_since(now.runtime_ms, before.runtime_ms),
        latency=latency,
    )


def _since(now: int, before: int) -> int:
    return now - before if now >= before else now


def _histogram(bins: dict[int, int]) -> Histogram:
    kept = sorted((latency_ns, count) for latency_ns, count in bins.items() if count > 0)
    return Histogram(latency_ns=tuple(b for b, _ in kept), counts=tuple(n for _, n in kept))


def results_of(dump: Dump, kind: LatencyKind) -> tuple[DirectionResult, ...]:
    """What the final dump says, per direction that did I/O."""
    job = dump.jobs[0]  # the only one: group_reporting
    totals = totals_of(dump, kind)
    return tuple(
        _result(direction, totals[direction], latency_of(getattr(job, direction), kind), kind)
        for direction in Direction
        if totals[direction].ios
    )


def _result(direction: Direction, total: Totals, latency: Latency, kind: LatencyKind) -> DirectionResult:
    seconds = max(1, total.runtime_ms) / 1000
    return DirectionResult(
        direction=direction,
        ios=total.ios,
        bytes=total.bytes,
        runtime_ms=total.runtime_ms,
        iops=total.ios / seconds,
        bytes_per_s=total.bytes / seconds,
        latency_kind=kind,
        latency_min_ns=latency.min,
        latency_mean_ns=latency.mean,
        latency_max_ns=latency.max,
        latency_stddev_ns=latency.stddev,
        latency=pack(_histogram(total.bins)),
    )
