"""What an engine gets to run a stream, and how it sends samples: with the devices' counters and the telemetry."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from worker.contract.items import DeviceSample, DirectionSample, Metric, Sample, Sensor, StreamStarted
from worker.contract.workload import Stream
from worker.engines.base import StreamFailed, last_words
from worker.engines.stopping import SharedStop
from worker.kernel.counters import Counted, has_counted_nothing, read_counters, sample_of_all
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits, Reason, Stopped, follow
from worker.process.scope import Child, Scope
from worker.recipes import opening, render
from worker.recipes.base import Recipe, RecipeError


class Telemetry(Protocol):
    """Telemetry for every sample: values in the order of the sensors."""

    sensors: tuple[Sensor, ...]
    kernel_log: bool

    def restart(self) -> None: ...

    def take(self) -> tuple[float | None, ...]: ...


class Reading(msgspec.Struct, frozen=True):
    """The devices' counters at a moment of the monotonic clock, in s."""

    moment: float
    counters: Counted
    telemetry: tuple[float | None, ...] = ()


class Sampler:
    """Sends the samples of one stream. Moments are of the monotonic clock, in s."""

    def __init__(
        self,
        stream: int,
        devices: tuple[str, ...],
        on_sample: Callable[[Sample], None],
        telemetry: Telemetry | None = None,
    ) -> None:
        self.count = 0
        self._stream = stream
        self._devices = devices
        self._on_sample = on_sample
        self._telemetry = telemetry
        self._offset_ms = 0
        self.restart()

    def restart(self) -> None:
        """Start the measured part now, at the end of the ramp."""
        self.began_at(time.monotonic())
        self._first = self._before = self.read(self.began).counters
        if self._telemetry:
            self._telemetry.restart()

    def began_at(self, moment: float) -> None:
        """Set the real start of the measured part, which the engine's first report shows."""
        self.began = self.ended = moment

    def read(self, moment: float) -> Reading:
        """Read the devices' counters now."""
        return Reading(moment, tuple(map(read_counters, self._devices)))

    def with_telemetry(self, reading: Reading) -> Reading:
        """The reading at which a sample ends. Rates of the telemetry count from one call to the next."""
        return msgspec.structs.replace(reading, telemetry=self._telemetry.take()) if self._telemetry else reading

    def emit(self, directions: tuple[DirectionSample, ...], moment: float) -> None:
        """Send the interval from the last sample to `moment`, as the engine reported it."""
        self._send(directions, self.with_telemetry(self.read(moment)), estimated=False)

    def emit_earlier(self, directions: tuple[DirectionSample, ...], end: Reading, *, estimated: bool = True) -> None:
        """Send the interval from the last sample to a reading. `estimated`: with the engine's I/Os of a longer interval
        placed in it."""
        self._send(directions, end, estimated=estimated)

    def _send(self, directions: tuple[DirectionSample, ...], end: Reading, *, estimated: bool) -> None:
        offset_ms = max(self._offset_ms + 1, round((end.moment - self.began) * 1000))
        sample = Sample(
            stream=self._stream,
            offset_ms=offset_ms,
            length_ms=offset_ms - self._offset_ms,
            at=time.time() - (time.monotonic() - end.moment),
            directions=directions,
            estimated=estimated,
            device=sample_of_all(self._devices, self._before, end.counters),
            telemetry=end.telemetry,
        )
        self.count += 1
        self.ended, self._offset_ms, self._before = end.moment, offset_ms, end.counters
        self._on_sample(sample)

    def device_until(self, end: Reading) -> DeviceSample | None:
        """The devices since the last sample."""
        return sample_of_all(self._devices, self._before, end.counters)

    def whole(self) -> DeviceSample | None:
        """The devices over the measured part."""
        return sample_of_all(self._devices, self._first, self._before)

    @property
    def began_unix(self) -> float:
        """Unix time at which the measured part began."""
        return time.time() - (time.monotonic() - self.began)

    @property
    def length_ms(self) -> int:
        """Of the measured part so far."""
        return self._offset_ms

    @property
    def last(self) -> Reading:
        """The end of the last sample."""
        return Reading(self.ended, self._before)

    @property
    def device_works(self) -> bool:
        """Whether the devices have counted I/O of the measured part. SCSI commands of a program do not count."""
        return not has_counted_nothing(self._first, self._before)


