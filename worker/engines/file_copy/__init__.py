"""The file copy engine: `program` copies; this module starts it, follows its output and takes its result."""

import logging
import math
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import EngineOffer
from worker.contract.items import Attachment, Direction, DirectionResult, DirectionSample, MediaType, StreamResult
from worker.contract.packing import Histogram
from worker.contract.workload import CopyWorkload
from worker.engines.base import (
    Check,
    Moments,
    State,
    StreamFailed,
    direction_result,
    direction_sample,
    errno_words,
)
from worker.engines.file_copy import program
from worker.engines.running import OwnProgram, Running, Sampler
from worker.kernel.files import shared_bytes
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
    wanted = {"fsync_s": work.fsync, "shared_percent": work.method is CopyMethod.KERNEL}
    metrics = tuple(metric for metric in METRICS if wanted.get(metric.name, True))
    running.report_start(started_at, recipe, command=COMMAND, metrics=metrics)
    sampler = running.sampler()
    reader = Reader(sampler)
    copies = msgspec.json.decode(recipe.job_text, type=CopyJob).copies
    try:
        code = PROGRAM.follow(child, running, Line, reader.take)
        shared = _shared(copies, running.target) if work.method is CopyMethod.KERNEL and not code else None
    finally:
        _remove(copies, running.target)
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
        metrics=_metrics(end, fsync=work.fsync) | ({} if shared is None else {"shared_percent": shared}),
        attachments=(Attachment(name="copy.json", media_type=MediaType.JSON, text=reader.text),),
    )


def _metrics(end: Line, *, fsync: bool) -> dict[str, float]:
    """Without fsync, the fsync time is not declared, because 0 s would look like a measured value."""
    seconds = max(1, end.end_ns) / 1e9
    measured = {"copy_s": seconds, "copy_bytes_per_s": end.write.bytes / seconds}
    return measured | ({"fsync_s": end.fsync_ns / 1e9} if fsync else {})


def _shared(copies: Sequence[str], open_target: OpenTarget) -> float | None:
    """Per cent of the bytes of all copies that share blocks with other files; None if the file system does not tell."""
    total = shared = 0
    for name in copies:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=open_target.cwd_fd)
        try:
            size = os.fstat(fd).st_size
            of_file = shared_bytes(fd, size)
        except OSError as error:  # such as errno 5: the copy's dirty pages are written first
            words = f"The extents of the copy {name} cannot be read: {errno_words(error.errno or 0)}."
            raise StreamFailed("extents_unreadable", words) from error
        finally:
            os.close(fd)
        if of_file is None:
            return None
        total, shared = total + size, shared + of_file
    return 100 * shared / total


def _remove(copies: Sequence[str], open_target: OpenTarget) -> None:
    for name in copies:
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
