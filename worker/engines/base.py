"""Failures of streams."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import msgspec

from worker.contract.workload import Stream, TargetKind
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits, Reason, Stopped, follow
from worker.process.scope import Child, Scope


class StreamFailed(Exception):
    """The stream has no result. `code` is one of docs/reference/message-contract.md; the rest is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def errno_words(number: int) -> str:
    """`I/O error (errno 5)`."""
    return f"{os.strerror(number)} (errno {number})"


def last_words(text: str, *, lines: int = 5) -> str:
    """The last lines of a program's output, joined to one line."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(said[-lines:]))


# Results of the checks of `sweetspot-worker doctor`.


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


class Check(msgspec.Struct, frozen=True):
    """The result of one check, and advice."""

    name: str
    state: State
    found: str
    advice: str = ""


# Check that the workload fits its target. Engines may silently use less of a device, or extend a file.


def check_capacity(stream: Stream, open_target: OpenTarget) -> None:
    """Raises StreamFailed if the requested size exceeds the device or file. The guard checks directories."""
    wanted, there = stream.workload.end_bytes, size_of(stream, open_target)
    if wanted is not None and there is not None and wanted > there:
        raise StreamFailed(
            "option_refused",
            f"The workload uses {wanted} bytes, but {stream.target.path} has {there}: use a smaller size.",
        )


def size_of(stream: Stream, open_target: OpenTarget) -> int | None:
    """Bytes of the device or file; None if unknown or unlimited."""
    try:
        if stream.target.kind is TargetKind.BLOCK:
            return open_target.size_bytes
        if stream.target.kind is TargetKind.FILE:
            return os.stat(open_target.path, dir_fd=open_target.cwd_fd).st_size
    except OSError:
        return None
    return None


# The parts that engines with a program of their own share: its lines, and the ways in which it ends too early.

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