@dataclass(frozen=True, kw_only=True)
class Running:
    """A stream that an engine runs on its target.

    The engine calls `report` once with its start, then with a sample about every second. It ends as soon as
    `cancelled` is set. `telemetry` is read at the same moments as the devices' counters. `stop` is shared by streams
    that one stop rule ends together.
    """

    stream: Stream
    target: OpenTarget
    scope: Scope
    limits: Limits
    cancelled: threading.Event
    report: Callable[[StreamStarted | Sample], None] = lambda _: None
    telemetry: Telemetry | None = None
    stop: SharedStop | None = None

    def recipe(self, renderer: Callable[[Stream], Recipe] = render) -> Recipe:
        """The job with the device path that the guard resolved and holds. Raises StreamFailed."""
        try:
            return renderer(opening(self.stream, self.target.path))
        except RecipeError as error:
            raise StreamFailed(error.code, str(error)) from error

    def spawn(self, command: tuple[str, ...], job_text: str, *, pass_fds: tuple[int, ...] = ()) -> Child:
        """Start a program in the target's directory, with the job as its standard input."""
        return self.scope.spawn(command, cwd_fd=self.target.cwd_fd, stdin_text=job_text, pass_fds=pass_fds)

    def report_start(
        self, at: float, recipe: Recipe, *, command: tuple[str, ...] = (), metrics: tuple[Metric, ...] = ()
    ) -> None:
        """`command`: the program that really runs, if the recipe shows another one. `metrics`: the engine's own."""
        self.report(
            StreamStarted(
                at=at,
                stream=self.stream.number,
                job_text=recipe.job_text,
                command=command or recipe.command,
                metrics=metrics,
                sensors=self.telemetry.sensors if self.telemetry else (),
                kernel_log=self.telemetry.kernel_log if self.telemetry else False,
            )
        )

    def sampler(self) -> Sampler:
        return Sampler(self.stream.number, self.target.devices, self.report, self.telemetry)


# The parts that engines with a program of their own share: its lines, and the ways in which it ends too early.

L = TypeVar("L")


@dataclass(frozen=True)
class OwnProgram:
    """It prints one JSON object per line."""

    name: str  # in messages: The … program
    work: str  # what it does, in messages: the copy
    code: str  # of failures without a code of their own
    most_bytes: int  # of a line

    def _lines(self, data: bytes) -> tuple[list[bytes], bytes]:
        """The complete lines of `data`, and its rest. Raises StreamFailed."""
        *lines, rest = data.split(b"\n")
        if len(rest) > self.most_bytes:
            words = f"The {self.name} program printed a line of more than {self.most_bytes} bytes."
            raise StreamFailed("output_bad", words)
        return lines, rest

    def _decoded(self, text: bytes, line: type[L]) -> L:
        """Raises StreamFailed."""
        try:
            return msgspec.json.decode(text, type=line)
        except msgspec.DecodeError as error:
            raise StreamFailed("output_bad", f"The {self.name} program printed an invalid line: {error}") from error

    def follow(
        self,
        child: Child,
        running: Running,
        line: type[L],
        take: Callable[[L, bytes], None],
        *,
        grace_s: float = 0,
    ) -> int:
        """Gives each line and its text to `take`. Returns the exit status. Raises StreamFailed for a bad line, and if
        the program was ended."""
        rest = b""

        def feed(data: bytes) -> bool:
            nonlocal rest
            texts, rest = self._lines(rest + data)
            for text in texts:
                take(self._decoded(text, line), text)
            return bool(texts)

        try:
            return follow(child, running.scope, running.limits, feed, cancelled=running.cancelled, grace_s=grace_s)
        except Stopped as stopped:
            raise self._stopped(stopped.reason, running.limits) from stopped

    def _stopped(self, reason: Reason, limits: Limits) -> StreamFailed:
        silent = f"The {self.name} program was silent for {limits.silence_s:g} s and was killed."
        late = f"{self._work} did not finish within {limits.total_s:g} s and was killed."
        words = {
            Reason.CANCELLED: ("cancelled", f"The stream was cancelled and {self.work} was killed."),
            Reason.SILENT: ("engine_silent", silent),
            Reason.TIMEOUT: ("engine_timeout", late),
        }
        return StreamFailed(*words.get(reason, (self.code, f"{self._work} was killed: {reason}.")))

    def failed(self, child: Child) -> StreamFailed:
        return StreamFailed(self.code, f"{self._work} failed: {last_words(child.stderr()) or 'it printed no result'}")

    @property
    def _work(self) -> str:
        """At the start of a sentence; the name of a program stays as it is."""
        return self.work.replace("the ", "The ", 1)
