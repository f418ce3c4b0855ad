"""What each stream of a trial with several streams measured: its share of the sum, and when it started and ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from webapp.results.ingest.results import directions_of
from webapp.results.models import WITHOUT_BYTES, WITHOUT_IOS, StreamRun
from webapp.results.reading.rows import ResultRow
from webapp.runs.models import Attempt, Trial
from worker.contract.items import DirectionResult
from worker.contract.packing import supported_percentile, unpack

MIN_OVERLAP = 0.95  # a smaller overlap of the streams is a warning
MAX_SKEW_MS = 20.0  # between the begins of hosts; more is a warning


@dataclass(frozen=True)
class StreamFigures:
    """One direction of one stream. Times are seconds after the first stream's start, by the worker's clock; on several
    hosts, when I/O began and ended, by the server's clock."""

    stream: int  # from 0
    name: str  # of a stream with its own workload
    target: str  # host/target
    device: str  # kernel name, "" if unknown
    direction: str
    iops: float | None  # null for transactions, like bytes; null for a resync, like latencies
    bytes_per_s: float | None
    latency_mean_ns: float | None  # null without I/Os
    p99_ns: int | None
    share_percent: float | None  # of the sum of IOPS
    started_s: float
    ended_s: float


@dataclass(frozen=True)
class HostsStart:
    """How well several hosts began together, by the server's clock."""

    hosts: int
    skew_ms: float  # between the first and the last host
    uncertainty_ms: float  # the largest error of a host's reading of the server's clock

    @property
    def good(self) -> bool:
        return max(self.skew_ms, self.uncertainty_ms) <= MAX_SKEW_MS


@dataclass(frozen=True)
class TrialStreams:
    """All streams of one trial."""

    figures: tuple[StreamFigures, ...]
    last_start_s: float  # after the first start
    overlap_s: float  # time during which all streams ran
    total_s: float  # time during which any stream ran
    start: HostsStart | None  # of a trial on several hosts

    @property
    def mostly_overlap(self) -> bool:
        return self.overlap_s >= MIN_OVERLAP * self.total_s


def trial_streams(trial: Trial, results: Sequence[ResultRow]) -> TrialStreams | None:
    """The streams that `results` are the sums of. None for a trial with one stream or without results."""
    if trial.stream_count < 2 or not results:
        return None
    measured_streams = _streams(trial, results[0].id)
    sums: dict[str, float] = {}
    for result in results:
        sums[result.direction] = sums.get(result.direction, 0.0) + (result.iops or 0.0)
    targets, names = trial.stream_targets, trial.stream_names or ("",) * trial.stream_count
    times = _times(measured_streams)
    figures = [
        _figures(stream, names[stream.stream], str(targets[stream.stream]), measured, sums, times[stream.stream])
        for stream in measured_streams
        for measured in directions_of(stream)
    ]
    starts, ends = zip(*times.values(), strict=True)
    overlap_s = max(0.0, min(ends) - max(starts))
    start = _hosts_start(measured_streams, max(starts)) if trial.on_several_hosts else None
    return TrialStreams(tuple(figures), max(starts), overlap_s, max(ends), start)


def _streams(trial: Trial, result_id: int) -> list[StreamRun]:
    """Of the attempt of a result, or of the attempts with its number on all hosts of the trial."""
    streams = StreamRun.objects.select_related("attempt").order_by("stream")
    if not trial.on_several_hosts:
        return list(streams.filter(attempt__streams__results=result_id))
    return list(streams.filter(attempt__trial=trial, attempt__number__in=_number_of(result_id)))


def _number_of(result_id: int) -> QuerySet[Attempt, int]:
    return Attempt.objects.filter(streams__results=result_id).values_list("number", flat=True)


def _times(streams: Sequence[StreamRun]) -> dict[int, tuple[float, ...]]:
    """Start and end of each stream, in seconds after the first start."""
    moments = {stream.stream: (_start(stream), stream.ended_at or _start(stream)) for stream in streams}
    common = {stream.stream: stream.attempt.common_start_at for stream in streams}
    zero = {number: common[number] or min(start for start, _ in moments.values()) for number in moments}
    since = {number: [(at - zero[number]).total_seconds() for at in pair] for number, pair in moments.items()}
    first = min(start for start, _ in since.values())
    return {number: tuple(at - first for at in pair) for number, pair in since.items()}


def _start(stream: StreamRun) -> datetime:
    """On several hosts the begin of the I/O, which may differ though the engines were launched at the same moment."""
    began_at = stream.began_at if stream.attempt.common_start_at else None
    return began_at or stream.started_at


def _hosts_start(streams: Sequence[StreamRun], skew_s: float) -> HostsStart:
    attempts = {stream.attempt_id: stream.attempt for stream in streams}
    uncertainty_s = max(attempt.start_uncertainty_s or 0.0 for attempt in attempts.values())
    return HostsStart(len(attempts), 1000 * skew_s, 1000 * uncertainty_s)


def _figures(
    stream: StreamRun,
    name: str,
    target: str,
    measured: DirectionResult,
    sums: Mapping[str, float],
    times: tuple[float, ...],
) -> StreamFigures:
    total = sums.get(measured.direction.value)
    has_ios, has_bytes = (measured.direction.value not in each for each in (WITHOUT_IOS, WITHOUT_BYTES))
    return StreamFigures(
        stream=stream.stream,
        name=name,
        target=target,
        device=(stream.device or {}).get("device", ""),
        direction=measured.direction.value,
        iops=measured.iops if has_ios else None,
        bytes_per_s=measured.bytes_per_s if has_bytes else None,
        latency_mean_ns=measured.latency_mean_ns if measured.has_latencies else None,
        p99_ns=supported_percentile(unpack(measured.latency), 99.0),
        share_percent=100 * measured.iops / total if total else None,
        started_s=times[0],
        ended_s=times[1],
    )
