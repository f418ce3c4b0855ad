"""What engines that run sysbench share: the installed program, and how a stream follows it."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from worker.contract.inventory import EngineOffer
from worker.contract.items import Attachment, DirectionResult, MediaType, StreamResult
from worker.engines.base import Check, State, StreamFailed
from worker.engines.running import OwnProgram, Running, Sampler
from worker.engines.sysbench import program
from worker.process.run import ToolError, ask, find
from worker.recipes.base import Recipe
from worker.recipes.sysbench import INSTALLATION

COMMAND = (sys.executable, "-I", "-S", "-E", str(Path(program.__file__)))
PROGRAM = OwnProgram(name="sysbench", work="sysbench", code="sysbench_error", most_bytes=1024 * 1024)
_SECOND = re.compile(r"\[ [0-9]+s \] ")


class Line(msgspec.Struct, frozen=True):
    event: str
    text: str = ""
    load_ms: int = 0
    usr_ms: int = 0
    sys_ms: int = 0


class Measured(msgspec.Struct, frozen=True):
    """sysbench's own text without the lines of seconds, and the processor time of the measured part."""

    report: str
    end: Line
    stderr: str = ""
    started_at: float = 0.0

    def number(self, pattern: str) -> float:
        """The number that the pattern finds in the report. Raises StreamFailed."""
        if match := re.search(pattern, self.report, re.MULTILINE):
            return float(match[1])
        raise StreamFailed("output_bad", f"sysbench printed no line like {pattern}.")

    @property
    def runtime_ms(self) -> int:
        return max(1, round(1000 * self.number(r"^ *total time: *([0-9.]+)s$")))


class _Reader:
    def __init__(self, sampler: Sampler, on_second: Callable[[str], None]) -> None:
        self.lines: list[str] = []
        self.end: Line | None = None
        self._sampler = sampler
        self._on_second = on_second

    def take(self, line: Line, _text: bytes) -> None:
        if line.event == "end":
            self.end = line
        elif line.event == "loading":
            self._sampler.restart()  # the measured part begins after the last of these lines
        else:
            self._take_text(line.text)

    def _take_text(self, text: str) -> None:
        if _SECOND.match(text):
            self._on_second(text)
            return
        self.lines.append(text)
        if text == "Threads started!":
            self._sampler.restart()


def measure(
    running: Running,
    recipe: Recipe,
    sampler: Sampler,
    on_second: Callable[[str], None],
    *,
    command: tuple[str, ...] = COMMAND,
    grace_s: float = 0,
) -> Measured:
    """Run the job with a program; `on_second` gets sysbench's line of each second. Raises StreamFailed."""
    started_at = time.time()
    child = running.spawn(command, recipe.job_text)
    reader = _Reader(sampler, on_second)
    code = PROGRAM.follow(child, running, Line, reader.take, grace_s=grace_s)
    if code or reader.end is None:
        raise PROGRAM.failed(child)
    return Measured("\n".join(reader.lines) + "\n", reader.end, child.stderr(), started_at)


def stream_result(
    running: Running,
    sampler: Sampler,
    measured: Measured,
    *,
    directions: tuple[DirectionResult, ...] = (),
    metrics: Mapping[str, float] = MappingProxyType({}),
    engine_version: str = "",
) -> StreamResult:
    """Call after the last sample."""
    return StreamResult(
        stream=running.stream.number,
        started_at=measured.started_at,
        began_at=sampler.began_unix,
        ended_at=time.time(),
        engine_version=engine_version or version(),
        exit_code=0,
        stderr=measured.stderr,
        directions=directions,
        usr_cpu_percent=100 * measured.end.usr_ms / measured.runtime_ms,
        sys_cpu_percent=100 * measured.end.sys_ms / measured.runtime_ms,
        device=sampler.whole(),
        samples=sampler.count,
        metrics=dict(metrics),
        attachments=(Attachment(name="sysbench.txt", media_type=MediaType.TEXT, text=measured.report),),
    )


def version() -> str:
    """`sysbench 1.0.20`; "" if it is not installed."""
    try:
        words = ask("sysbench", "--version").out.split()  # sysbench 1.0.20
    except ToolError:
        return ""
    return f"sysbench {words[1]}" if len(words) > 1 else ""


def offer() -> EngineOffer | None:
    installed = version()
    return EngineOffer(version=installed, features=()) if installed else None


def installation() -> str:
    """The path of the program, and the time of its last update."""
    path = find(("sysbench",))
    return f"{path} {os.stat(path).st_mtime_ns}" if path else "no sysbench"  # noqa: PTH116


def check() -> Iterator[Check]:
    installed = version()
    if installed:
        yield Check("sysbench", State.OK, installed)
    else:
        yield Check("sysbench", State.NOTE, "sysbench was not found.", INSTALLATION)
