"""The middle stages of a trial: prefill, steps, and what is observed before the measurement."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from worker import engines, inventory, recipes
from worker.contract.items import Direction, Observed, Phase, PhaseName, Sample, StreamStarted
from worker.contract.workload import FlushStep, PauseStep, Step, Stream, TargetKind, WriteStep
from worker.drives.records import TrialDrives
from worker.engines.base import StreamFailed, errno_words
from worker.guard.directories import PRIVATE
from worker.kernel.files import unwritten_bytes, unwritten_words
from worker.kernel.targets import OpenTarget
from worker.orders.trial_state import TrialState
from worker.process.scope import Scope
from worker.recipes.base import target_names
from worker.recipes.steps import prepared, render_prefill, step_words
from worker.settings import memory, settings_facts

# Prefill: write files once, completely, before they are first read.


def prefill(state: TrialState) -> None:
    for stream in state.streams:
        _prefill(state, stream)
        state.stop_if_asked()


def _prefill(state: TrialState, stream: Stream) -> None:
    """Write the stream's files unless they are complete; remove files that the trial creates itself."""
    target, files, names = state.targets[stream.number], state.host.files, recipes.render(stream).files
    if target.cwd_fd is not None and stream.workload.creates_files:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=target.cwd_fd)
    if target.cwd_fd is not None and stream.workload.writes:
        for name in names:
            files.forget_other_content(target.cwd_fd, name, stream.workload.buffers)
    if render_prefill(stream) is None or _is_complete(state, stream, names):
        return
    state.enter(PhaseName.PREFILL, **_prefill_fields(stream))
    with _recorded(state, stream, names), state.scope(f"{stream.number}.prefill", target) as scope:
        engines.prefill(state.running(stream, scope), _prefill_progress(state, stream))


def _prefill_fields(stream: Stream) -> dict[str, Any]:
    """Fields of contract.items.Phase that describe a prefill."""
    files = stream.workload.files if recipes.render(stream).files else 0
    return {"stream": stream.number, "files": files, "file_bytes": stream.workload.size_bytes}


def _is_complete(state: TrialState, stream: Stream, names: tuple[str, ...]) -> bool:
    fd, size = state.targets[stream.number].cwd_fd, stream.workload.size_bytes
    if fd is None or size is None or not names:
        return False
    return all(state.host.files.holds(fd, name, size=size, content=stream.workload.buffers) for name in names)


@contextmanager
def _recorded(state: TrialState, stream: Stream, names: tuple[str, ...]) -> Iterator[None]:
    """Record the files as complete if the block inside does not fail."""
    fd, size = state.targets[stream.number].cwd_fd, stream.workload.size_bytes
    if fd is None or size is None:
        yield
        return
    for name in names:
        state.host.files.forget(fd, name)
    yield
    for name in names:
        state.host.files.add(fd, name, size=size, content=stream.workload.buffers)


def _prefill_progress(state: TrialState, stream: Stream) -> Callable[[float], None]:
    emitted_at = time.monotonic()

    def on_progress(percent: float) -> None:
        nonlocal emitted_at
        if time.monotonic() - emitted_at >= PROGRESS_EVERY_S:
            emitted_at = time.monotonic()
            fields = _prefill_fields(stream)
            state.emit(Phase(at=time.time(), name=PhaseName.PREFILL, percent=min(100.0, percent), **fields))

    return on_progress


# The steps in order, each on one target after another.

PROGRESS_EVERY_S = 1.0


def run_steps(state: TrialState) -> None:
    for number, step in enumerate(state.order.steps, start=1):
        if isinstance(step, PauseStep):
            _pause(state, step)
            continue
        for stream in prepared(state.streams):
            state.enter(PhaseName.PREPARE, stream=stream.number, step=step)
            if isinstance(step, FlushStep):
                _flush(stream, state.targets[stream.number])
            else:
                _write(state, step, number, stream)
    if state.step_writers:
        state.watch_drives()


def _write(state: TrialState, step: WriteStep, number: int, stream: Stream) -> None:
    writer = state.step_writer(step, number, stream)
    # The drives of a layout have an unknown state.
    drives = None if state.layouts else TrialDrives(state.host.drives)
    if drives:
        drives.begin([writer], state.targets)
    try:
        with state.scope(f"{stream.number}.step{number}", state.targets[stream.number]) as scope:
            _run_writer(state, step, writer, scope)
    finally:
        if drives:
            drives.end({})


