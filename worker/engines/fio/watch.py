"""Follow one fio process until it ends, with its limits."""

import threading
from collections.abc import Callable

import msgspec

from worker.engines.errors import StreamFailed, last_words
from worker.engines.fio.output import BadOutput, Dump, OutputReader
from worker.process import Child, Limits, Reason, Scope, Stopped, follow

KILLED = 128 + 9  # exit status


class StreamLimits(msgspec.Struct, frozen=True):
    cancelled: threading.Event
    silence_s: float
    total_s: float


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
    scope: Scope,
    limits: StreamLimits,
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
        found = reader.feed(data)
        dumps[:] = found[-1:] or dumps
        for dump in found:
            on_dump(dump)
        return bool(found)

    bounds = Limits(total_s=limits.total_s, silence_s=limits.silence_s)
    try:
        code = follow(child, scope, bounds, take, cancelled=limits.cancelled, on_poll=on_poll, grace_s=0)
    except BadOutput as error:
        raise StreamFailed("fio_output_bad", str(error)) from error
    except Stopped as stopped:
        if stopped.reason is Reason.SILENT and dumps and is_frozen():
            return Ended(KILLED, dumps[-1], reader.text, child.stderr(), stalled_s=limits.silence_s)
        raise StreamFailed(*_reason(stopped.reason, limits)) from stopped
    return Ended(code, dumps[-1] if dumps else None, reader.text, child.stderr())


def _reason(reason: Reason, limits: StreamLimits) -> tuple[str, str]:
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
    return "fio_error", "The supervisor of fio was killed, so fio was killed too."
