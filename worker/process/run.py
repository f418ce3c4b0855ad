"""Follow a child program until it ends, with limits, and run the host's tools.

spawned in a scope ─► output ─► end of output ─► Ended(exit code)
                        └── a limit, or cancelled ─► TERM ─(grace)─► KILL ─► Stopped(reason)
"""

import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

import msgspec

from worker.process.scope import SUPERVISOR_DIED, Child, Scope, open_scope

POLL_S = 0.25  # how often limits and cancellation are checked; output wakes the reader at once
TERM_GRACE_S = 1.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    total_s: float
    silence_s: float = math.inf  # without output that `on_output` accepts as a sign of life
    output_bytes: float = math.inf  # of standard output
    error_bytes: float = 64 * 1024 * 1024  # of standard error, which is kept in a file until the program ends


class Reason(StrEnum):
    """Why a program was stopped."""

    CANCELLED = "cancelled"
    SILENT = "silent"
    TIMEOUT = "timeout"
    TOO_MUCH_OUTPUT = "too much output"
    SUPERVISOR_DIED = "supervisor died"


class Stopped(Exception):
    """The worker stopped the program; none of its processes is left."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def follow(
    child: Child,
    scope: Scope,
    limits: Limits,
    on_output: Callable[[bytes], bool],
    *,
    cancelled: threading.Event | None = None,
    on_poll: Callable[[], None] = lambda: None,
    grace_s: float = TERM_GRACE_S,
) -> int:
    """Return the exit status, 128 + N if signal N ended the program. Raises Stopped.

    `on_output` gets every piece of standard output and returns whether it is a sign of life. `on_poll` is called at
    least every `POLL_S`.
    """
    watch = _Watch(child, limits, cancelled)
    try:
        while (data := child.read(watch.wait_s())) != b"":
            if data:
                watch.received(len(data), alive=on_output(data))
            on_poll()
            watch.check()
        while (code := child.wait(watch.wait_s())) is None:
            on_poll()
            watch.check()
    except BaseException as error:
        _stop(child, scope, grace_s if isinstance(error, Stopped) else 0.0)
        raise
    if code == SUPERVISOR_DIED:
        raise Stopped(Reason.SUPERVISOR_DIED)
    return code


class _Watch:
    """The limits of one program."""

    def __init__(self, child: Child, limits: Limits, cancelled: threading.Event | None) -> None:
        self._child = child
        self._limits = limits
        self._cancelled = cancelled
        self._started = self._heard = time.monotonic()
        self._bytes = 0

    def wait_s(self) -> float:
        return max(0.0, min(POLL_S, self._started + self._limits.total_s - time.monotonic()))

    def received(self, count: int, *, alive: bool) -> None:
        self._bytes += count
        if alive:
            self._heard = time.monotonic()

    def check(self) -> None:
        now = time.monotonic()
        if self._cancelled is not None and self._cancelled.is_set():
            raise Stopped(Reason.CANCELLED)
        if now - self._heard > self._limits.silence_s:
            raise Stopped(Reason.SILENT)
        if now - self._started > self._limits.total_s:
            raise Stopped(Reason.TIMEOUT)
        if self._bytes > self._limits.output_bytes or self._child.stderr_bytes > self._limits.error_bytes:
            raise Stopped(Reason.TOO_MUCH_OUTPUT)


def _stop(child: Child, scope: Scope, grace_s: float) -> None:
    """Send TERM, then KILL to the remaining processes. Output in the meantime is dropped."""
    give_up_at = time.monotonic() + grace_s
    if grace_s:
        child.terminate()
    while time.monotonic() < give_up_at and child.read(POLL_S) != b"":
        continue
    scope.kill()


# Run programs of the host without a shell and with limits; kill them with all their descendants.

LIMIT_S = 10.0
MAX_OUTPUT_BYTES = 4 * 1024 * 1024
# Searched after PATH: install directories of the vendors' controller tools.
_PLACES = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin", "/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli",
    "/opt/MegaRAID/MegaCli", "/opt/smartstorageadmin/ssacli/bin", "/opt/hp/hpssacli/bld",
)  # fmt: skip


class ToolOutput(msgspec.Struct, frozen=True):
    """What a program printed, and its exit status."""

    exit_code: int
    out: str
    err: str


class ToolError(Exception):
    """The program is missing, exceeded a limit, or its output cannot be read."""


class ToolMissing(ToolError):
    """The program is not installed on this host."""


def find(names: Iterable[str]) -> str:
    """Path of the first program that is installed; "" if none is."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *_PLACES))
    return next((executable for name in names if (executable := shutil.which(name, path=path))), "")


def ask(
    program: str,
    *arguments: str,
    limit_s: float = LIMIT_S,
    state: Path | None = None,
    stdin_text: str = "",
    cwd_fd: int | None = None,
    merge_stderr: bool = False,
    on_poll: Callable[[str], None] | None = None,
    drives: tuple[str, ...] = (),
) -> ToolOutput:
    """Run a program until it ends. Raises ToolError. The caller checks the exit status.

    `on_poll` is called with the output so far, several times per second. `state`: the state directory for a record of
    the running program, so that the next start of the worker kills the program after a crash. `drives`: stable ids of
    the drives that are quarantined if the program cannot be killed.
    """
    path = find((program,))
    name = Path(program).name
    if not path:
        raise ToolMissing(f"{name} is not installed on this host.")
    out = bytearray()

    def keep(data: bytes) -> bool:
        out.extend(data)
        return True

    def poll() -> None:
        if on_poll is not None:
            on_poll(out.decode(errors="replace"))

    with open_scope(state, f"tool.{name[:40]}.{os.getpid()}.{time.monotonic_ns()}", drives=drives) as scope:
        child = scope.spawn((path, *arguments), cwd_fd=cwd_fd, stdin_text=stdin_text, merge_stderr=merge_stderr)
        try:
            limits = Limits(total_s=limit_s, output_bytes=MAX_OUTPUT_BYTES, error_bytes=MAX_OUTPUT_BYTES)
            code = follow(child, scope, limits, keep, on_poll=poll)
        except Stopped as stopped:
            raise ToolError(_words(name, stopped.reason, limit_s)) from stopped
        return ToolOutput(code, out.decode(errors="replace"), child.stderr())


def _words(name: str, reason: Reason, limit_s: float) -> str:
    if reason is Reason.TOO_MUCH_OUTPUT:
        return f"{name} printed more than {MAX_OUTPUT_BYTES} bytes and was killed."
    if reason is Reason.SUPERVISOR_DIED:
        return f"{name} was killed together with its supervisor."
    return f"{name} did not finish within {limit_s:g} s and was killed."
