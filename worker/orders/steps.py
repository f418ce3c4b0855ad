"""The preparation stage of a trial: its steps in order, each on one target after another."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

from worker import engines, process, recipes
from worker.contract.items import Direction, Phase, PhaseName, Sample
from worker.contract.orders import TrialOrder
from worker.contract.steps import FlushStep, PauseStep, Step, WriteStep
from worker.contract.workload import Stream, TargetKind
from worker.control import Control
from worker.drives.records import Drives, TrialDrives
from worker.engines.capacity import size_of
from worker.engines.errors import StreamFailed, errno_words
from worker.open_target import OpenTarget
from worker.orders.context import Emit
from worker.recipes.names import target_names

PROGRESS_EVERY_S = 1.0
ANY_CAPACITY = 2**30  # where only the kind of access matters, before the target is open


def admissible(order: TrialOrder, streams: list[Stream]) -> list[Stream]:
    """The streams, and those of the steps that write, for the guard: their amounts do not matter."""
    return [*streams, *(recipes.step_stream(step, each, ANY_CAPACITY) for each in streams for step in _writing(order))]


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
        open_scope: Callable[[str, OpenTarget], AbstractContextManager[process.Scope]],
    ) -> None:  # fmt: skip
        self._order = order
        self._streams = recipes.prepared(streams)
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
        return recipes.step_stream(step, stream, capacity, number=number)

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

    def _run(self, step: WriteStep, writer: Stream, open_target: OpenTarget, scope: process.Scope) -> None:
        wanted = writer.workload.moved_bytes or 0
        result = engines.engine_of(writer).run_stream(
            writer,
            open_target,
            scope=scope,
            cancelled=self._control.stopped,
            silence_limit_s=self._order.silence_limit_s,
            total_limit_s=self._order.total_limit_s,
            on_started=lambda _: None,
            on_sample=self._progress(step, writer.number, wanted),
        )
        written = sum(each.bytes for each in result.directions if each.direction is Direction.WRITE)
        if result.stalled_s:
            raise StreamFailed("engine_silent", f"The target stalled in step {recipes.step_words(step)}.")
        if written != wanted:
            words = f"Step {recipes.step_words(step)} wrote {written} of {wanted} bytes: {result.stderr[-2000:]}"
            raise StreamFailed("step_failed", words)

    def _progress(self, step: Step, stream: int, wanted: int) -> Callable[[Sample], None]:
        moved = 0

        def on_sample(sample: Sample) -> None:
            nonlocal moved
            moved += sum(each.bytes for each in sample.directions)
            self._tell(step, 100 * moved / wanted, stream)

        return on_sample

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
