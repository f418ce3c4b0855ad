"""Nothing of fio survives, whoever is killed. Judged by the device's counters and the process table."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from worker.process.scope import PREFIX, SUPERVISOR_DIED, isolation, kill_leftovers, open_scope, own_cgroups
from worker.tests.waiting import until

CLONE = Path(__file__).parents[3]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices and other users")


def fio_on(file: str) -> list[int]:
    """Processes that have the file open and are called fio."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if (process / "comm").read_text().strip() == "fio" and any(
                str(fd.readlink()) == file for fd in (process / "fd").iterdir()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)
        kill_leftovers(Path(name) / "state")  # should a test have failed


@pytest.fixture
def scratch(place: Path) -> str:
    file = place / "scratch"
    file.write_bytes(os.urandom(8 * 1024 * 1024))
    file.chmod(0o666)
    return str(file)


@pytest.fixture
def loop(scratch: str) -> Iterator[str]:
    made = subprocess.run(
        ("losetup", "--find", "--show", "--direct-io=on", scratch), capture_output=True, text=True, check=True
    )
    device = made.stdout.strip()
    yield device
    subprocess.run(("losetup", "--detach", device), check=True)


class Holder:
    """The process to be killed."""

    def __init__(self, state: Path, file: str, *kinds: str, user: tuple[str, ...] = ()) -> None:
        command = (*user, sys.executable, "-m", "worker.process.tests.holder", str(state), file, *kinds)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CLONE)
        self.isolation, _, supervisor = self._line().rpartition(" ")
        self.supervisor = int(supervisor)
        until(lambda: len(fio_on(file)) >= 2, words=lambda: "fio did not start")

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def exit_code_seen(self) -> int:
        return int(self._line())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(5)
        out: IO[str] | None = self.process.stdout
        if out:
            out.close()


def main_fio(holder: Holder, file: str) -> int:
    """The fio that the supervisor started: its jobs are other processes."""
    parents = {pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in fio_on(file)}
    (main,) = set(parents.values()) - {holder.supervisor} or parents
    return main


def reads(device: str) -> int:
    return int(Path(f"/sys/class/block/{Path(device).name}/stat").read_text().split()[0])


# Somebody on this machine may look what lies on the device, which takes a few reads; fio does thousands.
LOOKS = 100


def assert_quiet(device: str) -> None:
    before = reads(device)
    time.sleep(0.3)  # this is the measurement: fio may not move in this time
    assert reads(device) - before < LOOKS


KINDS = {"cgroup2": ("cgroup2",), "cgroup1": ("cgroup1",), "process tree": ()}


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("kind", KINDS)
def test_it_stops_the_device_when_the_worker_is_killed(place: Path, loop: str, kind: str) -> None:
    if kind != "process tree" and kind not in dict(own_cgroups()):
        pytest.skip(f"no {kind} here")
    holder = Holder(place / "state", loop, *KINDS[kind])
    assert holder.isolation == kind
    before = reads(loop)
    until(lambda: reads(loop) > before)
    holder.kill()
    until(lambda: not fio_on(loop))
    assert_quiet(loop)
    assert kill_leftovers(place / "state") == ("held",)
    assert not list((place / "state" / "scopes").iterdir())


@needs_root
@pytest.mark.root
def test_it_stops_the_device_when_fio_itself_is_killed(place: Path, loop: str) -> None:
    holder = Holder(place / "state", loop, "cgroup2", "cgroup1")
    os.kill(main_fio(holder, loop), signal.SIGKILL)
    until(lambda: not fio_on(loop))
    assert holder.exit_code_seen() == 128 + signal.SIGKILL
    assert_quiet(loop)
    holder.kill()
    kill_leftovers(place / "state")


