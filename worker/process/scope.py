"""A scope: one child program in its cgroup, and everything that it starts. Closing it kills all remaining processes.

A process that waits for a device cannot be killed. The record of its scope then stays on disk, also over a restart of
the worker, and quarantines the drives (worker.guard) until the processes are gone.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Self

import msgspec

from worker.kernel.files import FILE, UNFINISHED, Reserve, write_whole
from worker.process import supervisor

# A program and its supervisor, from the worker's side: output, end, exit status.

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


# Cgroups for child programs, below the worker's own cgroup, so that its limits apply to them.
#
# The worker uses v2 (also as the "unified" mount next to v1) if it can create a child cgroup and kill it with
# `cgroup.kill` (kernel 5.14); else the v1 freezer: freeze all members, kill them, thaw.

KILL_LIMIT_S = 5.0
PREFIX = "sweetspot."


class Cgroup(msgspec.Struct, frozen=True):
    """One cgroup directory created by the worker."""

    path: Path
    kind: str  # cgroup2 | cgroup1

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"

    @property
    def kill_file(self) -> Path | None:
        return self.path / "cgroup.kill" if self.kind == "cgroup2" else None

    def kill(self) -> bool:
        """Kill all processes; True if none was left within the time limit."""
        give_up_at = time.monotonic() + KILL_LIMIT_S
        while self.members():
            self._kill_once()
            if time.monotonic() > give_up_at:
                return False
            time.sleep(0.002)
        return True

    def remove(self) -> None:
        """Remove the directory. The kernel refuses briefly while the last process exits, so this is repeated."""
        give_up_at = time.monotonic() + KILL_LIMIT_S
        while self.path.is_dir():
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            if time.monotonic() > give_up_at:
                return
            time.sleep(0.001)

    def members(self) -> list[int]:
        return supervisor.members(str(self.procs))

    def _kill_once(self) -> None:
        with contextlib.suppress(OSError):
            if self.kill_file:
                self.kill_file.write_text("1")
                return
            self._freeze("FROZEN")
            for pid in self.members():
                supervisor.kill(pid)
            self._freeze("THAWED")

    def _freeze(self, state: str) -> None:
        (self.path / "freezer.state").write_text(state)


def create(name: str) -> Cgroup | None:
    """Create a cgroup below the worker's own; None if that is impossible."""
    for kind, parent in own_cgroups():
        path = parent / f"{PREFIX}{name}"
        try:
            path.mkdir()
        except OSError:
            continue
        cgroup = Cgroup(path, kind)
        if _usable(parent, cgroup):
            return cgroup
        cgroup.remove()
    return None


def _usable(parent: Path, cgroup: Cgroup) -> bool:
    """Moving a process also requires write permission on cgroup.procs of the common ancestor."""
    needed = [parent / "cgroup.procs", cgroup.procs]
    needed.append(cgroup.kill_file or cgroup.path / "freezer.state")
    return all(os.access(file, os.W_OK) for file in needed)


def own_cgroups() -> list[tuple[str, Path]]:
    """Directories of this process's cgroups: v2 first, then the v1 freezer."""
    mounts = _mounts()
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        kind = "cgroup2" if number == "0" and not controllers else "cgroup1" if controllers == "freezer" else ""
        if kind in mounts:
            root, point = mounts[kind]
            inside = path.removeprefix(root) if root != "/" else path
            groups[kind] = point / inside.lstrip("/")
    return [(kind, groups[kind]) for kind in ("cgroup2", "cgroup1") if kind in groups and groups[kind].is_dir()]


def _mounts() -> dict[str, tuple[str, Path]]:
    """kind -> (mounted part of the hierarchy, mount point); see proc_pid_mountinfo(5)."""
    mounts: dict[str, tuple[str, Path]] = {}
    # Not read_text and splitlines: a mount point may contain any bytes except those that the kernel escapes.
    for line in Path("/proc/self/mountinfo").read_bytes().decode(errors="surrogateescape").split("\n"):
        fields, separator, rest = line.partition(" - ")
        if not separator:
            continue
        root, point = fields.split(" ")[3:5]
        filesystem, _, options = rest.split(" ", 2)
        if filesystem == "cgroup2":
            mounts.setdefault("cgroup2", (root, Path(point)))
        if filesystem == "cgroup" and "freezer" in options.split(","):
            mounts.setdefault("cgroup1", (root, Path(point)))
    return mounts


