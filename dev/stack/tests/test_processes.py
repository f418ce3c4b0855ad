"""Real child processes: found again, never mistaken for another, ended with all they forked."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dev.console import ToolError
from dev.stack import processes
from dev.stack.network import await_condition
from dev.stack.processes import Command, Record
from dev.stack.state import State

# Ignores TERM and has a child in its session.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    print("child", os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    state = State(tmp_path / "state")
    state.prepare()
    yield state
    for path in state.services.glob("*.json"):
        processes.stop(state, path.stem, limit_s=0)


def sleeper(state: State, code: str = "import time; time.sleep(60)") -> Record:
    command = Command("sleeper", (sys.executable, "-c", code), dict(os.environ), state.root)
    return processes.start(state, command)


def test_it_finds_a_process_again_and_stops_it(state: State) -> None:
    started = sleeper(state)
    assert processes.known(state, "sleeper") == started
    assert processes.stop(state, "sleeper")
    assert processes.known(state, "sleeper") is None
    assert not Path(f"/proc/{started.pid}").exists()


def test_it_says_that_nothing_ran(state: State) -> None:
    assert not processes.stop(state, "sleeper")


def test_it_never_signals_a_process_that_got_the_pid_later(state: State) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        ticks = processes.started_ticks(other.pid) or 0
        recycled = Record("sleeper", other.pid, ticks - 1, processes.boot_id())
        state.write_facts("services/sleeper.json", asdict(recycled))
        assert not processes.stop(state, "sleeper")
        state.write_facts("services/sleeper.json", asdict(replace(recycled, started_ticks=ticks, boot_id="earlier")))
        assert not processes.stop(state, "sleeper")
        assert processes.started_ticks(other.pid) == ticks
        other.kill()


def test_it_kills_the_whole_session_of_one_that_will_not_end(state: State) -> None:
    started = sleeper(state, STUBBORN)
    assert await_condition(lambda: "child" in processes.log_tail(state, "sleeper"), limit_s=10)
    child = int(processes.log_tail(state, "sleeper").split()[1])
    assert processes.stop(state, "sleeper", stop_signal=signal.SIGTERM, limit_s=0.2)
    assert processes.started_ticks(started.pid) is None
    assert await_condition(lambda: processes.started_ticks(child) is None, limit_s=10)


def test_it_names_what_a_failing_command_said() -> None:
    with pytest.raises(ToolError, match="out of cheese"):
        processes.run([sys.executable, "-c", "import sys; sys.exit('out of cheese')"])


def test_it_names_a_missing_program() -> None:
    with pytest.raises(ToolError, match="not installed"):
        processes.run(["sweetspot-no-such-program"])
