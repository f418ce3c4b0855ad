"""The fio engine: start fio, follow its output within limits, take its result; prefill files for every engine.

`output` reads fio's dumps, `live` makes samples of them, `probe` finds out what the installed fio can do.

fio does not mark the final dump: it is the last one before the output ends.
"""

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from errno import EILSEQ, EOPNOTSUPP
from pathlib import Path

import msgspec

from worker.contract.items import Attachment, MediaType, StreamResult
from worker.contract.workload import MIB, IoEngine, Stream
from worker.engines.base import StreamFailed, check_capacity, errno_words, last_words
from worker.engines.fio.live import DumpSampler
from worker.engines.fio.output import BadOutput, Dump, OutputReader
from worker.engines.fio.probe import check as check
from worker.engines.fio.probe import check_features, completion_latency_problem
from worker.engines.fio.probe import installation as installation
from worker.engines.fio.probe import offer as offer
from worker.engines.running import Running, Sampler
from worker.engines.stopping import StopWatch
from worker.kernel import sysfs
from worker.kernel.counters import is_gone
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits, Reason, Stopped, follow
from worker.process.scope import Child, Scope
from worker.recipes.base import Recipe
from worker.recipes.fio import workload_of
from worker.recipes.steps import render_prefill

KILLED = 128 + 9  # exit status


class Ended(msgspec.Struct, frozen=True):
    exit_code: int
    last: Dump | None
    stdout_text: str  # standard output that was not JSON
    stderr: str
    stalled_s: float = 0  # of a device that is frozen: fio was killed

    @property
    def words(self) -> str:
        return last_words(f"{self.stdout_text}\n{self.stderr}")


def watch(
    child: Child,
    running: Running,
    on_dump: Callable[[Dump], None],
    on_poll: Callable[[], None] = lambda: None,
    is_frozen: Callable[[], bool] = lambda: False,
) -> Ended:
    """Follow fio to its end; `on_dump` gets every dump as it arrives, `on_poll` is called every 0.25 s.

    Raises StreamFailed after killing the scope. If the device `is_frozen` and fio has measured something, silence is
    not a failure: `Ended.stalled_s` is then the limit. Only complete dumps are a sign of life. fio is killed at once,
    and writes nothing more.
    """
    reader = OutputReader()
    dumps: list[Dump] = []

    def take(data: bytes) -> bool:
        complete = reader.feed(data)
        dumps[:] = complete[-1:] or dumps
        for dump in complete:
            on_dump(dump)
        return bool(complete)

    limits = running.limits
    try:
        code = follow(child, running.scope, limits, take, cancelled=running.cancelled, on_poll=on_poll, grace_s=0)
    except BadOutput as error:
        raise StreamFailed("fio_output_bad", str(error)) from error
    except Stopped as stopped:
        if stopped.reason is Reason.SILENT and dumps and is_frozen():
            return Ended(KILLED, dumps[-1], reader.text, child.stderr(), stalled_s=limits.silence_s)
        raise StreamFailed(*_reason(stopped.reason, limits)) from stopped
    return Ended(code, dumps[-1] if dumps else None, reader.text, child.stderr())


def _reason(reason: Reason, limits: Limits) -> tuple[str, str]:
    """Code and message."""
    if reason is Reason.CANCELLED:
        return "cancelled", "The stream was cancelled and fio was killed."
    if reason is Reason.SILENT:
        return (
            "fio_silent",
            f"fio, which reports every second, printed nothing for {limits.silence_s:g} s and was killed. "
            "The device or fio may hang: check the kernel log.",
        )
    if reason is Reason.TIMEOUT:
        return "fio_timeout", f"fio did not finish within its limit of {limits.total_s:g} s and was killed."
    if reason is Reason.TOO_MUCH_OUTPUT:
        return "fio_error", f"fio printed more than {limits.error_bytes / MIB:g} MiB of errors and was killed."
    return "fio_error", "The supervisor of fio was killed, so fio was killed too."


# The codes of fio's error messages.

# Pattern in fio's output -> code of the failure.
_CODES = (
    (
        re.compile(r"Bad option|[Ff]ailed parsing|not a valid|out of range|unrecognized option|job .* dropped"),
        "option_refused",
    ),
    (re.compile(r"engine \S+ not loadable|failed to load engine|io_queue_init|queue_init"), "engine_missing"),
)


def code_of(output: str) -> str:
    return next((code for pattern, code in _CODES if pattern.search(output)), "fio_error")


# Hold fio's jobs right before their first I/O, for the common start of a trial on several hosts.
#
# From its launch to its first I/O, fio needs up to a second, and more on a busy host: it calibrates its clock, starts
# its jobs and waits for them in steps of 100 ms. So fio is launched early. Each job is prepared completely, and then
# runs `exec_prerun`, a shell that waits for a line in a pipe. fio starts a job's clock after that.