log = logging.getLogger(__name__)

RECORDS = "scopes"


class _Record(msgspec.Struct, frozen=True):
    """The record of an open scope on disk. After a crash, the next start of the worker kills its processes."""

    marker: str
    cgroup: str = ""
    kind: str = ""
    drives: tuple[str, ...] = ()  # stable ids of the drives that the program uses
    stuck: bool = False  # its processes could not be killed


class Scope:
    """Created by `open_scope`. Not thread-safe, except `kill`."""

    def __init__(self, name: str, record_path: Path | None, record: _Record) -> None:
        self.name = name
        self._record_path = record_path
        self._record = record
        self._marker = record.marker
        self._cgroup = Cgroup(Path(record.cgroup), record.kind) if record.cgroup else None
        self._child: Child | None = None
        self.not_before = 0.0  # moment of the monotonic clock before which its program must not measure

    @property
    def is_stuck(self) -> bool:
        return self._record.stuck

    @property
    def drives(self) -> tuple[str, ...]:
        return self._record.drives

    @property
    def isolation(self) -> str:
        return self._cgroup.kind if self._cgroup else "process tree"

    def spawn(
        self,
        argv: tuple[str, ...],
        *,
        cwd_fd: int | None = None,
        stdin_text: str | None = None,
        pass_fds: tuple[int, ...] = (),
        merge_stderr: bool = False,
    ) -> Child:
        """Start the program inside the scope, in the directory `cwd_fd`, or /. `stdin_text` is its standard input."""
        if self._child is not None:
            raise RuntimeError(f"Scope {self.name} already has a child.")
        kill_file = self._cgroup.kill_file if self._cgroup else None
        prologue = (self._marker, str(self._cgroup.procs) if self._cgroup else "-", str(kill_file or "-"))
        self._child = start(
            prologue, argv, cwd_fd=cwd_fd, stdin_text=stdin_text or "", pass_fds=pass_fds, merge_stderr=merge_stderr
        )
        return self._child

    @property
    def starts_at(self) -> float:
        """Unix time at which its program may start to measure: now, or later."""
        return time.time() + max(0.0, self.not_before - time.monotonic())

    def await_start(self, stopped: threading.Event) -> None:
        """Wait until its program may start to measure, or is not wanted any more."""
        stopped.wait(max(0.0, self.not_before - time.monotonic()))

    def kill(self) -> bool:
        """Kill all processes in the scope; True if none was left within a few seconds."""
        if self._child:
            self._child.hang_up()
        if self._cgroup is None:
            return _kill_marked(self._marker)
        if self._cgroup.kill():
            return True
        _kill_marked(self._marker)
        return False

    @property
    def is_gone(self) -> bool:
        """True if none of its processes is left."""
        left = [pid for pid in supervisor.marked(self._marker) if not supervisor.ended(pid)]
        return not left and not (self._cgroup and self._cgroup.members())

    def close(self) -> bool:
        """Kill remaining processes and remove the scope; False if a process cannot be killed. Safe to call twice."""
        gone = self.kill()
        if self._child:
            self._child.close()
        if not gone:
            log.error("A process in scope %s cannot be killed, because it is waiting for a device.", self.name)
            if self._record_path:
                self._note_stuck(self._record_path)
            return False
        self.forget()
        return True

    def _note_stuck(self, record_path: Path) -> None:
        try:
            _write(record_path, msgspec.structs.replace(self._record, stuck=True))
        except OSError as error:
            log.critical("%s cannot be written, so its drives are not quarantined: %s", record_path, error)

    def forget(self) -> None:
        """Remove the cgroup and the record."""
        if self._cgroup:
            self._cgroup.remove()
        if self._record_path:
            self._record_path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_scope(state_dir: Path | None, name: str, *, drives: tuple[str, ...] = ()) -> Scope:
    """Open a scope. Names consist of letters, digits, `.`, `_` and `-`. `drives`: stable ids of those it will use.

    Its record stays in `state_dir` until the scope is closed, so that the next start of the worker can kill what is
    left. Without it there is no record. Then a program outlives the worker only if its supervisor dies with it.
    """
    if not re.fullmatch(r"[0-9A-Za-z_.-]{1,120}", name):
        raise ValueError(f"{name!r} is not a valid scope name.")
    cgroup = create(f"{_digest(state_dir)}.{name}")
    kind = (str(cgroup.path), cgroup.kind) if cgroup else ("", "")
    record = _Record(f"{_marker_of(state_dir)}/{name}", *kind, drives=drives)
    return Scope(name, _save_record(state_dir, name, record) if state_dir else None, record)


