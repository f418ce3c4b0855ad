"""Result rows."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from webapp.results.bad_item import BadItem
from webapp.results.models import LegRun, Result
from webapp.results.sums import summed
from webapp.runs.models import Attempt
from worker.contract.histogram import supported_percentile
from worker.contract.items import DirectionResult
from worker.contract.packing import BadPacking, unpack


def results_of(attempt: Attempt, legs: Mapping[int, LegRun]) -> list[Result]:
    """The result rows of an attempt that is done, from what its legs (by number) said: sums where there are several.

    Raises BadItem if a leg of the order said nothing, or a histogram is none.
    """
    assert attempt.trial is not None
    for number in range(attempt.trial.leg_count):
        if number not in legs or legs[number].ended_at is None:
            raise BadItem(f"The attempt is done, but there is no result of leg {number}.")
    ended_at = max(leg.ended_at for leg in legs.values() if leg.ended_at is not None)
    try:
        measured = summed([directions_of(legs[number]) for number in sorted(legs)])
        rows = [_result(attempt, legs[0], direction, ended_at) for direction in measured]
    except BadPacking as error:
        raise BadItem(f"The attempt is done, but a histogram of it cannot be read: {error}.") from error
    if not rows:
        raise BadItem("The attempt is done, but its result holds no I/O in any direction.")
    return rows


def directions_of(leg: LegRun) -> tuple[DirectionResult, ...]:
    """What a leg measured; () of the only leg of a trial that is done, whose results say it."""
    kept = bytes(leg.directions)
    return msgspec.json.decode(kept, type=tuple[DirectionResult, ...]) if kept else ()


def _result(attempt: Attempt, leg: LegRun, measured: DirectionResult, ended_at: datetime) -> Result:
    trial, latency = attempt.trial, unpack(measured.latency)
    assert trial is not None
    return Result(
        trial_id=trial.pk,
        leg_run=leg,
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