MAX_JOBS = 4096  # one line for each; they fit into a pipe


class Gate:
    """Holds the jobs of a program that may not start at once. `fds` must be inherited by fio."""

    def __init__(self, fds: tuple[int, ...] = (), writer: int | None = None) -> None:
        self.fds = fds
        self._writer = writer

    def held(self, recipe: Recipe) -> Recipe:
        """The recipe with jobs that wait. Without a line, exec_prerun fails and so does the job.

        fio appends a redirection to the command, into a file in the target directory. It belongs to `exit 1`, so the
        file is not created.
        """
        if not self.fds:
            return recipe
        wait = f"read line </proc/self/fd/{self.fds[0]} || exit 1"
        return msgspec.structs.replace(recipe, job_text=f"[global]\nexec_prerun={wait}\n{recipe.job_text}")

    def open(self) -> None:
        if self._writer is not None:
            os.write(self._writer, b"\n" * MAX_JOBS)


@contextmanager
def gate_of(scope: Scope) -> Iterator[Gate]:
    """The gate of the scope's program; nothing is held if the program may start at once."""
    if not scope.not_before:
        yield Gate()
        return
    reader, writer = os.pipe()
    try:
        yield Gate((reader,), writer)
    finally:
        os.close(reader)
        os.close(writer)


STDERR_KEPT = 60_000
JSON_KEPT = 2 * 1024 * 1024
INTERRUPTED = 128  # exit status of fio after SIGINT


def run_stream(running: Running) -> StreamResult:
    """Raises StreamFailed; then nothing of fio is left running."""
    stream, target, scope = running.stream, running.target, running.scope
    work = workload_of(stream)
    check_capacity(stream, target)
    check_features(work, sysfs.name_of(target.numbers) if target.numbers else target.device)
    if work.ioengine is IoEngine.IO_URING_CMD:
        running = replace(running, target=msgspec.structs.replace(target, path=generic_path(target.device)))
    started_at = scope.starts_at
    with gate_of(scope) as gate:
        recipe = gate.held(running.recipe())
        child = running.spawn(recipe.command, recipe.job_text, pass_fds=(*target.pass_fds, *gate.fds))
        running.report_start(started_at, recipe)
        scope.await_start(running.cancelled)
        gate.open()
    watched = StopWatch(work.stop, work.least_runtime_s, running.report, running.stop, most_s=work.runtime_s or 0)
    counted = target.devices if work.is_counted else ()
    sampler = Sampler(stream.number, counted, watched.take, running.telemetry)
    dumps = DumpSampler(work, sampler)
    interrupted = threading.Event()

    def poll() -> None:
        dumps.poll()
        if watched.window and not interrupted.is_set():
            interrupted.set()
            child.interrupt()  # fio ends its jobs and prints the final dump

    ended = watch(child, running, dumps.take, poll, dumps.is_frozen)
    ended_at = time.time()
    final = final_dump(ended, stream, target, stopped=interrupted.is_set())
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


def generic_path(device: str) -> str:
    """The node of the character device that passes commands to the namespace of a held NVMe drive. Raises StreamFailed
    if the node is that of another device."""
    name = sysfs.nvme_generic(device)
    path, numbers = Path("/dev", name), sysfs.text(sysfs.SYS / "class/nvme-generic" / name / "dev")
    try:
        facts = path.lstat()
    except OSError as error:
        raise StreamFailed("option_refused", f"io_uring_cmd: {path}: {error.strerror}.") from error
    if not stat.S_ISCHR(facts.st_mode) or sysfs.numbers_of(facts.st_rdev) != numbers:
        raise StreamFailed("option_refused", f"io_uring_cmd: {path} is not the generic device of {device}.")
    return str(path)


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


# Prefill: write files completely before they are first used, with progress.
#
# Prefill uses fio for every engine: a host without fio cannot prefill. No other code outside of the folders `fio`
# does.


def prefill(running: Running, on_progress: Callable[[float], None]) -> None:
    """Write the stream's files; `on_progress` gets percent about once per second. Does nothing if no prefill is
    needed. Raises StreamFailed."""
    stream = running.stream
    if render_prefill(stream) is None:
        return
    recipe = running.recipe(_rendered)
    total_bytes = (stream.workload.size_bytes or 0) * stream.workload.files

    def say(dump: Dump) -> None:
        on_progress(min(100.0, 100 * dump.jobs[0].write.io_bytes / total_bytes))

    child = running.spawn(recipe.command, recipe.job_text, pass_fds=running.target.pass_fds)
    ended = watch(child, running, say)
    written = final_dump(ended, stream, running.target).jobs[0].write.io_bytes
    if written != total_bytes:
        raise StreamFailed("fio_error", f"fio wrote {written} of {total_bytes} bytes of the files: {ended.words}")


def _rendered(stream: Stream) -> Recipe:
    recipe = render_prefill(stream)
    assert recipe is not None
    return recipe
