"""The program of engines with a temporary PostgreSQL cluster in the current directory: pgbench or sysbench on it.

    initdb ─► postgres ─► load ─► checkpoint ─► pgbench or sysbench, measured ─► postgres ends

It reads the job (worker.recipes.pgbench) as JSON on standard input, and prints JSON lines: one for each second of the
preparation, one for each second of the measurement, also without a completed transaction, and one at the end.

    {"event": "loading"}
    {"event": "sample", "end_ms": 1000, "latencies_us": [[812, 3], [901, 1]], "failed": 0}
    {"event": "end", "load_ms": 2345, "usr_ms": …, "sys_ms": …, "report": "…"}

Of sysbench, each line that it prints is passed on:

    {"event": "line", "text": "[ 1s ] thds: 8 tps: 812.33 …"}

`latencies_us` are pairs of a latency and the number of transactions with it. `end_ms` counts from the start of the
measured pgbench.

PostgreSQL refuses to run as root, so a program started by root changes its user to `postgres`. That user cannot enter
the directories above the target, so all paths begin with the open directory, /proc/self/fd/100. Each thread of pgbench
writes a line for each transaction, to a pseudoterminal: in files or pipes, lines wait in its buffer until there are
about a hundred. Transactions that only read are so many that they go to pipes, which cost less CPU time. Imports only
the standard library, to start quickly.
"""

import fcntl
import glob
import json
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tty
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER_FD = 100  # worker.recipes.pgbench.FOLDER
USER = "postgres"  # PostgreSQL's packages create it
PROGRAMS = ("initdb", "postgres", "pgbench", "psql")
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")  # Debian, RPMs of the PGDG, sources
SAMPLE_S = 1.0
START_LIMIT_S = 60.0
READ_BYTES = 64 * 1024
READ_EVERY_S = 0.02
PIPE_BYTES = 1024 * 1024

Job = dict[str, Any]


def bin_folder() -> str:
    """The folder with all programs of PostgreSQL: of PATH, else of the newest version; "" if it is not installed."""
    paths = (path for place in PLACES for path in glob.glob(place))  # noqa: PTH207
    installed = sorted(paths, key=lambda path: tuple(map(int, re.findall(r"[0-9]+", path))), reverse=True)
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *installed]
    return next((each for each in folders if each and all(os.access(f"{each}/{p}", os.X_OK) for p in PROGRAMS)), "")


