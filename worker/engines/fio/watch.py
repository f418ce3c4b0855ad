"""One fio process from its start to its end, watched: silence, total time, cancellation."""

import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from worker.engines.errors import StreamFailed, last_words
from worker.engines.fio.output import BadOutput, Dump, OutputReader
from worker.process import WARDEN_DIED, Child, Scope

LOOK_S = 0.25  # how often the cancel event and the limits are looked at; output wakes us at once
END_LIMIT_S = 10.0


class Limits(msgspec.Struct, frozen=True):
    cancelled: threading.Event
    silence_s: float
    total_s: float


class Ended(msgspec.Struct, frozen=True):
    exit_code: int
    last: Dump | None
    stdout_text: str  # what was no JSON
    stderr: str

    @property
    def words(self) -> str:
        return last_words(f"{self.stdout_text}\n{self.stderr}")


def watch(child: Child, scope: Scope, limits: Limits, on_dump: Callable[[Dump], None]) -> Ended:
    """Follow it to its end; `on_dump` gets every dump as it comes. Raises StreamFailed after killing the scope."""
    reader = OutputReader()
    last: Dump | None = None
    try:
        for dump in _dumps(child, reader, limits):
            last = dump
            on_dump(dump)
        return Ended(_exit_code(child), last, reader.text, child.stderr())
    except StreamFailed as failed:
        scope.kill()
        failed.stderr = child.stderr()
        failed.fio_json = last.text if last else ""
        raise
    except BaseException:
        scope.kill()
        raise


def _dumps(child: Child, reader: OutputReader, limits: Limits) -> Iterator[Dump]:
    started = heard = time.monotonic()
    while True:
        _check(limits, started, heard)
        data = child.read(LOOK_S)
        if data == b"":
            return
        dumps = _feed(reader, data) if data else []
        if dumps:
            heard = time.monotonic()
        yield from dumps


def _feed(reader: OutputReader, data: bytes) -> list[Dump]:
    try:
        return reader.feed(data)
    except BadOutput as error:
        raise StreamFailed("fio_output_bad", str(error)) from error


def _check(limits: Limits, started: float, heard: float) -> None:
    now = time.monotonic()
    if limits.cancelled.is_set():
        raise StreamFailed("cancelled", "The stream was cancelled and fio was killed.")
    if now - heard > limits.silence_s:
        raise StreamFailed(
            "fio_silent",
            f"fio has said nothing for {limits.silence_s:g} s, though it reports every second, and was killed. "
            "The device may hang (see the kernel log), or fio does.",
        )
    if now - started > limits.total_s:
        raise StreamFailed("fio_timeout", f"fio was not done after {limits.total_s:g} s, the limit, and was killed.")


def _exit_code(child: Child) -> int:
    """fio has closed its output, so it is about to end."""
    code = child.wait(END_LIMIT_S)
    if code is None:
        raise StreamFailed("fio_silent", f"fio closed its output and did not end within {END_LIMIT_S:g} s.")
    if code == WARDEN_DIED:
        raise StreamFailed("fio_error", "The process that watches over fio was killed, so fio was killed too.")
    return code
