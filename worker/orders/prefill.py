"""The prefill stage of a trial: write its files once, completely, before they are first read."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from worker import engines, process, recipes
from worker.contract.items import Phase, PhaseName
from worker.contract.orders import TrialOrder
from worker.contract.workload import Stream
from worker.engines.complete_files import CompleteFiles
from worker.open_target import OpenTarget
from worker.orders.context import Emit
from worker.orders.streams import prefill_fields

PROGRESS_EVERY_S = 1.0


class Prefill:
    """Prefills the files of one trial. `open_scope` opens a scope by name; `enter` starts a phase."""

    def __init__(
        self, order: TrialOrder, files: CompleteFiles, emit: Emit, cancelled: threading.Event, *,
        enter: Callable[..., None],
        open_scope: Callable[[str, OpenTarget], AbstractContextManager[process.Scope]],
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
        if recipes.render_prefill(stream) is None or self._is_complete(stream, open_target, names):
            return
        self._enter(PhaseName.PREFILL, **prefill_fields(stream))
        with (
            self._recorded(stream, open_target, names),
            self._open_scope(f"{stream.number}.prefill", open_target) as scope,
        ):
            engines.prefill(
                stream,
                open_target,
                scope=scope,
                cancelled=self._cancelled,
                silence_limit_s=self._order.silence_limit_s,
                total_limit_s=self._order.total_limit_s,
                on_progress=self._progress(stream),
            )

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
