"""Prefill: write files completely before they are first used, with progress.

Prefill uses fio for every engine: a host without fio cannot prefill. No other code outside of the folders `fio` does.
"""

import threading
from collections.abc import Callable

from worker.contract.workload import Stream
from worker.engines.errors import StreamFailed
from worker.engines.fio.output import Dump
from worker.engines.fio.stream import final_dump
from worker.engines.fio.watch import StreamLimits, watch
from worker.engines.sampling import recipe_at
from worker.open_target import OpenTarget
from worker.process import Scope
from worker.recipes import Recipe, render_prefill


def prefill(
    stream: Stream,
    open_target: OpenTarget,
    *,
    scope: Scope,
    cancelled: threading.Event,
    silence_limit_s: float,
    total_limit_s: float,
    on_progress: Callable[[float], None],
) -> None:
    """Write the stream's files; `on_progress` gets percent about once per second. Does nothing if no prefill is
    needed. Raises StreamFailed."""
    if render_prefill(stream) is None:
        return
    recipe = recipe_at(stream, open_target, _rendered)
    total_bytes = (stream.workload.size_bytes or 0) * stream.workload.files

    def say(dump: Dump) -> None:
        on_progress(min(100.0, 100 * dump.jobs[0].write.io_bytes / total_bytes))

    child = scope.spawn(
        recipe.command, cwd_fd=open_target.cwd_fd, stdin_text=recipe.job_text, pass_fds=open_target.pass_fds
    )
    ended = watch(child, scope, StreamLimits(cancelled, silence_limit_s, total_limit_s), say)
    written = final_dump(ended, stream, open_target).jobs[0].write.io_bytes
    if written != total_bytes:
        raise StreamFailed("fio_error", f"fio wrote {written} of {total_bytes} bytes of the files: {ended.words}")


def _rendered(stream: Stream) -> Recipe:
    recipe = render_prefill(stream)
    assert recipe is not None
    return recipe
