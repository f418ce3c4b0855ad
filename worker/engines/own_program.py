"""The parts that engines with a program of their own share: its lines, and the ways in which it ends too early."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from worker.engines.errors import StreamFailed, last_words
from worker.process import Child, Limits, Reason, Scope, Stopped, follow

L = TypeVar("L")


@dataclass(frozen=True)
class OwnProgram:
    """It prints one JSON object per line."""

    name: str  # in messages: The … program
    work: str  # what it does, in messages: the copy
    code: str  # of failures without a code of their own
    most_bytes: int  # of a line

    def lines(self, data: bytes) -> tuple[list[bytes], bytes]:
        """The complete lines of `data`, and its rest. Raises StreamFailed."""
        *lines, rest = data.split(b"\n")
        if len(rest) > self.most_bytes:
            words = f"The {self.name} program printed a line of more than {self.most_bytes} bytes."
            raise StreamFailed("output_bad", words)
        return lines, rest

    def decoded(self, text: bytes, line: type[L]) -> L:
        """Raises StreamFailed."""
        try:
            return msgspec.json.decode(text, type=line)
        except msgspec.DecodeError as error:
            raise StreamFailed("output_bad", f"The {self.name} program printed an invalid line: {error}") from error

    def follow(
        self,
        child: Child,
        scope: Scope,
        limits: Limits,
        feed: Callable[[bytes], bool],
        cancelled: threading.Event,
        *,
        grace_s: float = 0,
    ) -> int:
        """Its exit status. Raises StreamFailed if it was ended."""
        try:
            return follow(child, scope, limits, feed, cancelled=cancelled, grace_s=grace_s)
        except Stopped as stopped:
            raise self._stopped(stopped.reason, limits) from stopped

    def _stopped(self, reason: Reason, limits: Limits) -> StreamFailed:
        silent = f"The {self.name} program was silent for {limits.silence_s:g} s and was killed."
        late = f"{self._work} did not finish within {limits.total_s:g} s and was killed."
        words = {
            Reason.CANCELLED: ("cancelled", f"The stream was cancelled and {self.work} was killed."),
            Reason.SILENT: ("engine_silent", silent),
            Reason.TIMEOUT: ("engine_timeout", late),
        }
        return StreamFailed(*words.get(reason, (self.code, f"{self._work} was killed: {reason}.")))

    def failed(self, child: Child) -> StreamFailed:
        return StreamFailed(self.code, f"{self._work} failed: {last_words(child.stderr()) or 'it printed no result'}")

    @property
    def _work(self) -> str:
        """At the start of a sentence; the name of a program stays as it is."""
        return self.work.replace("the ", "The ", 1)
