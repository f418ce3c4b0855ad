"""The result rows of a finished attempt."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite, sqrt
from typing import Any
from uuid import UUID

import msgspec

from webapp.plans.load import asked_iops, fio_workload, is_share
from webapp.plans.points import Point, point_key
from webapp.plans.streams import own_point, result_point
from webapp.results.ingest.parse import BadItem
from webapp.results.metrics import LOAD_ASKED, LOAD_BESIDE, LOAD_DELAYED, LOAD_REACHED
from webapp.results.models import NO_IO, WITHOUT_BYTES, WITHOUT_IOS, Result, StreamRun
from webapp.results.reading.doubts import kept_up
from webapp.runs.dispatch.ending import lock_trial
from webapp.runs.models import Attempt, AttemptState, Trial
from worker.contract.items import Direction, DirectionResult
from worker.contract.packing import BadPacking, Histogram, merge, pack, supported_percentile, unpack
from worker.contract.workload import AnyWorkload

# The sum of several streams of one trial. Pure.
#
#     ios, bytes, IOPS, bytes/s    sums; the rates of each stream cover its own run time
#     runtime                      the longest
#     latency histogram            of all I/Os: fio's buckets are the same in every stream, so merging them is exact
#     least and largest latency    of all streams
#     mean                         m = sum(n_i m_i) / N, of streams with n_i I/Os, N in all
#     standard deviation           s^2 = sum((n_i - 1) s_i^2 + n_i (m_i - m)^2) / (N - 1)
#
# The last is how fio itself puts its jobs together (stat.c, __sum_stat), after T. Chan, G. Golub and R. LeVeque,
# "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.

Measured = tuple[DirectionResult, ...]  # of one stream, by direction


def summed(streams: Sequence[Measured]) -> Measured:
    """The sum of each direction that any stream has, in order of first appearance; a single one is returned unchanged.

    Raises BadItem if streams report two kinds of latency.
    """
    by_direction: dict[Direction, list[DirectionResult]] = {}
    for measured in (each for stream in streams for each in stream):
        by_direction.setdefault(measured.direction, []).append(measured)
    return tuple(_sum(streams_of_direction) for streams_of_direction in by_direction.values())


def _sum(results: Sequence[DirectionResult]) -> DirectionResult:
    if len(results) == 1:
        return results[0]
    if len({result.latency_kind for result in results}) > 1:
        raise BadItem("The streams of a trial report two kinds of latency (lat and clat), which cannot be merged.")
    timed = [result for result in results if result.ios] or results
    return DirectionResult(
        direction=results[0].direction,
        ios=sum(result.ios for result in results),
        bytes=sum(result.bytes for result in results),
        runtime_ms=max(result.runtime_ms for result in results),
        iops=sum(result.iops for result in results),
        bytes_per_s=sum(result.bytes_per_s for result in results),
        latency_kind=results[0].latency_kind,
        latency_min_ns=min(result.latency_min_ns for result in timed),
        latency_mean_ns=_mean(timed),
        latency_max_ns=max(result.latency_max_ns for result in timed),
        latency_stddev_ns=_stddev(timed),
        latency=pack(merge(unpack(result.latency) for result in timed)),
    )


def _mean(results: Sequence[DirectionResult]) -> float:
    total = sum(result.ios for result in results)
    return sum(result.ios * result.latency_mean_ns for result in results) / total if total else 0.0


def _stddev(results: Sequence[DirectionResult]) -> float:
    total, mean = sum(result.ios for result in results), _mean(results)
    if total < 2:
        return 0.0
    inside = sum((result.ios - 1) * result.latency_stddev_ns**2 for result in results if result.ios)
    between = sum(result.ios * (result.latency_mean_ns - mean) ** 2 for result in results)
    return sqrt((inside + between) / (total - 1))


def new_results(attempt: Attempt, streams: Mapping[int, StreamRun]) -> list[Result]:
    """Unsaved result rows of a done attempt, one for each direction: the sums over its streams (by number), or those of
    each stream if they have different workloads.

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
        rows = _of_each(trial, streams) if trial.stream_names else _of_sum(trial, streams, ended_at)
    except BadPacking as error:
        raise BadItem(f"The attempt is done, but a histogram of it cannot be read: {error}.") from error
    if not all(isfinite(row.iops or 0) and isfinite(row.bytes_per_s or 0) for row in rows):
        raise BadItem("The attempt is done, but its rates are out of range.")
    if not rows:
        raise BadItem("The attempt is done, but its result has no I/O in any direction.")
    return rows


def _of(trial: Trial, target_id: UUID, point: Point, stream: StreamRun, ended_at: datetime) -> dict[str, Any]:
    """The columns of all results of a stream."""
    return {
        "trial_id": trial.pk,
        "stream_run": stream,
        "run_id": trial.run_id,
        "host_id": trial.host_id,
        "target_id": target_id,
        "repeat": trial.repeat,
        "point": point,
        "point_key": point_key(point),
        "measured_at": ended_at,
    }


