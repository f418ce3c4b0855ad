"""What every engine needs: failures, checks of `doctor`, the capacity of targets, and measured directions."""

import os
from enum import StrEnum
from math import sqrt
from typing import NamedTuple

import msgspec

from worker.contract.base import Failed
from worker.contract.items import Direction, DirectionResult, DirectionSample, LatencyKind
from worker.contract.packing import Histogram, pack, supported_percentile
from worker.contract.workload import Stream, TargetKind
from worker.kernel.targets import OpenTarget


class StreamFailed(Failed):
    """The stream has no result. `code` is one of docs/reference/message-contract.md; the rest is for people."""


def errno_words(number: int) -> str:
    """`I/O error (errno 5)`."""
    return f"{os.strerror(number)} (errno {number})"


def last_words(text: str, *, lines: int = 5) -> str:
    """The last lines of a program's output, joined to one line."""
    printed = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(printed[-lines:]))


# Results of the checks of `sweetspot-worker doctor`.


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


class Check(msgspec.Struct, frozen=True):
    """The result of one check, and advice."""

    name: str
    state: State
    found: str
    advice: str = ""


# Check that the workload fits its target. Engines may silently use less of a device, or extend a file.


def check_capacity(stream: Stream, open_target: OpenTarget) -> None:
    """Raises StreamFailed if the requested size exceeds the device or file. The guard checks directories."""
    wanted, there = stream.workload.end_bytes, size_of(stream, open_target)
    if wanted is not None and there is not None and wanted > there:
        raise StreamFailed(
            "option_refused",
            f"The workload uses {wanted} bytes, but {stream.target.path} has {there}: use a smaller size.",
        )


def size_of(stream: Stream, open_target: OpenTarget) -> int | None:
    """Bytes of the device or file; None if unknown or unlimited."""
    try:
        if stream.target.kind is TargetKind.BLOCK:
            return open_target.size_bytes
        if stream.target.kind is TargetKind.FILE:
            return os.stat(open_target.path, dir_fd=open_target.cwd_fd).st_size
    except OSError:
        return None
    return None


# Samples and results of one direction.

NO_LATENCIES = Histogram(latency_ns=(), counts=())


class Moments(NamedTuple):
    """Of all latencies of a direction, in ns."""

    min: float
    mean: float
    max: float
    stddev: float


def direction_sample(
    direction: Direction, *, ios: int, moved_bytes: int, latency: Histogram = NO_LATENCIES
) -> DirectionSample:
    """One direction of a sample, with the percentiles for which the histogram has enough I/Os."""
    return DirectionSample(
        direction=direction,
        ios=ios,
        bytes=moved_bytes,
        latency=pack(latency),
        p50_ns=supported_percentile(latency, 50.0),
        p99_ns=supported_percentile(latency, 99.0),
        p999_ns=supported_percentile(latency, 99.9),
    )


def direction_result(
    direction: Direction,
    *,
    ios: int,
    moved_bytes: int,
    runtime_ms: int,
    latency: Histogram = NO_LATENCIES,
    moments: Moments | None = None,
    kind: LatencyKind = LatencyKind.LAT,
) -> DirectionResult:
    """One direction of a result. Without exact `moments`, they are those of the histogram's buckets, within 0.8 %."""
    seconds = max(1, runtime_ms) / 1000
    exact = moments or _moments(latency)
    return DirectionResult(
        direction=direction,
        ios=ios,
        bytes=moved_bytes,
        runtime_ms=runtime_ms,
        iops=ios / seconds,
        bytes_per_s=moved_bytes / seconds,
        latency_kind=kind,
        latency_min_ns=exact.min,
        latency_mean_ns=exact.mean,
        latency_max_ns=exact.max,
        latency_stddev_ns=exact.stddev,
        latency=pack(latency),
    )


def _moments(latency: Histogram) -> Moments:
    mean, total = latency.mean_ns() or 0.0, latency.total
    pairs = zip(latency.latency_ns, latency.counts, strict=True)
    squares = sum(count * (ns - mean) ** 2 for ns, count in pairs)
    return Moments(
        min(latency.latency_ns, default=0),
        mean,
        max(latency.latency_ns, default=0),
        sqrt(squares / (total - 1)) if total > 1 else 0.0,
    )
