"""What each stream of a trial measured, where it has several: its share of the sum, and whether all began together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.results.ingest.results import directions_of
from webapp.results.models import Result, StreamRun
from webapp.runs.models import Trial
from worker.contract.histogram import supported_percentile
from worker.contract.items import DirectionResult
from worker.contract.packing import unpack

MOSTLY = 0.95  # streams that worked side by side for less of the time are told of


@dataclass(frozen=True)
class StreamFigures:
    """One direction of one stream. Times are seconds after the first stream's start, by the worker's clock."""

    stream: int  # from 0
    target: str  # host/target
    device: str  # kernel name, "" where none is known
    direction: str
    iops: float
    bytes_per_s: float
    latency_mean_ns: float
    p99_ns: int | None
    share_percent: float | None  # of the sum of IOPS
    started_s: float
    ended_s: float


@dataclass(frozen=True)
class Together:
    """How well the streams coincided, in seconds."""

    apart_s: float  # from the first start to the last
    shared_s: float  # all of them at work
    whole_s: float  # any of them at work

    @property
    def mostly(self) -> bool:
        return self.shared_s >= MOSTLY * self.whole_s


@dataclass(frozen=True)
class StreamsTable:
    rows: tuple[StreamFigures, ...]
    together: Together


def streams_of(trial: Trial, results: Sequence[Result]) -> StreamsTable | None:
    """Of the attempt that `results` of the trial are of. None for a trial of one stream, or without a result."""
    if trial.stream_count < 2 or not results:
        return None
    streams = list(
        StreamRun.objects.filter(attempt__streams=results[0].stream_run_id).defer("fio_json").order_by("stream")
    )
    sums = {result.direction: result.iops for result in results}
    targets, began = trial.all_targets, min(stream.started_at for stream in streams)
    times = {
        stream.stream: tuple((at - began).total_seconds() for at in (stream.started_at, stream.ended_at or began))
        for stream in streams
    }
    rows = [
        _figures(stream, str(targets[stream.stream]), measured, sums, times[stream.stream])
        for stream in streams
        for measured in directions_of(stream)
    ]
    starts, ends = zip(*times.values(), strict=True)
    shared = max(0.0, min(ends) - max(starts))
    return StreamsTable(tuple(rows), Together(max(starts), shared, max(ends)))


def _figures(
    stream: StreamRun, target: str, measured: DirectionResult, sums: Mapping[str, float], times: tuple[float, ...]
) -> StreamFigures:
    whole = sums.get(measured.direction.value)
    return StreamFigures(
        stream=stream.stream,
        target=target,
        device=(stream.device or {}).get("device", ""),
        direction=measured.direction.value,
        iops=measured.iops,
        bytes_per_s=measured.bytes_per_s,
        latency_mean_ns=measured.latency_mean_ns,
        p99_ns=supported_percentile(unpack(measured.latency), 99.0),
        share_percent=100 * measured.iops / whole if whole else None,
        started_s=times[0],
        ended_s=times[1],
    )