def _idle_result(of: dict[str, Any], stream: StreamRun, ended_at: datetime) -> Result:
    """Of a workload without I/O: it has telemetry, and the metrics of its engine."""
    runtime_ms = round(1000 * (ended_at - stream.started_at).total_seconds())
    return Result(direction=NO_IO, runtime_ms=runtime_ms, latency=pack(Histogram()), **of)


def _of_sum(trial: Trial, streams: Mapping[int, StreamRun], ended_at: datetime) -> list[Result]:
    of = _of(trial, trial.target_id, trial.point, streams[0], ended_at)
    rows = [_result(of, direction) for direction in summed([directions_of(streams[each]) for each in sorted(streams)])]
    for row in rows:
        row.device_share = _device_share(row.direction, row.bytes or 0, streams.values())
    if not rows and not trial.workloads[0].does_io:
        rows = [_idle_result(of, streams[0], ended_at)]
    if len(streams) == 1:
        _add_metrics(rows, streams[0])
    if is_share(trial.point):
        _add_load(rows, trial.workloads[0])
    return rows


def _of_each(trial: Trial, streams: Mapping[int, StreamRun]) -> list[Result]:
    """The results of named streams."""
    by_stream: list[list[Result]] = []
    each = zip(trial.stream_names, trial.stream_targets, trial.workloads, strict=True)
    for number, (name, target, work) in enumerate(each):
        stream = streams[number]
        assert stream.ended_at is not None
        of = _of(trial, target.pk, result_point(trial.point, name), stream, stream.ended_at)
        stream_results = [_result(of, measured) for measured in directions_of(stream)]
        for row in stream_results:
            if _device_share(row.direction, 1, streams.values()) is not None:  # no two streams share a device
                row.device_share = _device_share(row.direction, row.bytes or 0, [stream])
        if not stream_results and not work.does_io:
            stream_results = [_idle_result(of, stream, stream.ended_at)]
        _add_metrics(stream_results, stream)
        if is_share(own_point(trial.point, name)):
            _add_load(stream_results, work)
        by_stream.append(stream_results)
    _add_lags(by_stream)
    return [row for rows in by_stream for row in rows]


def _add_lags(by_stream: Sequence[Sequence[Result]]) -> None:
    """The smallest share of its load that a stream beside reached, if one could not keep up: its interference is then
    that of a smaller load."""
    for rows in by_stream:
        beside = [row for others in by_stream if others is not rows for row in others if not kept_up(row)]
        for row in rows if beside else ():
            row.metrics = row.metrics | {LOAD_BESIDE: min(each.metrics[LOAD_REACHED] for each in beside)}


def _add_metrics(rows: Sequence[Result], stream: StreamRun) -> None:
    if rows:
        rows[-1].metrics = {each["name"]: each["value"] for each in stream.metrics if each["value"] is not None}


def _add_load(rows: Sequence[Result], work: AnyWorkload) -> None:
    """The asked IOPS, and the share of arrivals whose job still had an I/O in flight: by Little's law, as Poisson
    arrivals see the mean state (R. Wolff: Poisson arrivals see time averages, Operations Research 30, 1982)."""
    jobs = fio_workload(work)
    in_flight = sum((row.iops or 0) * (row.latency_mean_ns or 0) / 1e9 for row in rows)
    reached, asked = sum(row.iops or 0 for row in rows), asked_iops(jobs)
    for row in rows:
        row.metrics |= {
            LOAD_ASKED: asked, LOAD_REACHED: 100 * reached / asked, LOAD_DELAYED: 100 * in_flight / jobs.numjobs,
        }  # fmt: skip


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
    packed = bytes(stream.directions)
    return msgspec.json.decode(packed, type=tuple[DirectionResult, ...]) if packed else ()


def _result(of: Mapping[str, Any], measured: DirectionResult) -> Result:
    """A transaction is no I/O: a result of transactions has neither I/Os nor bytes. Its engine's metrics count.

    A resync has bytes, but its I/Os and latencies are unknown. A direction of a mix without any I/O has no latencies.

    `of` are the columns of `_of`.
    """
    latency, has_latencies = unpack(measured.latency), measured.has_latencies
    has_ios, has_bytes = (measured.direction.value not in each for each in (WITHOUT_IOS, WITHOUT_BYTES))
    return Result(
        direction=measured.direction.value,
        ios=measured.ios if has_ios else None,
        bytes=measured.bytes if has_bytes else None,
        runtime_ms=measured.runtime_ms,
        iops=measured.iops if has_ios else None,
        bytes_per_s=measured.bytes_per_s if has_bytes else None,
        latency_kind=measured.latency_kind.value if has_latencies else "",
        latency_min_ns=measured.latency_min_ns if has_latencies else None,
        latency_mean_ns=measured.latency_mean_ns if has_latencies else None,
        latency_max_ns=measured.latency_max_ns if has_latencies else None,
        latency_stddev_ns=measured.latency_stddev_ns if has_latencies else None,
        p50_ns=supported_percentile(latency, 50.0),
        p95_ns=supported_percentile(latency, 95.0),
        p99_ns=supported_percentile(latency, 99.0),
        p999_ns=supported_percentile(latency, 99.9),
        latency=measured.latency,
        **of,
    )