def _run_writer(state: TrialState, step: WriteStep, writer: Stream, scope: Scope) -> None:
    wanted, moved = writer.workload.moved_bytes or 0, 0

    def report(item: StreamStarted | Sample) -> None:
        nonlocal moved
        if isinstance(item, Sample):
            moved += sum(each.bytes for each in item.directions)
            _report_progress(state, step, 100 * moved / wanted, writer.number)

    result = engines.engine_of(writer).run_stream(state.running(writer, scope, report=report))
    written = sum(each.bytes for each in result.directions if each.direction is Direction.WRITE)
    if result.stalled_s:
        raise StreamFailed("engine_silent", f"The target stalled in step {step_words(step)}.")
    if written != wanted:
        words = f"Step {step_words(step)} wrote {written} of {wanted} bytes: {result.stderr[-2000:]}"
        raise StreamFailed("step_failed", words)


def _report_progress(state: TrialState, step: Step, percent: float, stream: int | None = None) -> None:
    state.emit(Phase(at=time.time(), name=PhaseName.PREPARE, step=step, stream=stream, percent=min(100.0, percent)))


def _pause(state: TrialState, step: PauseStep) -> None:
    state.enter(PhaseName.PREPARE, step=step)
    began = time.monotonic()
    while (left := began + step.seconds - time.monotonic()) > 0:
        if state.control.stopped.wait(min(PROGRESS_EVERY_S, left)):
            return
        _report_progress(state, step, 100 * (time.monotonic() - began) / step.seconds)


def _flush(stream: Stream, open_target: OpenTarget) -> None:
    """fsync(2) also flushes the drive's own cache, unless its file system is mounted without barriers."""
    open_target.recheck(programs=False)
    for name in target_names(stream) if stream.target.kind is not TargetKind.BLOCK else (open_target.path,):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=open_target.cwd_fd)
        except FileNotFoundError:
            continue  # not written yet
        try:
            os.fsync(fd)
        except OSError as error:
            raise StreamFailed("step_failed", f"{name} cannot be flushed: {errno_words(error.errno or 0)}.") from error
        finally:
            os.close(fd)


def observe(state: TrialState) -> None:
    """Refuse unwritten files, drop the caches, report the configuration, and check the targets again."""
    for stream in state.streams:
        refuse_unwritten(stream, state.targets[stream.number])
    if state.order.drop_caches:
        memory.drop_caches()
    facts: dict[str, str] = dict(state.drive_states)
    for stream in state.streams:
        facts.update(inventory.observed_facts(state.targets[stream.number], stream))
    facts.update(settings_facts(state.devices))
    if state.layouts:
        facts |= _layout_facts(state)
    state.emit(Observed(at=time.time(), facts=facts))
    for recheck in {target.recheck for target in state.targets.values()}:
        recheck(programs=True)


def _layout_facts(state: TrialState) -> dict[str, str]:
    """One layout of all streams, or the different ones of each."""
    lines = {stream.number: state.layouts[stream.target.id].record.line for stream in state.streams}
    if len({*lines.values()}) == 1:
        return {"layout": lines[state.streams[0].number]}
    return {f"stream.{number}.layout": line for number, line in lines.items()}


# Refuse to measure reads of files that were never written, because such reads do not reach the drive.

MAX_SHARE = 0.01  # of a file that may be unwritten, but at most:
MAX_BYTES = 2**20  # so few are read in milliseconds, wherever they are
_AFTER_PREFILL = (
    "It was written completely, so another program emptied it, or its file system does not store zeroes. Remove it."
)


def refuse_unwritten(stream: Stream, open_target: OpenTarget) -> None:
    """Raises StreamFailed if the stream reads a file with holes or unwritten extents, or whose extents are unknown.

    Call it after the prefill. Files that do not exist yet are written by the engine before it reads them.
    """
    if open_target.cwd_fd is None or not stream.workload.reads:
        return
    for name in target_names(stream):
        try:
            _refuse_file(name, stream, open_target.cwd_fd)
        except OSError as error:  # such as errno 5: the file's dirty pages are written first
            words = f"The extents of {_shown(name, stream)} cannot be read: {errno_words(error.errno or 0)}."
            raise StreamFailed("extents_unreadable", words) from error


def _refuse_file(name: str, stream: Stream, directory_fd: int) -> None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory_fd)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(fd).st_size
        length = min(size, stream.workload.end_bytes or size)
        unwritten = unwritten_bytes(fd, length)
    finally:
        os.close(fd)
    if unwritten > min(MAX_SHARE * length, MAX_BYTES):
        raise StreamFailed("reads_unwritten", _words(name, stream, unwritten, length))


def _shown(name: str, stream: Stream) -> str:
    target = stream.target
    return f"{target.path}/{PRIVATE}/{name}" if target.kind is TargetKind.DIRECTORY else target.path


def _words(name: str, stream: Stream, unwritten: int, length: int) -> str:
    words = unwritten_words(_shown(name, stream), unwritten, length)
    if stream.target.kind is TargetKind.DIRECTORY:
        return f"{words} {_AFTER_PREFILL if stream.workload.prefill else 'Set `prefill` to on.'}"
    return f"{words} Write it first, from start to end, or use a directory target, whose files are written first."