@needs_root
@pytest.mark.root
def test_it_stops_the_device_when_the_supervisor_is_killed(place: Path, loop: str) -> None:
    holder = Holder(place / "state", loop, "cgroup2", "cgroup1")
    os.kill(holder.supervisor, signal.SIGKILL)
    until(lambda: not fio_on(loop))
    assert holder.exit_code_seen() == SUPERVISOR_DIED
    assert_quiet(loop)
    holder.kill()
    kill_leftovers(place / "state")


@needs_root
@pytest.mark.root
def test_it_kills_what_worker_and_supervisor_left_when_both_die_at_once(place: Path, loop: str) -> None:
    holder = Holder(place / "state", loop, "cgroup2", "cgroup1")
    os.kill(holder.process.pid, signal.SIGSTOP)
    for pid in fio_on(loop):
        os.kill(pid, signal.SIGSTOP)  # deaf to the supervisor's farewell
    os.kill(holder.supervisor, signal.SIGKILL)
    holder.kill()
    assert kill_leftovers(place / "state") == ("held",)
    assert not fio_on(loop)
    assert_quiet(loop)


def as_nobody_possible() -> bool:
    """Also that the interpreter can start itself again: setpriv may reach one that its children cannot."""
    again = "import subprocess, sys, worker.process, msgspec; subprocess.run([sys.executable, '-c', ''], check=True)"
    command = (*NOBODY, sys.executable, "-c", again)
    return subprocess.run(command, cwd=CLONE, capture_output=True, check=False).returncode == 0


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("victim", ["worker", "fio"])
def test_it_needs_no_root(place: Path, scratch: str, victim: str) -> None:
    if not as_nobody_possible():
        pytest.skip("the clone is out of reach for other users")
    holder = Holder(place / "state", scratch, "cgroup2", "cgroup1", user=NOBODY)
    assert holder.isolation == "process tree"
    if victim == "worker":
        holder.kill()
    else:
        os.kill(main_fio(holder, scratch), signal.SIGKILL)
    until(lambda: not fio_on(scratch))
    holder.kill()


def test_it_puts_fio_below_the_workers_own_cgroup(tmp_path: Path) -> None:
    if isolation() == "process tree":
        pytest.skip("no cgroups to be had here")
    kind, parent = next((k, p) for k, p in own_cgroups() if k == isolation())
    with open_scope(tmp_path, "limits") as scope:
        child = scope.spawn(("cat", "/proc/self/cgroup"))
        said = child.read(5.0) or b""
        assert f"/{PREFIX}".encode() in said
        assert [p for p in parent.iterdir() if p.name.endswith(".limits")], kind
    assert not [p for p in parent.iterdir() if p.name.endswith(".limits")]


def test_it_gives_input_output_status_and_words(tmp_path: Path) -> None:
    with open_scope(tmp_path, "a") as scope:
        child = scope.spawn(("sh", "-c", "cat; echo oh no >&2; exit 7"), stdin_text="hello")
        assert child.read(5.0) == b"hello"
        assert child.read(5.0) == b""
        assert (child.wait(), child.stderr()) == (7, "oh no\n")


def test_it_starts_programs_without_the_workers_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETSPOT_TOKEN", "secret")
    with open_scope(tmp_path, "a") as scope:
        child = scope.spawn(("env",))
        assert b"secret" not in (child.read(5.0) or b"")


def test_it_says_that_a_program_is_missing(tmp_path: Path) -> None:
    with open_scope(tmp_path, "a") as scope:
        child = scope.spawn(("no-such-program",))
        assert child.wait() == 127
        assert "no-such-program could not be started" in child.stderr()


def test_it_kills_a_session_of_its_own(tmp_path: Path) -> None:
    with open_scope(tmp_path, "a") as scope:
        child = scope.spawn(("sh", "-c", "setsid sleep 50 & echo $!; wait"))
        pid = int(child.read(5.0) or b"0")
        assert scope.kill()
        until(lambda: not Path(f"/proc/{pid}").exists())


def test_it_refuses_names_that_are_paths(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a valid scope name"):
        open_scope(tmp_path, "../x")
