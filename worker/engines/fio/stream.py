"""The measured part of a stream: fio started, followed second by second, its result taken.

The final dump is not marked by fio: it is the last one before its output ends. Every dump is
differenced when it comes, so samples are live; the final dump's difference to the one before
is either what a run with a runtime holds back for it, or a short rest.
"""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from worker.contract.items import DeviceSample, LatencyKind, Sample, Sensor, StreamResult, StreamStarted
from worker.contract.workload import IoEngine, Stream
from worker.engines.capacity import check_capacity
from worker.engines.errors import EOPNOTSUPP, StreamFailed, code_of, errno_words
from worker.engines.fio.device import Counters, is_gone, read_counters, sample_of_all
from worker.engines.fio.difference import Differ, Interval, results_of
from worker.engines.fio.output import Dump
from worker.engines.fio.version import completion_latency_problem
from worker.engines.fio.watch import Ended, StreamLimits, watch
from worker.engines.probe import check_features
from worker.open_target import OpenTarget
from worker.process import Scope
from worker.recipes import Recipe, RecipeError, opening, render

STDERR_KEPT = 60_000
JSON_KEPT = 2 * 1024 * 1024


class Telemetry(Protocol):
    """What else is read for every sample: values in the order of the sensors."""

    sensors: tuple[Sensor, ...]
    kernel_log: bool

    def restart(self) -> None: ...

    def take(self) -> tuple[float | None, ...]: ...


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
) -> StreamResult:
    """Run the stream's job at its open_target. Raises StreamFailed; then nothing of fio is left running.

    `telemetry` is read at the same moments as the device's counters.
    """
    check_capacity(stream, open_target)
    check_features(stream.workload, open_target.device)
    recipe = recipe_at(stream, open_target, render)
    started_at = time.time()
    child = scope.spawn(
        recipe.command, cwd_fd=open_target.cwd_fd, stdin_text=recipe.job_text, pass_fds=open_target.pass_fds
    )
    on_started(_stream_started(started_at, stream, recipe, telemetry))
    sampler = Sampler(stream, open_target.devices, on_sample, telemetry)
    ended = watch(child, scope, StreamLimits(cancelled, silence_limit_s, total_limit_s), sampler.take)
    ended_at = time.time()
    final = final_dump(ended, stream, open_target)
    _refuse_wrong_latency(final, ended, stream)
    sampler.finish(final)
    return StreamResult(
        stream=stream.number,
        started_at=started_at,
        ended_at=ended_at,
        fio_version=final.version,
        exit_code=ended.exit_code,
        fio_json=final.text,
        stderr=ended.stderr[-STDERR_KEPT:],
        directions=results_of(final, sampler.kind),
        usr_cpu_percent=final.jobs[0].usr_cpu_percent,
        sys_cpu_percent=final.jobs[0].sys_cpu_percent,
        device=sampler.whole(),
        samples=sampler.count,
    )


def _stream_started(at: float, stream: Stream, recipe: Recipe, telemetry: Telemetry | None) -> StreamStarted:
    return StreamStarted(
        at=at,
        stream=stream.number,
        job_text=recipe.job_text,
        command=recipe.command,
        sensors=telemetry.sensors if telemetry else (),
        kernel_log=telemetry.kernel_log if telemetry else False,
    )


def recipe_at(stream: Stream, open_target: OpenTarget, renderer: Callable[[Stream], Recipe]) -> Recipe:
    """The recipe with the device's name as the guard resolved and holds it."""
    try:
        return renderer(opening(stream, open_target.path))
    except RecipeError as error:
        raise StreamFailed(error.code, str(error)) from error


class Sampler:
    """Turns dumps into samples, with the counters of the devices over the same interval."""

    def __init__(
        self,
        stream: Stream,
        devices: tuple[str, ...],
        on_sample: Callable[[Sample], None],
        telemetry: Telemetry | None = None,
    ) -> None:
        work = stream.workload
        polled = work.ioengine is IoEngine.IO_URING and work.uring.sqthread_poll
        self.kind = LatencyKind.CLAT if polled else LatencyKind.LAT
        self.count = 0
        self._stream = stream
        self._devices = devices
        self._on_sample = on_sample
        self._telemetry = telemetry
        self._differ = Differ(
            self.kind, ramp=work.ramp_s > 0, runtime_ms=work.runtime_s * 1000 if work.runtime_s else None
        )
        self._first = self._before = self._counters()
        if telemetry:
            telemetry.restart()

    def take(self, dump: Dump) -> None:
        self._emit(self._differ.feed(dump))

    def finish(self, dump: Dump) -> None:
        self._emit(self._differ.feed(dump, final=True))

    def whole(self) -> DeviceSample | None:
        """The device over the measured part."""
        return sample_of_all(self._devices, self._first, self._before)

    def _counters(self) -> tuple[Counters | None, ...]:
        return tuple(map(read_counters, self._devices))

    def _emit(self, interval: Interval | None) -> None:
        after = self._counters()
        if interval is None:
            self._forget_ramp(after)
            return
        sample = Sample(
            stream=self._stream.number,
            second=self.count,
            at=time.time(),
            interval_ms=interval.duration_ms,
            directions=interval.directions,
            device=sample_of_all(self._devices, self._before, after),
            telemetry=self._telemetry.take() if self._telemetry else (),
        )
        self.count += 1
        self._before = after
        self._on_sample(sample)

    def _forget_ramp(self, now: tuple[Counters | None, ...]) -> None:
        """Until the first sample, the device's interval begins with the last dump of the ramp."""
        if self.count == 0 and self._stream.workload.ramp_s and self._differ.ramping:
            self._first = self._before = now
            if self._telemetry:
                self._telemetry.restart()


def final_dump(ended: Ended, stream: Stream, open_target: OpenTarget) -> Dump:
    """fio's last dump, if the run was good; raises StreamFailed with fio's words if not."""
    dump = ended.last
    error = next((job.error for job in dump.jobs if job.error), 0) if dump else 0
    if ended.exit_code or error:
        raise _failure(ended, stream, open_target, error)
    if dump is None:
        raise _failed(ended, "fio_output_bad", "fio ended well but printed no result.")
    if len(dump.text) > JSON_KEPT:
        raise _failed(ended, "fio_output_bad", f"fio's result of {len(dump.text)} bytes is over the limit.")
    return dump


def _refuse_wrong_latency(dump: Dump, ended: Ended, stream: Stream) -> None:
    """The version of a fio that was exchanged since it was probed; usually refused before it starts."""
    problem = completion_latency_problem(dump.version, stream.workload)
    if problem:
        raise _failed(ended, "option_refused", problem)


def _failure(ended: Ended, stream: Stream, open_target: OpenTarget, error: int) -> StreamFailed:
    words = ended.words or "no words"
    if gone := next(filter(is_gone, open_target.devices), ""):  # fio's own words would be "No space left on device"
        return _failed(ended, "fio_error", f"{gone} went away while fio worked on it. fio: {words}")
    if error == EOPNOTSUPP and stream.workload.uring.hipri:
        return _failed(ended, "uring_feature_missing", f"hipri: the device has no poll queues. fio: {words}")
    if error:
        return _failed(ended, "fio_error", f"fio met {errno_words(error)}: {words}")
    return _failed(ended, code_of(words), f"fio ended with exit status {ended.exit_code}: {words}")


def _failed(ended: Ended, code: str, message: str) -> StreamFailed:
    text = ended.last.text if ended.last else ""
    return StreamFailed(
        code, message, stderr=ended.stderr[-STDERR_KEPT:], fio_json=text[:JSON_KEPT], exit_code=ended.exit_code
    )
