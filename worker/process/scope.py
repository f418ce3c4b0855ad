"""A scope: one child program and everything that it starts. Closing the scope kills all remaining processes.

A process that waits for a device cannot be killed. The record of its scope then stays on disk, also over a restart of
the worker, and quarantines the drives (worker.guard.quarantine) until the processes are gone.
"""

import contextlib
import hashlib
import logging
import os
import re
import threading
import time
from pathlib import Path
from typing import Self

import msgspec

from worker.process import cgroups, supervisor
from worker.process.child import Child, start
from worker.reserve import FILE, Reserve
from worker.whole_file import UNFINISHED, write_whole

log = logging.getLogger(__name__)

RECORDS = "scopes"
KILL_LIMIT_S = 5.0


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
        self._cgroup = _cgroup_of(record)
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
        gone = self._cgroup.kill() if self._cgroup else True
        return _kill_marked(self._marker) and gone if not self._cgroup or not gone else gone

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
    cgroup = cgroups.create(f"{_digest(state_dir)}.{name}")
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
    found = []
    for scope in _recorded(state_dir):
        if scope.is_stuck and scope.is_gone:
            log.info("The processes of scope %s have ended.", scope.name)
            scope.forget()
        elif scope.is_stuck:
            found.append(StuckScope(scope.name, scope.drives))
    return tuple(found)


def forget_scope(state_dir: Path, name: str) -> bool:
    """Forget a stuck scope although its processes may still be there; False if there is none with this name."""
    found = [scope for scope in _recorded(state_dir) if scope.is_stuck and scope.name == name]
    for scope in found:
        scope.forget()
    return bool(found)


def _recorded(state_dir: Path) -> tuple[Scope, ...]:
    """All scopes with a readable record on disk."""
    found = []
    for path in sorted((state_dir / RECORDS).glob("*.json")):
        with contextlib.suppress(msgspec.DecodeError, FileNotFoundError):
            found.append(Scope(path.stem, path, msgspec.json.decode(path.read_bytes(), type=_Record)))
    return tuple(found)


def isolation() -> str:
    """The isolation of child processes on this host: cgroup2 | cgroup1 | process tree."""
    cgroup = cgroups.create(f"try.{os.getpid()}.{time.monotonic_ns()}")
    if cgroup is None:
        return "process tree"
    cgroup.remove()
    return cgroup.kind


def _cgroup_of(record: _Record) -> cgroups.Cgroup | None:
    return cgroups.Cgroup(Path(record.cgroup), record.kind) if record.cgroup else None


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
