"""Start a program and make sure that none of its processes outlives the worker. Runs as a separate program.

    python -I -S -E supervisor.py CONTROL_FD CWD_FD|- MARKER CGROUP_PROCS|- CGROUP_KILL|- -- PROGRAM [ARGUMENT…]

A program's processes may leave its process group and session (jobs of benchmarks do), so they are found by
their cgroup, or by a marker in the environment that they all inherit. Only the worker has the other
end of the control socket. A byte T means SIGTERM to the program and its descendants, a byte I SIGINT to the
program only. The end of the
socket, also when the worker dies, means SIGKILL to all of them. When the program ends, the
supervisor kills its remaining processes and writes the exit status to the socket, as a number and a
newline.

Uses only a small part of the standard library, because it starts before every program.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_LIMIT_S = 5.0
CANNOT_START = 127
MARK = "SWEETSPOT_SCOPE"
TERMINATE = b"T"
INTERRUPT = b"I"
OOM_SCORE = 500  # proc_pid_oom_score_adj(5); the service has -500


def main(arguments: list[str]) -> int:
    control, cwd, marker, procs, kill_file, _, *program = arguments
    os.set_inheritable(int(control), False)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, _writer = waking_pipe()
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # if worker and supervisor die
        become(program, cwd, marker, procs, supervisor)
    os.close(1)  # otherwise the worker would never see the end of the output
    status = wait_for_end(child, int(control), woken, marker, procs)
    kill_all(child if status is None else 0, marker, procs, kill_file)
    if status is not None:
        os.write(int(control), f"{status}\n".encode())
    return 0


def waking_pipe() -> tuple[int, int]:
    """A pipe that becomes readable when a child ends. Other signals are ignored: only the socket ends the program."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader, writer


def become(program: list[str], cwd: str, marker: str, procs: str, supervisor: int) -> None:
    """Enter the cgroup and the directory, then exec the program. Never returns."""
    try:
        if procs != "-":
            write(procs, "0")
        kill_first_without_memory()
        os.chdir(int(cwd) if cwd != "-" else "/")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() != supervisor:
            os._exit(CANNOT_START)
        path = os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        os.execvpe(program[0], program, {"PATH": path, "LC_ALL": "C", MARK: marker})  # noqa: S606 (its purpose)
    except OSError as error:
        os.write(2, f"{program[0]} could not be started: {error}\n".encode())
    os._exit(CANNOT_START)


def kill_first_without_memory() -> None:
    """The program shares the memory limit of the service. When it is reached, the kernel kills the program, not the
    worker. Every process may raise its score."""
    try:
        write("/proc/self/oom_score_adj", str(OOM_SCORE))
    except OSError:
        return


def wait_for_end(child: int, control: int, woken: int, marker: str, procs: str) -> int | None:
    """The program's exit status, 128 + N after signal N; None if the worker has died or wants it killed."""
    while True:
        readable, _, _ = select.select([control, woken], [], [])
        if woken in readable:
            os.read(woken, 512)
        status = reap(child)
        if status is not None:
            return status
        if control in readable:
            command = os.read(control, 16)
            if command == INTERRUPT:
                send(child, signal.SIGINT)
            elif command == TERMINATE:
                for pid in {child, *left_of(marker, procs)}:
                    send(pid, signal.SIGTERM)
            else:
                return None


def reap(child: int) -> int | None:
    """Reap all ended processes. Returns the child's status if it has ended."""
    exit_status = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exit_status
        if pid == 0:
            return exit_status
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            exit_status = code if code >= 0 else 128 - code


def kill_all(child: int, marker: str, procs: str, kill_file: str) -> None:
    """Kill until no process is left, for a limited time, because a process that waits for a hung device cannot die."""
    give_up_at = time.monotonic() + KILL_LIMIT_S
    while time.monotonic() < give_up_at:
        if child:
            kill(child)
        if kill_file != "-":
            write(kill_file, "1")
        left = left_of(marker, procs)
        for pid in left:
            kill(pid)
        if reap(child) is not None:
            child = 0
        if not left and not child:
            return
        time.sleep(0.002)


def left_of(marker: str, procs: str) -> list[int]:
    return members(procs) if procs != "-" else marked(marker)


def members(procs: str) -> list[int]:
    """Processes in the cgroup, except for zombies."""
    try:
        pids = [int(line) for line in read(procs).split()]
    except OSError:
        return []
    return [pid for pid in pids if pid and not ended(pid)]


def marked(marker: str) -> list[int]:
    """Processes with the marker in their environment: of the worker's user, or of all users if it is root."""
    wanted = f"{MARK}={marker}".encode()
    return [pid for pid, mark in marks() if mark == wanted or mark.startswith(wanted + b"/")]


def marks() -> list[tuple[int, bytes]]:
    marked = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 (pathlib is slow to import)
        if entry.isdigit() and int(entry) != os.getpid():
            mark = mark_of(int(entry))
            if mark:
                marked.append((int(entry), mark))
    return marked


def mark_of(pid: int) -> bytes:
    try:
        environment = read(f"/proc/{pid}/environ")
    except OSError:
        return b""
    return next((e for e in environment.split(b"\0") if e.startswith(MARK.encode() + b"=")), b"")


def ended(pid: int) -> bool:
    try:
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] in b"ZX"
    except OSError:
        return True


def kill(pid: int) -> None:
    send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (as above)
        return file.read()


def write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # at once, without the interpreter's clean-up
