"""A program and its supervisor, from the worker's side: output, end, exit status."""

import contextlib
import fcntl
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from worker.process import supervisor

PIPE_BYTES = 1024 * 1024  # so that a slow reader never blocks the program's statistics
READ_BYTES = 256 * 1024
STDERR_KEPT_BYTES = 60 * 1024
END_LIMIT_S = 10.0
SUPERVISOR_DIED = -9


class Child:
    """Created by `start`. Only one thread may call `read`; any thread may call `hang_up`."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, stdout: int, stderr: IO[bytes]
    ) -> None:
        self._process = process
        self._control = control
        self._stdout = stdout
        self._stderr = stderr
        self._exit_code: int | None = None

    def read(self, timeout_s: float) -> bytes | None:
        """The next output; b"" at its end, None after the time limit."""
        readable, _, _ = select.select([self._stdout], [], [], timeout_s)
        return os.read(self._stdout, READ_BYTES) if readable else None

    def wait(self, timeout_s: float = END_LIMIT_S) -> int | None:
        """The exit status, 128 + N after signal N, or SUPERVISOR_DIED; None after the time limit."""
        if self._exit_code is None:
            readable, _, _ = select.select([self._control], [], [], timeout_s)
            if not readable:
                return None
            text = self._control.recv(64)
            self._exit_code = int(text) if text else SUPERVISOR_DIED
        return self._exit_code

    def stderr(self) -> str:
        """The last `STDERR_KEPT_BYTES` of the program's standard error."""
        start = max(0, self.stderr_bytes - STDERR_KEPT_BYTES)
        return os.pread(self._stderr.fileno(), STDERR_KEPT_BYTES, start).decode(errors="replace")

    @property
    def stderr_bytes(self) -> int:
        return os.fstat(self._stderr.fileno()).st_size

    @property
    def supervisor_pid(self) -> int:
        return self._process.pid

    def terminate(self) -> None:
        """Tell the supervisor to send SIGTERM to the program and its descendants."""
        with contextlib.suppress(OSError):
            self._control.send(supervisor.TERMINATE)

    def interrupt(self) -> None:
        """Tell the supervisor to send SIGINT to the program, but not to its descendants."""
        with contextlib.suppress(OSError):
            self._control.send(supervisor.INTERRUPT)

    def hang_up(self) -> None:
        """Tell the supervisor to kill everything."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Wait for the supervisor and close everything."""
        try:
            self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_LIMIT_S)
        with contextlib.suppress(OSError):
            os.close(self._stdout)
            self._stdout = -1
        self._control.close()
        self._stderr.close()


def start(
    prologue: tuple[str, str, str],
    argv: tuple[str, ...],
    *,
    cwd_fd: int | None,
    stdin_text: str,
    pass_fds: tuple[int, ...],
    merge_stderr: bool = False,
) -> Child:
    """Start a supervisor with the program under it. `prologue` is marker, cgroup.procs and cgroup.kill, or "-".

    `merge_stderr`: standard error goes to standard output, in the order of writing.
    """
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe2(os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 (the child owns it)
    cwd = "-" if cwd_fd is None else str(cwd_fd)
    fds = {theirs.fileno(), *pass_fds} | ({cwd_fd} if cwd_fd is not None else set())
    with theirs, _memory_file(stdin_text) as stdin:
        try:
            process = subprocess.Popen(
                (*INTERPRETER, str(theirs.fileno()), cwd, *prologue, "--", *argv),
                stdin=stdin,
                stdout=writer,
                stderr=subprocess.STDOUT if merge_stderr else stderr,
                pass_fds=tuple(fds),
                start_new_session=True,
            )
        finally:
            os.close(writer)
    return Child(process, ours, reader, stderr)


INTERPRETER = (sys.executable, "-I", "-S", "-E", str(Path(supervisor.__file__)))


def _memory_file(text: str) -> IO[bytes]:
    file = os.fdopen(os.memfd_create("stdin"), "r+b")
    file.write(text.encode())
    file.seek(0)
    return file
