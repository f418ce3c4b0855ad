"""Files are written whole before they are first used, with progress."""

import threading
from collections.abc import Callable

from worker.contract.workload import Leg
from worker.engines.errors import LegFailed
from worker.engines.fio.leg import final_dump, recipe_at
from worker.engines.fio.output import Dump
from worker.engines.fio.watch import Limits, watch
from worker.place import Place
from worker.process import Scope
from worker.recipes import Recipe, render_prefill


def prefill(
    leg: Leg,
    place: Place,
    *,
    scope: Scope,
    cancelled: threading.Event,
    silence_limit_s: float,
    total_limit_s: float,
    on_progress: Callable[[float], None],
) -> None:
    """Write the leg's files; `on_progress` gets percent about every second. Does nothing where nothing is to be
    written. Raises LegFailed."""
    if render_prefill(leg) is None:
        return
    recipe = recipe_at(leg, place, _rendered)
    total_bytes = (leg.workload.size_bytes or 0) * leg.workload.files

    def say(dump: Dump) -> None:
        on_progress(min(100.0, 100 * dump.jobs[0].write.io_bytes / total_bytes))

    child = scope.spawn(recipe.command, cwd_fd=place.cwd_fd, stdin_text=recipe.job_text, pass_fds=place.pass_fds)
    ended = watch(child, scope, Limits(cancelled, silence_limit_s, total_limit_s), say)
    written = final_dump(ended, leg, place).jobs[0].write.io_bytes
    if written != total_bytes:
        raise LegFailed("fio_error", f"fio wrote {written} of {total_bytes} bytes of the files: {ended.words}")


def _rendered(leg: Leg) -> Recipe:
    recipe = render_prefill(leg)
    assert recipe is not None
    return recipe
