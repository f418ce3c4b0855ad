"""A measurement as a stored result, and what logs add to a stored result."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from webapp.imports.log_series import TOOL
from webapp.imports.measurement import Latency, Measurement
from webapp.plans.points import point_key
from webapp.results.metrics import BANDWIDTH_STEP, IOPS_STEP, LATENCY_STEP, PERCENTILE_STEP
from webapp.results.models import BOTH, NO_IO, Import, Origin, Result, known
from worker.contract.histogram import least_count, supported_percentile
from worker.contract.items import Direction
from worker.contract.packing import pack, unpack

_PERCENTILES = {"p50_ns": 50.0, "p95_ns": 95.0, "p99_ns": 99.0, "p999_ns": 99.9}


def result_of(origin: Origin, measured: Measurement, unknown_time: datetime, imported: Import) -> Result:
    latency = measured.latency
    point = dict(measured.factors)
    iops, bytes_per_s = _rates(measured)
    return Result(
        origin=origin,
        direction=(measured.direction.value if measured.direction else BOTH) if measured.is_io else NO_IO,
        point=point,
        point_key=point_key(point),
        measured_at=measured.measured_at or unknown_time,
        ios=measured.ios,
        bytes=measured.bytes,
        runtime_ms=measured.runtime_ms,
        iops=iops,
        bytes_per_s=bytes_per_s,
        latency_kind=latency.kind,
        latency_min_ns=latency.min_ns,
        latency_mean_ns=latency.mean_ns,
        latency_max_ns=latency.max_ns,
        latency_stddev_ns=latency.stddev_ns,
        reference=imported.slug is not None,
        **_extensible(measured),
    )


def _extensible(measured: Measurement) -> dict[str, Any]:
    """The fields to which logs may add something later."""
    return {
        **{field: _percentile(measured, percent) for field, percent in _PERCENTILES.items()},
        "latency": pack(measured.latency.histogram),
        "metrics": {**measured.metrics, **_steps(measured)},
    }


def measured_of(result: Result) -> Measurement:
    """What a stored result has of the values that logs can be compared with, or can add to."""
    stated = {percent: getattr(result, field) for field, percent in _PERCENTILES.items()}
    return Measurement(
        tool=TOOL, tool_version=known(result.origin).tool_version, factors={},
        direction=None if result.direction in (BOTH, NO_IO) else Direction(result.direction),
        ios=result.ios, iops=result.iops, bytes_per_s=result.bytes_per_s, runtime_ms=result.runtime_ms,
        metrics=result.metrics,
        latency=Latency(
            kind=result.latency_kind, histogram=unpack(result.latency),
            percentiles={percent: ns for percent, ns in stated.items() if ns is not None},
        ),
    )  # fmt: skip


def extend(result: Result, measured: Measurement) -> None:
    """Store what logs added to `measured_of` the result."""
    fields = _extensible(measured)
    for name, value in fields.items():
        setattr(result, name, value)
    result.save(update_fields=list(fields))


def _rates(measured: Measurement) -> tuple[float | None, float | None]:
    """IOPS and bytes/s; if the tool states only one of both and the block size, the other one follows."""
    iops, bytes_per_s, block = measured.iops, measured.bytes_per_s, measured.factors.get("block_size")
    if not isinstance(block, int) or not block:
        return iops, bytes_per_s
    if iops is None and bytes_per_s is not None:
        return bytes_per_s / block, bytes_per_s
    if bytes_per_s is None and iops is not None:
        return iops, iops * block
    return iops, bytes_per_s


def _steps(measured: Measurement) -> dict[str, float]:
    """Of latencies as the format states them; of rates from their printed digits."""
    latency, block = measured.latency, measured.factors.get("block_size")
    steps = {LATENCY_STEP: latency.step_ns, PERCENTILE_STEP: latency.percentile_step_ns}
    if measured.ios is None:  # with a count, the step of a rate is one I/O
        iops, bandwidth = measured.iops_step, measured.bytes_per_s_step
        if isinstance(block, int) and block:  # a rate that follows from the other one has its step
            iops, bandwidth = iops or bandwidth / block, bandwidth or iops * block
        steps |= {IOPS_STEP: iops, BANDWIDTH_STEP: bandwidth}
    return {name: step for name, step in steps.items() if step}


def _percentile(measured: Measurement, percent: float) -> int | None:
    """As the tool states it, otherwise computed from its histogram. None if there are too few I/Os for it."""
    if _ios(measured) < least_count(percent):
        return None
    stated = measured.latency.percentiles.get(percent)
    return round(stated) if stated is not None else supported_percentile(measured.latency.histogram, percent)


def _ios(measured: Measurement) -> float:
    """Infinite if it does not follow from what the tool states."""
    known = measured.ios if measured.ios is not None else measured.latency.histogram.total
    if not known and measured.iops and measured.runtime_ms:
        known = math.ceil(measured.iops * measured.runtime_ms / 1000)
    return known or math.inf


def left_out(measured: Sequence[Measurement]) -> Iterator[str]:
    for one in measured:
        few = [f"p{percent:g}" for percent in one.latency.percentiles if _ios(one) < least_count(percent)]
        if few:
            yield f"{', '.join(few)} left out: {_ios(one):,} I/Os are too few. A percentile needs 10 I/Os beyond it."
