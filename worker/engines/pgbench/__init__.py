"""The pgbench engine: `program` runs a temporary PostgreSQL cluster and pgbench.

This module starts the program, follows its output and takes its result.
"""

import math
import os
import pwd
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from worker.contract.inventory import EngineOffer
from worker.contract.items import Attachment, Direction, DirectionResult, MediaType, StreamResult
from worker.contract.packing import Histogram, bucket_ns
from worker.contract.workload import Stream
from worker.engines.base import Check, Moments, State, direction_result, direction_sample
from worker.engines.pgbench import program
from worker.engines.running import OwnProgram, Running, Sampler
from worker.kernel.targets import OpenTarget
from worker.process.run import ToolError, ask
from worker.recipes.base import temporary_folder
from worker.recipes.pgbench import INSTALLATION, METRICS

# The installed PostgreSQL.


def version() -> str:
    """`PostgreSQL 15.18`; "" if it is not installed."""
    folder = program.bin_folder()
    if not folder:
        return ""
    try:
        words = ask(f"{folder}/pgbench", "--version").out.split()  # pgbench (PostgreSQL) 15.18 (Debian 15.18-0)
    except ToolError:
        return ""
    return f"PostgreSQL {words[2]}" if len(words) > 2 else ""


def missing_user() -> str:
    """The user that PostgreSQL runs as, if the worker is root and it does not exist; else ""."""
    if os.geteuid() != 0:
        return ""
    try:
        pwd.getpwnam(program.USER)
    except KeyError:
        return program.USER
    return ""


COMMAND = (sys.executable, "-I", "-S", "-E", str(Path(program.__file__)))
PROGRAM = OwnProgram(name="pgbench", work="pgbench", code="pgbench_error", most_bytes=16 * 1024 * 1024)
STOP_GRACE_S = 2.0  # for the server's end, so that it leaves no shared memory


class Line(msgspec.Struct, frozen=True):
    event: str
    end_ms: int = 0
    latencies_us: list[tuple[int, int]] = []
    failed: int = 0
    load_ms: int = 0
    usr_ms: int = 0
    sys_ms: int = 0
    report: str = ""


class Transactions:
    """Completed transactions by latency; exact, because pgbench reports whole microseconds."""

    def __init__(self) -> None:
        self.by_us: Counter[int] = Counter()
        self.failed = 0

    def add(self, line: Line) -> None:
        self.by_us.update(dict(line.latencies_us))
        self.failed += line.failed

    @property
    def count(self) -> int:
        return self.by_us.total()

    @property
    def histogram(self) -> Histogram:
        """In the buckets that all engines use."""
        buckets: Counter[int] = Counter()
        for us, count in self.by_us.items():
            buckets[bucket_ns(1000 * us)] += count
        in_order = sorted(buckets.items())
        return Histogram(latency_ns=tuple(ns for ns, _ in in_order), counts=tuple(count for _, count in in_order))

    def result(self, runtime_ms: int) -> DirectionResult:
        mean_us = sum(us * count for us, count in self.by_us.items()) / self.count
        variance = sum((us - mean_us) ** 2 * count for us, count in self.by_us.items()) / self.count
        return direction_result(
            Direction.TRANSACTION,
            ios=self.count,
            moved_bytes=0,
            runtime_ms=runtime_ms,
            latency=self.histogram,
            moments=Moments(1000 * min(self.by_us), 1000 * mean_us, 1000 * max(self.by_us), 1000 * math.sqrt(variance)),
        )


class Reader:
    """Sends a sample for each line of a second."""

    def __init__(self, sampler: Sampler) -> None:
        self.whole = Transactions()
        self.end: Line | None = None
        self.end_ms = 0
        self._sampler = sampler

    def take(self, line: Line, _text: bytes) -> None:
        if line.event == "end":
            self.end = line
        elif line.event == "loading":
            self._sampler.restart()  # the measured part begins after the last of these lines
        elif line.event == "sample":
            self._take_sample(line)

    def _take_sample(self, line: Line) -> None:
        second = Transactions()
        for counted in (second, self.whole):
            counted.add(line)
        if self._sampler.count == 0:
            self._sampler.began_at(time.monotonic() - line.end_ms / 1000)
        self.end_ms = max(self.end_ms + 1, line.end_ms)
        sample = direction_sample(Direction.TRANSACTION, ios=second.count, moved_bytes=0, latency=second.histogram)
        self._sampler.emit((sample,), self._sampler.began + self.end_ms / 1000)


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. The program reports each second, also while the database is loaded."""
    recipe = running.recipe()
    give_folder(running.stream, running.target)
    child = running.spawn(COMMAND, recipe.job_text)
    running.report_start(time.time(), recipe, command=COMMAND, metrics=METRICS)
    sampler = running.sampler()
    reader = Reader(sampler)
    code = PROGRAM.follow(child, running, Line, reader.take, grace_s=STOP_GRACE_S)
    if code or reader.end is None or not reader.whole.count:
        raise PROGRAM.failed(child)
    measured, end, seconds = reader.whole, reader.end, reader.end_ms / 1000
    return StreamResult(
        stream=running.stream.number,
        started_at=time.time() - (time.monotonic() - sampler.began),
        ended_at=time.time(),
        engine_version=version(),
        exit_code=code,
        stderr=child.stderr(),
        directions=(measured.result(reader.end_ms),),
        usr_cpu_percent=end.usr_ms / seconds / 10,
        sys_cpu_percent=end.sys_ms / seconds / 10,
        device=sampler.whole(),
        samples=sampler.count,
        metrics={
            "tps": measured.count / seconds,
            "load_s": end.load_ms / 1000,
            "failed_transactions": measured.failed,
        },
        attachments=(Attachment(name="pgbench.txt", media_type=MediaType.TEXT, text=end.report),),
    )


def give_folder(stream: Stream, open_target: OpenTarget) -> None:
    """PostgreSQL refuses root, so its folder belongs to another user."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(program.USER)
        os.chown(temporary_folder(stream), user.pw_uid, user.pw_gid, dir_fd=open_target.cwd_fd, follow_symlinks=False)


def offer() -> EngineOffer | None:
    installed = version()
    return EngineOffer(version=installed, features=()) if installed and not missing_user() else None


def installation() -> str:
    """The folder of the programs, which contains their major version, and the time of the last update."""
    folder = program.bin_folder()
    return f"{folder} {os.stat(f'{folder}/postgres').st_mtime_ns} {missing_user()}" if folder else "no PostgreSQL"  # noqa: PTH116


def check() -> Iterator[Check]:
    offered = offer()
    if offered is None:
        why = f"user {missing_user()} does not exist." if missing_user() else "PostgreSQL with pgbench was not found."
        yield Check("pgbench", State.NOTE, why, INSTALLATION)
        return
    yield Check("pgbench", State.OK, f"{offered.version} in {program.bin_folder()}")
