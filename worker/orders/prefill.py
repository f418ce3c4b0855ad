"""The prefill stage of a trial: write its files once, completely, before they are first read."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from worker import engines, recipes
from worker.contract.items import Direction, Phase, PhaseName, Sample, StreamStarted
from worker.contract.orders import TrialOrder
from worker.contract.workload import FlushStep, PauseStep, Step, Stream, TargetKind, TargetRef, WriteStep
from worker.drives.records import Drives, TrialDrives
from worker.engines.base import StreamFailed, errno_words, size_of
from worker.engines.complete_files import CompleteFiles
from worker.engines.running import Running
from worker.guard.directories import PRIVATE
from worker.kernel.files import unwritten_bytes, unwritten_words
from worker.kernel.targets import OpenTarget
from worker.orders.context import Emit
from worker.process.run import Control, Limits
from worker.process.scope import Scope
from worker.recipes.base import target_names
from worker.recipes.steps import prepared, render_prefill, step_stream, step_words

# Group a trial's streams by target, and find the stream with the highest demands.


def by_target(streams: tuple[Stream, ...]) -> list[list[Stream]]:
    """Group streams by target: a device can be opened exclusively only once.

    All fields of the target must be the same, because the guard compares only one target of a group with the policy.
    """
    groups: dict[TargetRef, list[Stream]] = {}
    for stream in streams:
        groups.setdefault(stream.target, []).append(stream)
    return list(groups.values())


def strictest(streams: list[Stream]) -> Stream:
    """The stream with the highest demands: if it is allowed, the others are too."""
    return max(
        streams,
        key=lambda stream: (stream.workload.writes, stream.workload.space_bytes),
    )


def prefill_fields(stream: Stream) -> dict[str, Any]:
    """Fields of contract.items.Phase that describe a prefill."""
    files = stream.workload.files if recipes.render(stream).files else 0
    return {"stream": stream.number, "files": files, "file_bytes": stream.workload.size_bytes}


class Prefill:
    """Prefills the files of one trial. `open_scope` opens a scope by name; `enter` starts a phase."""

    def __init__(
        self, order: TrialOrder, files: CompleteFiles, emit: Emit, cancelled: threading.Event, *,
        enter: Callable[..., None],
        open_scope: Callable[[str, OpenTarget], AbstractContextManager[Scope]],
    ) -> None:  # fmt: skip
        self._order = order
        self._files = files
        self._emit = emit
        self._cancelled = cancelled
        self._enter = enter
        self._open_scope = open_scope

    def run(self, stream: Stream, open_target: OpenTarget) -> None:
        """Write the stream's files unless they are complete. Raises StreamFailed, and any exception of `enter`."""
        names = recipes.render(stream).files
        if open_target.cwd_fd is not None and stream.workload.writes:
            for name in names:
                self._files.forget_other_content(open_target.cwd_fd, name, stream.workload.buffers)
        if render_prefill(stream) is None or self._is_complete(stream, open_target, names):
            return
        self._enter(PhaseName.PREFILL, **prefill_fields(stream))
        with (
            self._recorded(stream, open_target, names),
            self._open_scope(f"{stream.number}.prefill", open_target) as scope,
        ):
            limits = Limits(total_s=self._order.total_limit_s, silence_s=self._order.silence_limit_s)
            running = Running(stream=stream, target=open_target, scope=scope, limits=limits, cancelled=self._cancelled)
            engines.prefill(running, self._progress(stream))

    def _is_complete(self, stream: Stream, open_target: OpenTarget, names: tuple[str, ...]) -> bool:
        fd, size = open_target.cwd_fd, stream.workload.size_bytes
        if fd is None or size is None or not names:
            return False
        return all(self._files.holds(fd, name, size=size, content=stream.workload.buffers) for name in names)

    @contextmanager
    def _recorded(self, stream: Stream, open_target: OpenTarget, names: tuple[str, ...]) -> Iterator[None]:
        """Record the files as complete if the block inside does not fail."""
        fd, size = open_target.cwd_fd, stream.workload.size_bytes
        if fd is None or size is None:
            yield
            return
        for name in names:
            self._files.forget(fd, name)
        yield
        for name in names:
            self._files.add(fd, name, size=size, content=stream.workload.buffers)

    def _progress(self, stream: Stream) -> Callable[[float], None]:
        emitted_at = time.monotonic()

        def on_progress(percent: float) -> None:
            nonlocal emitted_at
            if time.monotonic() - emitted_at >= PROGRESS_EVERY_S:
                emitted_at = time.monotonic()
                fields = prefill_fields(stream)
                self._emit(Phase(at=time.time(), name=PhaseName.PREFILL, percent=min(100.0, percent), **fields))

        return on_progress


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


# The preparation stage of a trial: its steps in order, each on one target after another.

