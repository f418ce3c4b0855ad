"""The file copy engine: `program` copies; this module starts it, follows its output and takes its result."""

import logging
import math
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import EngineOffer
from worker.contract.items import Attachment, Direction, DirectionResult, DirectionSample, MediaType, StreamResult
from worker.contract.packing import Histogram
from worker.contract.workload import CopyWorkload
from worker.engines.base import Check, Moments, State, direction_result, direction_sample
from worker.engines.file_copy import program
from worker.engines.running import OwnProgram, Running, Sampler
from worker.kernel.targets import OpenTarget
from worker.recipes.file_copy import METRICS, CopyJob

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
    """Sends a sample for each line of a second."""

    def __init__(self, sampler: Sampler) -> None:
        self.end: Line | None = None
        self.text = ""
        self._sampler = sampler
        self._end_ms = 0

    def take(self, line: Line, text: bytes) -> None:
        if line.event == "end":
            self.end, self.text = line, text.decode()
        elif line.end_ms > self._end_ms or line.read.ios or line.write.ios:
            if self._sampler.count == 0:
                self._sampler.began_at(time.monotonic() - line.end_ms / 1000)
            self._sampler.emit(_samples(line), self._sampler.began + line.end_ms / 1000)
            self._end_ms = line.end_ms


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. The program also reports seconds without a completed block."""
    work = running.stream.workload
    assert isinstance(work, CopyWorkload)
    recipe, started_at = running.recipe(), time.time()
    child = running.spawn(COMMAND, recipe.job_text)
    metrics = tuple(metric for metric in METRICS if work.fsync or metric.name != "fsync_s")
    running.report_start(started_at, recipe, command=COMMAND, metrics=metrics)
    sampler = running.sampler()
    reader = Reader(sampler)
    try:
        code = PROGRAM.follow(child, running, Line, reader.take)
    finally:
        _remove_copies(recipe.job_text, running.target)  # the program removes them unless it is killed
    if code or reader.end is None:
        raise PROGRAM.failed(child)
    end = reader.end
    seconds = max(1, end.end_ms) / 1000
    return StreamResult(
        stream=running.stream.number,
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
        metrics=_metrics(end, fsync=work.fsync),
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
    mean = counts.sum_ns / counts.ios
    stddev = math.sqrt(max(0.0, counts.sum2_ns2 / counts.ios - mean * mean))
    return direction_result(
        direction,
        ios=counts.ios,
        moved_bytes=counts.bytes,
        runtime_ms=runtime_ms,
        latency=counts.histogram,
        moments=Moments(counts.min_ns or 0, mean, counts.max_ns, stddev),
    )


def offer() -> EngineOffer:
    """Python and Linux support all methods. Whether a file system has reflinks shows when a trial uses them."""
    return EngineOffer(version=VERSION, features=tuple(CopyMethod))


def installation() -> str:
    return VERSION


def check() -> Iterator[Check]:
    yield Check("file copy", State.OK, f"version {VERSION}")
