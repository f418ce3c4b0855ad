"""The result rows of a finished attempt."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite

import msgspec

from webapp.results.ingest.bad_item import BadItem
from webapp.results.ingest.sums import summed
from webapp.results.models import Result, StreamRun, known
from webapp.runs.dispatch.ending import lock_trial
from webapp.runs.models import Attempt, AttemptState
from worker.contract.histogram import supported_percentile
from worker.contract.items import DirectionResult
from worker.contract.packing import BadPacking, unpack


def new_results(attempt: Attempt, streams: Mapping[int, StreamRun]) -> list[Result]:
    """Unsaved result rows of a done attempt, one for each direction: the sums over its streams (by number).

    On several hosts, the last attempt that is done makes the results, of the streams of all of them.

    Raises BadItem if a stream of the order has no result, or if a histogram cannot be read.
    """
    trial = attempt.trial
    assert trial is not None
    for number in trial.streams_on(attempt.host_id):
        if number not in streams or streams[number].ended_at is None:
            raise BadItem(f"The attempt is done, but there is no result of stream {number}.")
    if trial.on_several_hosts:
        streams = {**streams, **_streams_of_others(attempt)}
        if len(streams) < trial.stream_count:
            return []
    ended_at = max(stream.ended_at for stream in streams.values() if stream.ended_at is not None)
    try:
        measured = summed([directions_of(streams[number]) for number in sorted(streams)])
        rows = [_result(attempt, streams[0], direction, ended_at) for direction in measured]
    except BadPacking as error:
        raise BadItem(f"The attempt is done, but a histogram of it cannot be read: {error}.") from error
    for row in rows:
        row.device_share = _device_share(row.direction, known(row.bytes), streams.values())
    if rows and len(streams) == 1:
        rows[-1].metrics = {each["name"]: each["value"] for each in streams[0].metrics if each["value"] is not None}
    if not all(isfinite(known(row.iops)) and isfinite(known(row.bytes_per_s)) for row in rows):
        raise BadItem("The attempt is done, but its rates are out of range.")
    if not rows:
        raise BadItem("The attempt is done, but its result has no I/O in any direction.")
    return rows


def _streams_of_others(attempt: Attempt) -> dict[int, StreamRun]:
    """Streams on the other hosts of its trial whose attempts are done. The trial is locked until the commit."""
    lock_trial(attempt)
    others = StreamRun.objects.filter(attempt__trial=attempt.trial_id, attempt__number=attempt.number)
    done = others.exclude(attempt=attempt.pk).filter(attempt__state=AttemptState.DONE)
    return {stream.stream: stream for stream in done}


def _device_share(direction: str, engine_bytes: int, streams: Iterable[StreamRun]) -> float | None:
    """None if a device does not count, or if streams share one: they may have run at different times."""
    streams = list(streams)
    devices = [stream.device for stream in streams]
    names = {(stream.attempt_id, stream.device["device"]) for stream in streams if stream.device}
    if None in devices or len(names) < len(devices):
        return None
    counted = [device.get(f"{direction}_bytes") for device in devices if device]
    return None if None in counted or not engine_bytes else sum(counted) / engine_bytes


def directions_of(stream: StreamRun) -> tuple[DirectionResult, ...]:
    """The values of a stream; () for the only stream of a done trial, because the results are the same."""
    kept = bytes(stream.directions)
    return msgspec.json.decode(kept, type=tuple[DirectionResult, ...]) if kept else ()


def _result(attempt: Attempt, stream: StreamRun, measured: DirectionResult, ended_at: datetime) -> Result:
    trial, latency = attempt.trial, unpack(measured.latency)
    assert trial is not None
    return Result(
        trial_id=trial.pk,
        stream_run=stream,
        direction=measured.direction.value,
        run_id=trial.run_id,
        host_id=trial.host_id,
        target_id=trial.target_id,
        point=trial.point,
        point_key=trial.point_key,
        measured_at=ended_at,
        ios=measured.ios,
        bytes=measured.bytes,
        runtime_ms=measured.runtime_ms,
        iops=measured.iops,
        bytes_per_s=measured.bytes_per_s,
        latency_kind=measured.latency_kind.value,
        latency_min_ns=measured.latency_min_ns,
        latency_mean_ns=measured.latency_mean_ns,
        latency_max_ns=measured.latency_max_ns,
        latency_stddev_ns=measured.latency_stddev_ns,
        p50_ns=supported_percentile(latency, 50.0),
        p95_ns=supported_percentile(latency, 95.0),
        p99_ns=supported_percentile(latency, 99.0),
        p999_ns=supported_percentile(latency, 99.9),
        latency=measured.latency,
    )