PROGRESS_EVERY_S = 1.0
ANY_CAPACITY = 2**30  # where only the kind of access matters, before the target is open


def admissible(order: TrialOrder, streams: list[Stream]) -> list[Stream]:
    """The streams, and those of the steps that write, for the guard: their amounts do not matter."""
    return [*streams, *(step_stream(step, each, ANY_CAPACITY) for each in streams for step in _writing(order))]


def _writing(order: TrialOrder) -> Iterator[WriteStep]:
    return (step for step in order.steps if isinstance(step, WriteStep))


class Steps:
    """The steps of one trial. `open_scope` opens a scope by name; `enter` starts a phase.

    `drives` records what the steps write to block devices; None on a layout, whose drives have an unknown state.
    """

    def __init__(
        self, order: TrialOrder, streams: tuple[Stream, ...], open_targets: Mapping[int, OpenTarget],
        drives: Drives | None, emit: Emit, control: Control, *,
        enter: Callable[..., None],
        open_scope: Callable[[str, OpenTarget], AbstractContextManager[Scope]],
    ) -> None:  # fmt: skip
        self._order = order
        self._streams = prepared(streams)
        self._open_targets = open_targets
        self._drives = drives
        self._emit = emit
        self._control = control
        self._enter = enter
        self._open_scope = open_scope

    @property
    def written(self) -> list[Stream]:
        """The streams of the steps that write."""
        numbered = enumerate(self._order.steps, start=1)
        return [self._writer(step, number, stream) for number, step in numbered if isinstance(step, WriteStep)
                for stream in self._streams]  # fmt: skip

    def run(self) -> None:
        """Raises StreamFailed, and any exception of `enter`."""
        for number, step in enumerate(self._order.steps, start=1):
            if isinstance(step, PauseStep):
                self._pause(step)
                continue
            for stream in self._streams:
                self._enter(PhaseName.PREPARE, stream=stream.number, step=step)
                if isinstance(step, FlushStep):
                    _flush(stream, self._open_targets[stream.number])
                else:
                    self._write(step, number, stream)

    def _writer(self, step: WriteStep, number: int, stream: Stream) -> Stream:
        capacity = size_of(stream, self._open_targets[stream.number]) or 0
        if not stream.workload.size_bytes and not capacity:
            raise StreamFailed("option_refused", f"The capacity of {stream.target.path} is unknown: give a size.")
        return step_stream(step, stream, capacity, number=number)

    def _write(self, step: WriteStep, number: int, stream: Stream) -> None:
        writer, open_target = self._writer(step, number, stream), self._open_targets[stream.number]
        recorded = TrialDrives(self._drives) if self._drives else None
        if recorded:
            recorded.begin([writer], self._open_targets)
        try:
            with self._open_scope(f"{stream.number}.step{number}", open_target) as scope:
                self._run(step, writer, open_target, scope)
        finally:
            if recorded:
                recorded.end({})

    def _run(self, step: WriteStep, writer: Stream, open_target: OpenTarget, scope: Scope) -> None:
        wanted = writer.workload.moved_bytes or 0
        result = engines.engine_of(writer).run_stream(
            Running(
                stream=writer,
                target=open_target,
                scope=scope,
                limits=Limits(total_s=self._order.total_limit_s, silence_s=self._order.silence_limit_s),
                cancelled=self._control.stopped,
                report=self._progress(step, writer.number, wanted),
            )
        )
        written = sum(each.bytes for each in result.directions if each.direction is Direction.WRITE)
        if result.stalled_s:
            raise StreamFailed("engine_silent", f"The target stalled in step {step_words(step)}.")
        if written != wanted:
            words = f"Step {step_words(step)} wrote {written} of {wanted} bytes: {result.stderr[-2000:]}"
            raise StreamFailed("step_failed", words)

    def _progress(self, step: Step, stream: int, wanted: int) -> Callable[[StreamStarted | Sample], None]:
        moved = 0

        def report(item: StreamStarted | Sample) -> None:
            nonlocal moved
            if isinstance(item, Sample):
                moved += sum(each.bytes for each in item.directions)
                self._tell(step, 100 * moved / wanted, stream)

        return report

    def _tell(self, step: Step, percent: float, stream: int | None = None) -> None:
        fields = {"name": PhaseName.PREPARE, "step": step, "stream": stream}
        self._emit(Phase(at=time.time(), percent=min(100.0, percent), **fields))  # type: ignore[arg-type]

    def _pause(self, step: PauseStep) -> None:
        self._enter(PhaseName.PREPARE, step=step)
        began = time.monotonic()
        while (left := began + step.seconds - time.monotonic()) > 0:
            if self._control.stopped.wait(min(PROGRESS_EVERY_S, left)):
                return
            self._tell(step, 100 * (time.monotonic() - began) / step.seconds)


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
