"""`make test`: all tests against a PostgreSQL and a Redis that exist only for this one call."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from webapp.local import node, processes, services, stack
from webapp.local.console import say, step
from webapp.local.processes import Record
from webapp.local.pytest_plugin import COUNTED, COUNTS_VARIABLE
from webapp.local.state import CLONE, State, default_state

PYTEST = (sys.executable, "-m", "pytest", "-p", "webapp.local.pytest_plugin")
NO_TESTS = 5  # pytest's exit status when it found none
PARALLEL = ("-n", "2", "--dist", "loadfile", "-m", "not pipeline")
# What starts the whole system or measures speed has the machine to itself.
ALONE = ("-m", "pipeline")


def main(arguments: str) -> int:
    """Run Vitest and pytest, or pytest alone with `arguments`; the exit status of what failed."""
    _sweep()
    with _stores() as state:
        env = _environment(state)
        if arguments:
            return _run([*PYTEST, *shlex.split(arguments)], env)
        statuses = [_vitest(env), _pytest("side by side", PARALLEL, env), _pytest("one at a time", ALONE, env)]
        say(_closing_line(state))
    return next((status for status in statuses if status), 0)


@contextmanager
def _stores() -> Iterator[State]:
    state = default_state(f"test-{os.getpid()}")
    state.prepare()
    state.write_facts("owner.json", asdict(_myself()))
    try:
        with step("PostgreSQL and Redis for the tests"):
            stack.start_stores(state, careless=True)
        yield state
    finally:
        stack.remove(state)


def _myself() -> Record:
    pid = os.getpid()
    return Record("tests", pid, processes.started_ticks(pid) or 0, processes.boot_id())


def _sweep() -> None:
    """Remove what earlier calls left behind that were killed."""
    pattern = default_state("test-").root
    for root in pattern.parent.glob(f"{pattern.name}*"):
        state = State(root)
        owner = state.read_facts("owner.json")
        if root.stat().st_uid == os.getuid() and not (owner and processes.alive(Record(**owner))):
            stack.remove(state)


def _environment(state: State) -> dict[str, str]:
    """No address of a web tier: there is none, and tests that start one give it its own."""
    env = {**services.environment(state), COUNTS_VARIABLE: str(state.root / "counts")}
    del env["SWEETSPOT_PUBLIC_URL"]
    return env


def _vitest(env: dict[str, str]) -> int:
    say("Front end (Vitest):")
    return _run(node.command("vitest/vitest.mjs", "run"), env, folder=node.FRONTEND)


def _pytest(how: str, options: tuple[str, ...], env: dict[str, str]) -> int:
    say(f"Server and worker (pytest, {how}):")
    status = _run([*PYTEST, *options], env)
    return 0 if status == NO_TESTS else status


def _run(argv: list[str], env: dict[str, str], *, folder: Path = CLONE) -> int:
    return subprocess.run(argv, cwd=folder, env=env, check=False).returncode


def _closing_line(state: State) -> str:
    counts = [json.loads(line) for line in state.read("counts").splitlines()]
    total = {name: sum(part[name] for part in counts) for name in COUNTED}
    return f"{total['passed']} passed, {total['failed'] + total['error']} failed, {total['skipped']} skipped"
