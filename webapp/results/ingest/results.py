"""The result rows of a finished attempt."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any

import msgspec

from webapp.results.ingest.bad_item import BadItem
from webapp.results.ingest.sums import summed
from webapp.results.models import NO_IO, Result, StreamRun
from webapp.runs.models import Attempt
from worker.contract.histogram import Histogram, supported_percentile
from worker.contract.items import Direction, DirectionResult
from worker.contract.packing import BadPacking, pack, unpack
from worker.contract.workload import AnyWorkload


def new_results(attempt: Attempt, streams: Mapping[int, StreamRun]) -> list[Result]:
    """Unsaved result rows of a done attempt, one for each direction: the sums over its streams (by number).

    Raises BadItem if a stream of the order has no result, or if a histogram cannot be read.
    """
    assert attempt.trial is not None
    for number in range(attempt.trial.stream_count):
        if number not in streams or streams[number].ended_at is None:
            raise BadItem(f"The attempt is done, but there is no result of stream {number}.")
    ended_at = max(stream.ended_at for stream in streams.values() if stream.ended_at is not None)
    try:
        measured = summed([directions_of(streams[number]) for number in sorted(streams)])
        rows = [_result(attempt, streams[0], direction, ended_at) for direction in measured]
    except BadPacking as error:
        raise BadItem(f"The attempt is done, but a histogram of it cannot be read: {error}.") from error
    for row in rows:
        row.device_share = _device_share(row.direction, row.bytes or 0, streams.values())
    if rows and len(streams) == 1:
        rows[-1].metrics = {each["name"]: each["value"] for each in streams[0].metrics if each["value"] is not None}
    if not all(isfinite(row.iops or 0) and isfinite(row.bytes_per_s or 0) for row in rows):
        raise BadItem("The attempt is done, but its rates are out of range.")
    if not rows and msgspec.convert(attempt.trial.workload, AnyWorkload).does_io:
        raise BadItem("The attempt is done, but its result has no I/O in any direction.")
    return rows or [_idle_result(attempt, streams[0], ended_at)]


def _of(attempt: Attempt, stream: StreamRun, ended_at: datetime) -> dict[str, Any]:
    """The columns of all results of the attempt."""
    trial = attempt.trial
    assert trial is not None
    return {
        "trial_id": trial.pk,
        "stream_run": stream,
        "run_id": trial.run_id,
        "host_id": trial.host_id,
        "target_id": trial.target_id,
        "point": trial.point,
        "point_key": trial.point_key,
        "measured_at": ended_at,
    }


def _idle_result(attempt: Attempt, stream: StreamRun, ended_at: datetime) -> Result:
    """Of a workload without I/O: telemetry is all that it has."""
    runtime_ms = round(1000 * (ended_at - stream.started_at).total_seconds())
    return Result(direction=NO_IO, runtime_ms=runtime_ms, latency=pack(Histogram()), **_of(attempt, stream, ended_at))


def _device_share(direction: str, engine_bytes: int, streams: Iterable[StreamRun]) -> float | None:
    """None if a device does not count, or if streams share one: they may have run at different times."""
    devices = [stream.device for stream in streams]
    if None in devices or len({device["device"] for device in devices if device}) < len(devices):
        return None
    counted = [device.get(f"{direction}_bytes") for device in devices if device]
    return None if None in counted or not engine_bytes else sum(counted) / engine_bytes


def directions_of(stream: StreamRun) -> tuple[DirectionResult, ...]:
    """The values of a stream; () for the only stream of a done trial, because the results are the same."""
    kept = bytes(stream.directions)
    return msgspec.json.decode(kept, type=tuple[DirectionResult, ...]) if kept else ()


def _result(attempt: Attempt, stream: StreamRun, measured: DirectionResult, ended_at: datetime) -> Result:
    """A transaction is no I/O: a result of transactions has neither I/Os nor bytes. Its engine's metrics count."""
    latency = unpack(measured.latency)
    is_io = measured.direction is not Direction.TRANSACTION
    return Result(
        direction=measured.direction.value,
        ios=measured.ios if is_io else None,
        bytes=measured.bytes if is_io else None,
        runtime_ms=measured.runtime_ms,
        iops=measured.iops if is_io else None,
        bytes_per_s=measured.bytes_per_s if is_io else None,
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
        **_of(attempt, stream, ended_at),
    )
