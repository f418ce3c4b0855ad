"""Run programs of the host without a shell and with limits; kill them with all their descendants."""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from worker.process.run import Limits, Reason, Stopped, follow
from worker.process.scope import open_scope

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
    return next((found for name in names if (found := shutil.which(name, path=path))), "")


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
            limits = Limits(total_s=limit_s, output_bytes=MAX_OUTPUT_BYTES)
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