class Meter:
    """Reads pgbench's lines: client, number of the transaction, latency in µs or `failed`, script, time."""

    def __init__(self) -> None:
        self._second: Counter[bytes] = Counter()
        self._rest: dict[int, bytes] = {}
        self._began_ns = time.monotonic_ns()

    def read(self, fd: int) -> bool:
        """Whether there was something to read: a terminal whose last writer has closed it raises errno 5."""
        try:
            data = os.read(fd, READ_BYTES)
        except OSError:
            return False
        *lines, self._rest[fd] = (self._rest.get(fd, b"") + data).split(b"\n")
        self._second.update([line.split(b" ", 3)[2] for line in lines])
        return bool(data)

    def say_sample(self) -> None:
        latencies = sorted((int(text), count) for text, count in self._second.items() if text.isdigit())
        failed = sum(count for text, count in self._second.items() if not text.isdigit())
        self._second.clear()
        end_ms = max(1, (time.monotonic_ns() - self._began_ns) // 1_000_000)
        say("sample", end_ms=end_ms, latencies_us=latencies, failed=failed)


def say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Failed(Exception):
    """A program of PostgreSQL failed; the text says which."""


def enter(folder: str) -> None:
    """Open the folder at the fixed descriptor, and become the unprivileged user."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    os.dup2(fd, FOLDER_FD, inheritable=True)
    os.close(fd)
    os.fchdir(FOLDER_FD)
    if os.geteuid() == 0:
        user = pwd.getpwnam(USER)
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.umask(0o077)


def start(argv: list[str], programs: str, **options: Any) -> subprocess.Popen[bytes]:
    """Programs write to standard error, because standard output is for JSON."""
    options = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr, "pass_fds": (FOLDER_FD,), "cwd": "/", **options}
    path = shutil.which(argv[0], path=f"{programs}:{os.environ.get('PATH', '')}")
    return subprocess.Popen([path or argv[0], *argv[1:]], **options)


def finish(argv: list[str], programs: str) -> None:
    """Run a program to its end, with a line for each second. Raises Failed."""
    process = start(argv, programs)
    while True:
        say("loading")
        with suppress(subprocess.TimeoutExpired):
            if code := process.wait(SAMPLE_S):
                raise Failed(f"{argv[0]} ended with status {code}.")
            return


def await_server(server: subprocess.Popen[bytes], argv: list[str], programs: str) -> None:
    """Raises Failed if the server ends or does not answer in time."""
    give_up_at = time.monotonic() + START_LIMIT_S
    while start(argv, programs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait():
        say("loading")
        if server.poll() is not None:
            raise Failed(f"postgres ended with status {server.returncode}.")
        if time.monotonic() > give_up_at:
            raise Failed(f"postgres did not start within {START_LIMIT_S:g} s.")
        time.sleep(0.05)


class Cpu:
    """CPU time of the server, its processes and ended programs, in ms since the last reset."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        pids = [self._server, *self._children()]
        times = [each for pid in pids if (each := self._of(pid))]
        usr, system = (sum(each[n] + each[n + 2] for each in times) / self._ticks for n in (0, 1))
        return ended.ru_utime + usr, ended.ru_stime + system

    def _children(self) -> list[int]:
        with suppress(OSError):
            return list(map(int, Path(f"/proc/{self._server}/task/{self._server}/children").read_text().split()))
        return []

    @staticmethod
    def _of(pid: int) -> list[int]:
        """utime, stime, cutime, cstime in ticks (proc_pid_stat(5)); [] if the process has ended."""
        with suppress(OSError):
            return list(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        return []

    def spent_ms(self) -> tuple[int, int]:
        usr, system = self._now()
        return round(1000 * (usr - self._before[0])), round(1000 * (system - self._before[1]))


def terminals(count: int) -> tuple[list[int], list[str]]:
    """Pseudoterminals: descriptors to read, and paths to write. pgbench writes each line at once."""
    pairs = [os.openpty() for _ in range(count)]
    for _, slave in pairs:
        tty.setraw(slave)
    paths = [os.ttyname(slave) for _, slave in pairs]
    return [master for master, _ in pairs], paths


def pipes(count: int) -> tuple[list[int], list[str]]:
    """The same with named pipes. pgbench writes about a hundred lines together, which costs it much less."""
    names = [f"pipe.{number}" for number in range(count)]
    for name in names:
        os.mkfifo(name, 0o600, dir_fd=FOLDER_FD)
    readers = [os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=FOLDER_FD) for name in names]
    for fd in readers:
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return readers, names


def measure(job: Job, programs: str, server: int) -> dict[str, Any]:
    readers, paths = (terminals if job["prompt_log"] else pipes)(job["logs"])

    def link() -> None:  # in the new process, because pgbench puts its process id into the names
        for number, path in enumerate(paths):
            os.symlink(path, f"log.{os.getpid()}" + (f".{number}" if number else ""), dir_fd=FOLDER_FD)

    cpu, meter = Cpu(server), Meter()
    process = start(job["run"], programs, stdout=subprocess.PIPE, preexec_fn=link)  # no threads here
    follow(process, readers, meter)
    meter.say_sample()
    assert process.stdout is not None
    report = process.stdout.read().decode(errors="replace")
    if process.returncode:
        raise Failed(f"pgbench ended with status {process.returncode}.")
    usr_ms, sys_ms = cpu.spent_ms()
    return {"usr_ms": usr_ms, "sys_ms": sys_ms, "report": report}


def measure_lines(job: Job, programs: str, server: int) -> dict[str, Any]:
    cpu = Cpu(server)
    process = start(job["run"], programs, stdout=subprocess.PIPE)
    assert process.stdout is not None
    for line in process.stdout:
        text = line.decode(errors="replace").rstrip("\n")
        if text.startswith("FATAL"):  # sysbench prints its errors to standard output
            sys.stderr.write(f"{text}\n")
        say("line", text=text)
    if process.wait():
        raise Failed(f"{job['run'][0]} ended with status {process.returncode}.")
    usr_ms, sys_ms = cpu.spent_ms()
    return {"usr_ms": usr_ms, "sys_ms": sys_ms}


def follow(process: subprocess.Popen[bytes], readers: list[int], meter: Meter) -> None:
    """Count until pgbench has ended and its last lines are read. Reads seldom, because each wake-up costs CPU time."""
    for fd in readers:
        os.set_blocking(fd, False)
    due = time.monotonic() + SAMPLE_S
    while True:
        ended = process.poll() is not None
        while [fd for fd in readers if meter.read(fd)]:
            continue
        if ended:
            return
        if time.monotonic() >= due:
            meter.say_sample()
            due += SAMPLE_S
        time.sleep(max(0.0, min(READ_EVERY_S, due - time.monotonic())))


def run(job: Job, programs: str) -> None:
    enter(job["folder"])
    finish(job["initdb"], programs)
    server = start(job["server"], programs)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        await_server(server, job["ready"], programs)
        began = time.monotonic()
        finish(job["load"], programs)
        finish(job["checkpoint"], programs)
        load_ms = round(1000 * (time.monotonic() - began))
        measured = (measure if job["logs"] else measure_lines)(job, programs, server.pid)
        say("end", load_ms=load_ms, **measured)
    finally:
        server.send_signal(signal.SIGQUIT)  # at once, without writing its buffers: the folder is removed
        server.wait()


def main() -> int:
    job = json.load(sys.stdin)
    try:
        run(job, bin_folder())
    except (Failed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
