"""What each stream of a trial with several streams measured: its share of the sum, and when it started and ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.results.ingest.results import directions_of
from webapp.results.models import StreamRun
from webapp.results.reading.rows import ResultRow
from webapp.runs.models import Trial
from worker.contract.histogram import supported_percentile
from worker.contract.items import Direction, DirectionResult
from worker.contract.packing import unpack

MIN_OVERLAP = 0.95  # a smaller overlap of the streams is a warning


@dataclass(frozen=True)
class StreamFigures:
    """One direction of one stream. Times are seconds after the first stream's start, by the worker's clock."""

    stream: int  # from 0
    target: str  # host/target
    device: str  # kernel name, "" if unknown
    direction: str
    iops: float | None  # of transactions: null, as bytes
    bytes_per_s: float | None
    latency_mean_ns: float
    p99_ns: int | None
    share_percent: float | None  # of the sum of IOPS
    started_s: float
    ended_s: float


@dataclass(frozen=True)
class TrialStreams:
    """All streams of one attempt."""

    figures: tuple[StreamFigures, ...]
    last_start_s: float  # after the first start
    overlap_s: float  # time during which all streams ran
    total_s: float  # time during which any stream ran

    @property
    def mostly_overlap(self) -> bool:
        return self.overlap_s >= MIN_OVERLAP * self.total_s


def trial_streams(trial: Trial, results: Sequence[ResultRow]) -> TrialStreams | None:
    """The attempt that `results` belong to. None for a trial with one stream or without results."""
    if trial.stream_count < 2 or not results:
        return None
    streams = StreamRun.objects.filter(attempt__streams__results=results[0].id).order_by("stream")
    measured_streams = list(streams)
    sums, targets = {result.direction: result.iops for result in results}, trial.all_targets
    first_start = min(stream.started_at for stream in measured_streams)
    times = {
        stream.stream: tuple(
            (at - first_start).total_seconds() for at in (stream.started_at, stream.ended_at or first_start)
        )
        for stream in measured_streams
    }
    figures = [
        _figures(stream, str(targets[stream.stream]), measured, sums, times[stream.stream])
        for stream in measured_streams
        for measured in directions_of(stream)
    ]
    starts, ends = zip(*times.values(), strict=True)
    return TrialStreams(tuple(figures), max(starts), max(0.0, min(ends) - max(starts)), max(ends))


def _figures(
    stream: StreamRun,
    target: str,
    measured: DirectionResult,
    sums: Mapping[str, float | None],
    times: tuple[float, ...],
) -> StreamFigures:
    total = sums.get(measured.direction.value)
    is_io = measured.direction is not Direction.TRANSACTION
    return StreamFigures(
        stream=stream.stream,
        target=target,
        device=(stream.device or {}).get("device", ""),
        direction=measured.direction.value,
        iops=measured.iops if is_io else None,
        bytes_per_s=measured.bytes_per_s if is_io else None,
        latency_mean_ns=measured.latency_mean_ns,
        p99_ns=supported_percentile(unpack(measured.latency), 99.0),
        share_percent=100 * measured.iops / total if total else None,
        started_s=times[0],
        ended_s=times[1],
    )
