"""Run the measured part of a stream: start fio, follow its output, take its result.

fio does not mark the final dump: it is the last one before the output ends.
"""

import threading
import time
from collections.abc import Callable
from errno import EILSEQ, EOPNOTSUPP

from worker.contract.items import Attachment, MediaType, Sample, StreamResult, StreamStarted
from worker.contract.workload import Stream, TargetKind
from worker.engines.capacity import check_capacity
from worker.engines.device import is_gone
from worker.engines.errors import StreamFailed, errno_words
from worker.engines.fio.gate import gate_of
from worker.engines.fio.live import DumpSampler
from worker.engines.fio.messages import code_of
from worker.engines.fio.output import Dump
from worker.engines.fio.probe import check_features
from worker.engines.fio.version import completion_latency_problem
from worker.engines.fio.watch import KILLED, Ended, StreamLimits, watch
from worker.engines.sampling import Sampler, Telemetry, recipe_at, stream_started
from worker.engines.stopping import SharedStop, StopWatch
from worker.open_target import OpenTarget
from worker.process import Scope
from worker.recipes import render
from worker.recipes.fio import workload_of

STDERR_KEPT = 60_000
JSON_KEPT = 2 * 1024 * 1024
INTERRUPTED = 128  # exit status of fio after SIGINT


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
    stop: SharedStop | None = None,
) -> StreamResult:
    """Run the stream's job at its open_target. Raises StreamFailed; then nothing of fio is left running.

    `telemetry` is read at the same moments as the device's counters.
    """
    check_capacity(stream, open_target)
    check_features(workload_of(stream), open_target.device)
    started_at = scope.starts_at
    with gate_of(scope) as gate:
        recipe = gate.held(recipe_at(stream, open_target, render))
        child = scope.spawn(
            recipe.command,
            cwd_fd=open_target.cwd_fd,
            stdin_text=recipe.job_text,
            pass_fds=(*open_target.pass_fds, *gate.fds),
        )
        on_started(stream_started(started_at, stream, recipe, telemetry))
        scope.await_start(cancelled)
        gate.open()
    work = workload_of(stream)
    watched = StopWatch(work.stop, work.least_runtime_s, on_sample, stop)
    sampler = Sampler(stream.number, open_target.devices, watched.take, telemetry)
    dumps = DumpSampler(work, sampler, alone=stream.target.kind is TargetKind.BLOCK)
    asked = threading.Event()

    def poll() -> None:
        dumps.poll()
        if watched.window and not asked.is_set():
            asked.set()
            child.interrupt()  # fio ends its jobs and prints the final dump

    limits = StreamLimits(cancelled, silence_limit_s, total_limit_s)
    ended = watch(child, scope, limits, dumps.take, poll, dumps.is_frozen)
    ended_at = time.time()
    final = final_dump(ended, stream, open_target, stopped=asked.is_set())
    _refuse_wrong_latency(final, stream)
    directions = dumps.finish_stalled(final) if ended.stalled_s else dumps.finish(final)
    stopped = watched.end(sampler.length_ms)  # also a stalled stream ends the rule of the others
    if ended.stalled_s:
        stopped = None
    is_window = stopped is not None and stopped.reached
    return StreamResult(
        stream=stream.number,
        started_at=started_at,
        began_at=sampler.began_unix,
        ended_at=ended_at,
        engine_version=final.version,
        exit_code=ended.exit_code,
        stderr=ended.stderr[-STDERR_KEPT:],
        directions=watched.results(dumps.kind, dumps.expected) if is_window else directions,
        usr_cpu_percent=final.jobs[0].usr_cpu_percent,
        sys_cpu_percent=final.jobs[0].sys_cpu_percent,
        device=watched.device() if is_window else sampler.whole(),
        samples=sampler.count,
        stopped=stopped,
        stalled_s=ended.stalled_s,
        attachments=(Attachment(name="fio.json", media_type=MediaType.JSON, text=final.text),),
    )


def final_dump(ended: Ended, stream: Stream, open_target: OpenTarget, *, stopped: bool = False) -> Dump:
    """fio's last dump. Raises StreamFailed with fio's message if fio failed, but not if the device froze.

    `stopped`: a stop rule has interrupted fio, which then ends with status 128.
    """
    dump = ended.last
    error = next((job.error for job in dump.jobs if job.error), 0) if dump else 0
    if error or (ended.exit_code and not ended.stalled_s and not (stopped and ended.exit_code == INTERRUPTED)):
        raise _failure(ended, stream, open_target, error)
    if dump is None:
        raise StreamFailed("fio_output_bad", "fio ended without an error, but printed no result.")
    if len(dump.text) > JSON_KEPT:
        raise StreamFailed("fio_output_bad", f"fio's result of {len(dump.text)} bytes exceeds the limit.")
    return dump


def _refuse_wrong_latency(dump: Dump, stream: Stream) -> None:
    """Check again the version that really ran, because fio may have been replaced since it was probed."""
    problem = completion_latency_problem(dump.version, workload_of(stream))
    if problem:
        raise StreamFailed("option_refused", problem)


def _failure(ended: Ended, stream: Stream, open_target: OpenTarget, error: int) -> StreamFailed:
    words = ended.words or "no message"
    if gone := next(filter(is_gone, open_target.devices), ""):  # fio itself would report "No space left on device"
        return StreamFailed("device_gone", f"{gone} disappeared during the job. fio: {words}")
    if error == EOPNOTSUPP and workload_of(stream).uring.hipri:
        return StreamFailed("uring_feature_missing", f"hipri: the device has no poll queues. fio: {words}")
    if error == EILSEQ and workload_of(stream).verifies:
        return StreamFailed(
            "fio_error",
            f"The data that fio read differ from the data that it wrote, or the device reported damaged data: {words}",
        )
    if error:
        return StreamFailed("fio_error", f"fio failed with {errno_words(error)}: {words}")
    if ended.exit_code == KILLED:
        return StreamFailed("fio_error", f"fio was killed, perhaps because it needed too much memory: {words}")
    return StreamFailed(code_of(words), f"fio ended with exit status {ended.exit_code}: {words}")
