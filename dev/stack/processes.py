"""Child processes that outlive the command that started them and are identified exactly by later commands.

A process is identified by pid, start time and the kernel's boot id together, because the kernel reuses pids. Each
process leads its own session, so that its children can be stopped with it.
"""

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dev.console import ToolError
from dev.stack.network import await_condition
from dev.stack.state import State

KILL_LIMIT_S = 5.0


@dataclass(frozen=True)
class Record:
    """Identity of a process. `started_ticks` is its start time since boot (proc(5), stat field 22)."""

    name: str
    pid: int
    started_ticks: int
    boot_id: str


@dataclass(frozen=True)
class Command:
    """A command line with its environment. `user` "" is the current user."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    user: str = ""
    executable: str = ""
    pass_fds: tuple[int, ...] = ()


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started_ticks(pid: int) -> int | None:
    """Start time of a running process; None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def current() -> Record:
    """The identity of this process."""
    pid = os.getpid()
    return Record("", pid, started_ticks(pid) or 0, boot_id())


def alive(record: Record) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(record.pid, os.WNOHANG)  # reaps it if it is our child
    return record.boot_id == boot_id() and started_ticks(record.pid) == record.started_ticks


def start(state: State, command: Command) -> Record:
    """Start it with its output appended to logs/<name>.log, and record its identity."""
    with log_path(state, command.name).open("ab") as log:
        process = subprocess.Popen(
            command.argv,
            executable=command.executable or None,
            cwd=command.folder,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=command.user or None,
            group=_group(command.user),
            extra_groups=[] if command.user else None,
            pass_fds=command.pass_fds,
        )
    record = Record(command.name, process.pid, started_ticks(process.pid) or 0, boot_id())
    process.returncode = 0  # silences Popen's warning: the process outlives this command
    state.write_facts(f"services/{command.name}.json", asdict(record))
    return record


def _group(user: str) -> int | None:
    return pwd.getpwnam(user).pw_gid if user else None


def log_path(state: State, name: str) -> Path:
    return state.logs / f"{name}.log"


def known(state: State, name: str) -> Record | None:
    """The process started under this name, if it still runs."""
    facts = state.read_facts(f"services/{name}.json")
    record = Record(**facts) if facts else None
    return record if record and alive(record) else None


def stop(state: State, name: str, *, stop_signal: int = signal.SIGTERM, limit_s: float = 15.0) -> bool:
    """Stop it: signal, wait, then SIGKILL its session. False if it did not run. Raises ToolError."""
    record = known(state, name)
    if record:
        _signal(record, stop_signal)
        if not wait_gone(record, limit_s):
            _kill_session(record)
            if not wait_gone(record, KILL_LIMIT_S):
                raise ToolError(f"{name} (process {record.pid}) could not be stopped.")
    (state.services / f"{name}.json").unlink(missing_ok=True)
    return record is not None


def _signal(record: Record, number: int) -> None:
    """Send through a pidfd and check the identity after opening it: the pid may have been reused."""
    with contextlib.suppress(ProcessLookupError):
        fd = os.pidfd_open(record.pid)
        try:
            if alive(record):
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)


def _kill_session(record: Record) -> None:
    with contextlib.suppress(ProcessLookupError):
        if alive(record):  # while the leader runs, its group id cannot be reused
            os.killpg(record.pid, signal.SIGKILL)


def wait_gone(record: Record, limit_s: float) -> bool:
    return await_condition(lambda: not alive(record), limit_s=limit_s)


def log_tail(state: State, name: str, lines: int = 15) -> str:
    path = log_path(state, name)
    text = path.read_text(errors="replace") if path.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def failure(state: State, name: str, what: str) -> ToolError:
    """The error for a service that did not start, with the end of its log."""
    return ToolError(f"{name} {what}. The end of {log_path(state, name)}:\n{log_tail(state, name)}")


def run(
    argv: Sequence[str],
    *,
    user: str = "",
    limit_s: float = 600.0,  # against what hangs, not against a slow machine
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin_text: str = "",
) -> str:
    """Run a short command and return its output. Raises ToolError with its error output."""
    try:
        done = subprocess.run(
            list(argv),
            capture_output=True,
            text=True,
            timeout=limit_s,
            input=stdin_text,
            env=environment,
            cwd=folder,
            user=user or None,
            group=_group(user),
            extra_groups=[] if user else None,
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolError(f"{argv[0]} is not installed. Run .ci/setup") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{argv[0]} took more than {limit_s:.0f} s.") from error
    if done.returncode != 0:
        raise ToolError(f"{' '.join(argv)} failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
    return done.stdout


def tree(pid: int) -> list[int]:
    """The process and all its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found
