"""A scope: one child program and everything that it starts. Closing the scope kills all remaining processes."""

import contextlib
import hashlib
import logging
import os
import re
import time
from pathlib import Path
from typing import Self

import msgspec

from worker.process import cgroups, supervisor
from worker.process.child import Child, start

log = logging.getLogger(__name__)

RECORDS = "scopes"
KILL_LIMIT_S = 5.0


class _Record(msgspec.Struct, frozen=True):
    """The record of an open scope on disk. After a crash, the next start of the worker kills its processes."""

    marker: str
    cgroup: str = ""
    kind: str = ""


class Scope:
    """Created by `open_scope`. Not thread-safe, except `kill`."""

    def __init__(self, name: str, record_path: Path | None, record: _Record) -> None:
        self.name = name
        self._record_path = record_path
        self._marker = record.marker
        self._cgroup = _cgroup_of(record)
        self._child: Child | None = None

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

    def kill(self) -> bool:
        """Kill all processes in the scope; True if none was left within a few seconds."""
        if self._child:
            self._child.hang_up()
        gone = self._cgroup.kill() if self._cgroup else True
        return _kill_marked(self._marker) and gone if not self._cgroup or not gone else gone

    def close(self) -> None:
        """Kill remaining processes and remove the scope. Safe to call twice."""
        gone = self.kill()
        if self._child:
            self._child.close()
        if not gone:
            log.error("A process in scope %s cannot be killed, because it is waiting for a device.", self.name)
            return  # keep the record: the next start tries again
        if self._cgroup:
            self._cgroup.remove()
        if self._record_path:
            self._record_path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_scope(state_dir: Path | None, name: str) -> Scope:
    """Open a scope. Names consist of letters, digits, `.`, `_` and `-`.

    Its record stays in `state_dir` until the scope is closed, so that the next start of the worker can kill what is
    left. Without it there is no record. Then a program outlives the worker only if its supervisor dies with it.
    """
    if not re.fullmatch(r"[0-9A-Za-z_.-]{1,120}", name):
        raise ValueError(f"{name!r} is not a valid scope name.")
    cgroup = cgroups.create(f"{_digest(state_dir)}.{name}")
    kind = (str(cgroup.path), cgroup.kind) if cgroup else ("", "")
    record = _Record(f"{_marker_of(state_dir)}/{name}", *kind)
    return Scope(name, _save_record(state_dir, name, record) if state_dir else None, record)


def _save_record(state_dir: Path, name: str, record: _Record) -> Path:
    records = state_dir / RECORDS
    records.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = records / f"{name}.json"
    path.write_bytes(msgspec.json.encode(record))
    return path


def kill_leftovers(state_dir: Path) -> tuple[str, ...]:
    """Kill processes left by an earlier worker with this state directory. Returns the names of their scopes.

    Call this first at the start, while this process has locked the state directory.
    """
    names = []
    for path in sorted((state_dir / RECORDS).glob("*.json")):
        names.append(path.stem)
        with contextlib.suppress(msgspec.DecodeError):
            Scope(path.stem, path, msgspec.json.decode(path.read_bytes(), type=_Record)).close()
        path.unlink(missing_ok=True)
    _kill_marked(_marker_of(state_dir))
    return tuple(names)


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
