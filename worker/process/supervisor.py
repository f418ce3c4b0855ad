"""Start a program and make sure that nothing of it outlives the worker. Run as a program of its own.

    python -I -S -E supervisor.py CONTROL_FD CWD_FD|- MARKER CGROUP_PROCS|- CGROUP_KILL|- -- PROGRAM [ARGUMENT…]

fio's job processes leave its process group and session, so they are found by their cgroup, or by a
mark in the environment that all of them inherit. Only the worker holds the other end of the control
socket. A byte from it means SIGTERM to the program and its descendants; its end, also when the
worker dies, means SIGKILL to all of them. When the program ends, whatever it left is killed and its
exit status is written to the socket, as a number and a newline.

Standard library only, and little of it, because this starts before every program.
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


def main(arguments: list[str]) -> int:
    control, cwd, marker, procs, kill_file, _, *program = arguments
    os.set_inheritable(int(control), False)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, _writer = waking_pipe()
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # if worker and supervisor die, fio ends its jobs itself
        become(program, cwd, marker, procs, supervisor)
    os.close(1)  # otherwise the worker would never see the end of the program's output
    status = wait_for_end(child, int(control), woken, marker, procs)
    kill_all(child if status is None else 0, marker, procs, kill_file)
    if status is not None:
        os.write(int(control), f"{status}\n".encode())
    return 0


def waking_pipe() -> tuple[int, int]:
    """A pipe that becomes readable when a child ends. Other signals are ignored: the socket tells when to end."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader, writer


def become(program: list[str], cwd: str, marker: str, procs: str, supervisor: int) -> None:
    """Enter the cgroup and the directory and exec the program. Never returns."""
    try:
        if procs != "-":
            write(procs, "0")
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


def wait_for_end(child: int, control: int, woken: int, marker: str, procs: str) -> int | None:
    """The program's exit status, 128 + N after signal N; None if the worker is gone or wants it killed."""
    while True:
        readable, _, _ = select.select([control, woken], [], [])
        if woken in readable:
            os.read(woken, 512)
        status = reap(child)
        if status is not None:
            return status
        if control in readable:
            if os.read(control, 16) != TERMINATE:
                return None
            for pid in {child, *left_of(marker, procs)}:
                send(pid, signal.SIGTERM)


def reap(child: int) -> int | None:
    """Reap everything that has ended; the child's status if it has ended too."""
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
    """Processes in the cgroup, without those that have ended and are not yet reaped."""
    try:
        pids = [int(line) for line in read(procs).split()]
    except OSError:
        return []
    return [pid for pid in pids if pid and not ended(pid)]


def marked(marker: str) -> list[int]:
    """Processes whose environment carries the mark: of the worker's own user, or as root of all users."""
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
    os._exit(main(sys.argv[1:]))  # at once, without the interpreter's own clean-up
