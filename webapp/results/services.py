"""Result rows."""

from collections.abc import Collection

import msgspec

from webapp.results.bad_item import BadItem
from webapp.results.models import LegRun, Result
from webapp.runs.models import Attempt
from worker.contract.histogram import supported_percentile
from worker.contract.items import DirectionResult
from worker.contract.packing import unpack


def results_of(attempt: Attempt, legs: Collection[LegRun]) -> list[Result]:
    """The result rows of an attempt that is done, from what its legs said. Raises BadItem if one said nothing."""
    unfinished = [leg.leg for leg in legs if leg.ended_at is None]
    if not legs or unfinished:
        raise BadItem(f"The attempt is done, but there is no result of leg {unfinished[0] if unfinished else 0}.")
    rows = [
        _result(attempt, leg, direction)
        for leg in legs
        for direction in msgspec.json.decode(bytes(leg.directions), type=tuple[DirectionResult, ...])
    ]
    if not rows:
        raise BadItem("The attempt is done, but its result holds no I/O in any direction.")
    return rows


def _result(attempt: Attempt, leg: LegRun, measured: DirectionResult) -> Result:
    trial, latency = attempt.trial, unpack(measured.latency)
    assert trial is not None
    assert leg.ended_at is not None
    return Result(
        trial=trial,
        leg_run=leg,
        direction=measured.direction.value,
        run_id=trial.run_id,
        host_id=trial.host_id,
        target_id=trial.target_id,
        point=trial.point,
        point_key=trial.point_key,
        measured_at=leg.ended_at,
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
