"""Starts fio, and sees to it that nothing of fio outlives the worker. Run as a program of its own.

    python -I -S -E warden.py CONTROL_FD CWD_FD|- MARKER CGROUP_PROCS|- CGROUP_KILL|- -- PROGRAM [ARGUMENT…]

fio's job processes leave its process group and session, so only a cgroup (or a mark in the
environment, which all of them inherit) holds them together. The control socket's other end
is held by nobody but the worker: when the worker dies, however it dies, the socket ends, and
everything is killed. When the program ends, what it left is killed and its exit status is
written to the socket, as a number and a newline.

Standard library only, and little of it: this starts before every trial.
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


def main(arguments: list[str]) -> int:
    control, cwd, marker, procs, kill_file, _, *program = arguments
    os.set_inheritable(int(control), False)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, _writer = waking_pipe()
    warden = os.getpid()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # fio then ends its jobs itself, should both of us die
        become(program, cwd, marker, procs, warden)
    os.close(1)  # else the worker would wait for the end of fio's output for ever
    status = wait_for_end(child, int(control), woken)
    kill_all(child if status is None else 0, marker, procs, kill_file)
    if status is not None:
        os.write(int(control), f"{status}\n".encode())
    return 0


def waking_pipe() -> tuple[int, int]:
    """A pipe that becomes readable when a child ends. Other signals are not for us: our end is the socket's."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader, writer


def become(program: list[str], cwd: str, marker: str, procs: str, warden: int) -> None:
    """Turn into the program, inside the cgroup. Never returns."""
    try:
        if procs != "-":
            write(procs, "0")
        if cwd != "-":
            os.fchdir(int(cwd))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() != warden:
            os._exit(CANNOT_START)
        path = os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        os.execvpe(program[0], program, {"PATH": path, "LC_ALL": "C", MARK: marker})  # noqa: S606 (that is our job)
    except OSError as error:
        os.write(2, f"{program[0]} could not be started: {error}\n".encode())
    os._exit(CANNOT_START)


def wait_for_end(child: int, control: int, woken: int) -> int | None:
    """The program's exit status, 128 + N after signal N; None when the worker is gone or wants it killed."""
    while True:
        readable, _, _ = select.select([control, woken], [], [])
        if woken in readable:
            os.read(woken, 512)
        status = reap(child)
        if status is not None:
            return status
        if control in readable:
            return None


def reap(child: int) -> int | None:
    """Take in everything that has ended; the child's status if it was among it."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code


def kill_all(child: int, marker: str, procs: str, kill_file: str) -> None:
    """Kill until nothing is left, for a limited time: a process that waits for a hung device cannot die yet."""
    give_up_at = time.monotonic() + KILL_LIMIT_S
    while time.monotonic() < give_up_at:
        if child:
            kill(child)
        if kill_file != "-":
            write(kill_file, "1")
        left = members(procs) if procs != "-" else marked(marker)
        for pid in left:
            kill(pid)
        if reap(child) is not None:
            child = 0
        if not left and not child:
            return
        time.sleep(0.002)


def members(procs: str) -> list[int]:
    """Processes in the cgroup; those that have ended and are not yet taken in by their parent do not count."""
    try:
        pids = [int(line) for line in read(procs).split()]
    except OSError:
        return []
    return [pid for pid in pids if pid and not ended(pid)]


def marked(marker: str) -> list[int]:
    """Processes whose environment carries the mark. Readable: our own user's; for root all."""
    wanted = f"{MARK}={marker}".encode()
    return [pid for pid, mark in marks() if mark == wanted or mark.startswith(wanted + b"/")]


def marks() -> list[tuple[int, bytes]]:
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 (pathlib takes longer to import than fio to start)
        if entry.isdigit() and int(entry) != os.getpid():
            mark = mark_of(int(entry))
            if mark:
                found.append((int(entry), mark))
    return found


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
    try:
        os.kill(pid, signal.SIGKILL)
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
    os._exit(main(sys.argv[1:]))  # at once: nothing of the interpreter is to be put in order
