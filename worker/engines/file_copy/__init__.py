"""The file copy engine: `program` copies, `stream` starts and follows it."""

import logging
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import EngineOffer
from worker.contract.items import (
    Attachment,
    Direction,
    DirectionResult,
    DirectionSample,
    LatencyKind,
    MediaType,
    Sample,
    StreamResult,
    StreamStarted,
)
from worker.contract.packing import Histogram, pack
from worker.contract.workload import CopyWorkload, Stream
from worker.engines.base import Check, OwnProgram, State
from worker.engines.file_copy import program
from worker.engines.running import Sampler, Telemetry, direction_sample, recipe_at, stream_started
from worker.engines.stopping import SharedStop
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits
from worker.process.scope import Scope
from worker.recipes import render
from worker.recipes.file_copy import METRICS, CopyJob

# Run one file copy as a stream: start the program, follow its output, take its result.

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-I", "-S", "-E", str(Path(program.__file__)))
VERSION = f"Python {platform.python_version()}"
PROGRAM = OwnProgram(name="copy", work="the copy", code="copy_error", most_bytes=4 * 1024 * 1024)


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The program's counts of one direction."""

    ios: int
    bytes: int
    sum_ns: int
    sum2_ns2: int
    min_ns: int | None
    max_ns: int
    buckets: list[tuple[int, int]]

    @property
    def histogram(self) -> Histogram:
        return Histogram(latency_ns=tuple(ns for ns, _ in self.buckets), counts=tuple(n for _, n in self.buckets))


class Line(msgspec.Struct, frozen=True):
    event: str
    end_ms: int
    read: Counts
    write: Counts
    end_ns: int = 0
    fsync_ns: int = 0
    usr_ms: int = 0
    sys_ms: int = 0


class Reader:
    """Reads the program's output and sends a sample for each line of a second."""

    def __init__(self, sampler: Sampler) -> None:
        self.end: Line | None = None
        self.text = ""
        self._sampler = sampler
        self._rest = b""
        self._end_ms = 0

    def feed(self, data: bytes) -> bool:
        lines, self._rest = PROGRAM.lines(self._rest + data)
        for text in lines:
            self._take(text)
        return bool(lines)

    def _take(self, text: bytes) -> None:
        line = PROGRAM.decoded(text, Line)
        if line.event == "end":
            self.end, self.text = line, text.decode()
        elif line.end_ms > self._end_ms or line.read.ios or line.write.ios:
            if self._sampler.count == 0:
                self._sampler.began_at(time.monotonic() - line.end_ms / 1000)
            self._sampler.emit(_samples(line), self._sampler.began + line.end_ms / 1000)
            self._end_ms = line.end_ms


def run_stream(
    stream: Stream,
    open_target: OpenTarget,
    *,
    scope: Scope,
    cancelled: threading.Event,
    silence_limit_s: float,
    total_limit_s: float,
    on_started: Callable[[StreamStarted], None],
    on_sample: Callable[[Sample], None],
    telemetry: Telemetry | None = None,
    stop: SharedStop | None = None,  # noqa: ARG001 - it has no stop rules
) -> StreamResult:
    """As `engines.Engine` says. The program also reports seconds without a completed block."""
    assert isinstance(stream.workload, CopyWorkload)
    fsync = stream.workload.fsync
    recipe = recipe_at(stream, open_target, render)
    started_at = time.time()
    child = scope.spawn(COMMAND, cwd_fd=open_target.cwd_fd, stdin_text=recipe.job_text)
    declared = tuple(metric for metric in METRICS if fsync or metric.name != "fsync_s")
    started = stream_started(started_at, stream, recipe, telemetry)
    on_started(msgspec.structs.replace(started, command=COMMAND, metrics=declared))
    sampler = Sampler(stream.number, open_target.devices, on_sample, telemetry)
    reader = Reader(sampler)
    limits = Limits(total_s=total_limit_s, silence_s=silence_limit_s)
    try:
        code = PROGRAM.follow(child, scope, limits, reader.feed, cancelled)
    finally:
        _remove_copies(recipe.job_text, open_target)  # the program removes them unless it is killed
    if code or reader.end is None:
        raise PROGRAM.failed(child)
    end = reader.end
    seconds = max(1, end.end_ms) / 1000
    return StreamResult(
        stream=stream.number,
        started_at=started_at,
        ended_at=time.time(),
        engine_version=VERSION,
        exit_code=code,
        stderr=child.stderr(),
        directions=tuple(
            _result(direction, counts, end.end_ms)
            for direction, counts in ((Direction.READ, end.read), (Direction.WRITE, end.write))
            if counts.ios
        ),
        usr_cpu_percent=end.usr_ms / seconds / 10,
        sys_cpu_percent=end.sys_ms / seconds / 10,
        device=sampler.whole(),
        samples=sampler.count,
        metrics=_metrics(end, fsync=fsync),
        attachments=(Attachment(name="copy.json", media_type=MediaType.JSON, text=reader.text),),
    )


def _metrics(end: Line, *, fsync: bool) -> dict[str, float]:
    """Without fsync, the fsync time is not declared, because 0 s would look like a measured value."""
    seconds = max(1, end.end_ns) / 1e9
    measured = {"copy_s": seconds, "copy_bytes_per_s": end.write.bytes / seconds}
    return measured | ({"fsync_s": end.fsync_ns / 1e9} if fsync else {})


def _remove_copies(job_text: str, open_target: OpenTarget) -> None:
    for name in msgspec.json.decode(job_text, type=CopyJob).copies:
        try:
            os.unlink(name, dir_fd=open_target.cwd_fd)
        except FileNotFoundError:
            continue
        except OSError as error:  # a later trial removes it; EBUSY: something was mounted over it
            log.warning("The copy %s was not removed: %s", name, error)


def _samples(line: Line) -> tuple[DirectionSample, ...]:
    return tuple(
        direction_sample(direction, ios=counts.ios, moved_bytes=counts.bytes, latency=counts.histogram)
        for direction, counts in ((Direction.READ, line.read), (Direction.WRITE, line.write))
    )


def _result(direction: Direction, counts: Counts, runtime_ms: int) -> DirectionResult:
    seconds, mean = max(1, runtime_ms) / 1000, counts.sum_ns / counts.ios
    return DirectionResult(
        direction=direction,
        ios=counts.ios,
        bytes=counts.bytes,
        runtime_ms=runtime_ms,
        iops=counts.ios / seconds,
        bytes_per_s=counts.bytes / seconds,
        latency_kind=LatencyKind.LAT,
        latency_min_ns=counts.min_ns or 0,
        latency_mean_ns=mean,
        latency_max_ns=counts.max_ns,
        latency_stddev_ns=math.sqrt(max(0.0, counts.sum2_ns2 / counts.ios - mean * mean)),
        latency=pack(counts.histogram),
    )


def offer() -> EngineOffer:
    """Python and Linux support all methods. Whether a file system has reflinks shows when a trial uses them."""
    return EngineOffer(version=VERSION, features=tuple(CopyMethod))


def installation() -> str:
    return VERSION


def check() -> Iterator[Check]:
    yield Check("file copy", State.OK, f"version {VERSION}")