def _save_record(state_dir: Path, name: str, record: _Record) -> Path:
    path = state_dir / RECORDS / f"{name}.json"
    _write(path, record)
    return path


def _write(path: Path, record: _Record) -> None:
    """Replace a record atomically; on a full disk in the reserved space, because programs also undo. Raises OSError."""
    data = msgspec.json.encode(record)
    try:
        write_whole(path, data)
    except OSError:
        if not Reserve(path.parents[1] / FILE).free():
            raise
        write_whole(path, data)


def kill_leftovers(state_dir: Path) -> tuple[str, ...]:
    """Kill processes left by an earlier worker with this state directory. Returns the names of the scopes it closed.

    Call this first at the start, while this process has locked the state directory.
    """
    scopes = _recorded(state_dir)
    known = {scope.name for scope in scopes}
    for path in (state_dir / RECORDS).glob(f"*{UNFINISHED}"):
        path.unlink(missing_ok=True)
    for path in (state_dir / RECORDS).glob("*.json"):
        if path.stem not in known:  # unreadable; the marker below finds its processes
            path.unlink(missing_ok=True)
    killed = tuple(scope.name for scope in scopes if scope.close())
    _kill_marked(_marker_of(state_dir))
    return killed


class StuckScope(msgspec.Struct, frozen=True):
    """A program that could not be killed, and the stable ids of its drives."""

    name: str
    drives: tuple[str, ...]


def stuck_scopes(state_dir: Path) -> tuple[StuckScope, ...]:
    """Scopes whose processes could not be killed and are still there."""
    stuck = []
    for scope in _recorded(state_dir):
        if scope.is_stuck and scope.is_gone:
            log.info("The processes of scope %s have ended.", scope.name)
            scope.forget()
        elif scope.is_stuck:
            stuck.append(StuckScope(scope.name, scope.drives))
    return tuple(stuck)


def forget_scope(state_dir: Path, name: str) -> bool:
    """Forget a stuck scope although its processes may still be there; False if there is none with this name."""
    stuck = [scope for scope in _recorded(state_dir) if scope.is_stuck and scope.name == name]
    for scope in stuck:
        scope.forget()
    return bool(stuck)


def _recorded(state_dir: Path) -> tuple[Scope, ...]:
    """All scopes with a readable record on disk."""
    scopes = []
    for path in sorted((state_dir / RECORDS).glob("*.json")):
        with contextlib.suppress(msgspec.DecodeError, FileNotFoundError):
            scopes.append(Scope(path.stem, path, msgspec.json.decode(path.read_bytes(), type=_Record)))
    return tuple(scopes)


def isolation() -> str:
    """The isolation of child processes on this host: cgroup2 | cgroup1 | process tree."""
    cgroup = create(f"try.{os.getpid()}.{time.monotonic_ns()}")
    if cgroup is None:
        return "process tree"
    cgroup.remove()
    return cgroup.kind


def _marker_of(state_dir: Path | None) -> str:
    return f"sweetspot-{_digest(state_dir)}"


def _digest(state_dir: Path | None) -> str:
    if state_dir is None:
        return "unrecorded"
    return hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:12]


def _kill_marked(marker: str) -> bool:
    """Kill every process with the marker, including descendants; True if none was left in time."""
    give_up_at = time.monotonic() + KILL_LIMIT_S
    while True:
        left = [pid for pid in supervisor.marked(marker) if not supervisor.ended(pid)]
        if not left:
            return True
        for pid in left:
            supervisor.kill(pid)
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.005)
