"""Sampling for all engines: adds the devices' counters and the telemetry of the same interval."""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from worker.contract.items import DeviceSample, Direction, DirectionSample, Sample, Sensor, StreamStarted
from worker.contract.packing import Histogram, pack, supported_percentile
from worker.contract.workload import Stream
from worker.engines.base import StreamFailed
from worker.kernel.counters import Counted, has_counted_nothing, read_counters, sample_of_all
from worker.kernel.targets import OpenTarget
from worker.recipes import opening
from worker.recipes.base import Recipe, RecipeError

NO_LATENCIES = Histogram(latency_ns=(), counts=())


class Telemetry(Protocol):
    """Telemetry for every sample: values in the order of the sensors."""

    sensors: tuple[Sensor, ...]
    kernel_log: bool

    def restart(self) -> None: ...

    def take(self) -> tuple[float | None, ...]: ...


def recipe_at(stream: Stream, open_target: OpenTarget, renderer: Callable[[Stream], Recipe]) -> Recipe:
    """The recipe with the device path that the guard resolved and holds."""
    try:
        return renderer(opening(stream, open_target.path))
    except RecipeError as error:
        raise StreamFailed(error.code, str(error)) from error


def stream_started(at: float, stream: Stream, recipe: Recipe, telemetry: Telemetry | None) -> StreamStarted:
    return StreamStarted(
        at=at,
        stream=stream.number,
        job_text=recipe.job_text,
        command=recipe.command,
        sensors=telemetry.sensors if telemetry else (),
        kernel_log=telemetry.kernel_log if telemetry else False,
    )


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

    def emit_earlier(self, directions: tuple[DirectionSample, ...], end: Reading) -> None:
        """Send the interval from the last sample to a reading, with the engine's I/Os of a longer interval placed in
        it by estimate."""
        self._send(directions, end, estimated=True)

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
