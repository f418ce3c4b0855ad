"""`make test`: all tests against a PostgreSQL and a Redis that exist only for this one call."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dev import node
from dev.console import say, step
from dev.stack import lifecycle, processes, services
from dev.stack.processes import Record
from dev.stack.state import CLONE, State, default_state
from dev.testing import outcomes
from dev.testing.outcomes import Outcomes
from dev.testing.pytest_plugin import OUTCOMES_VARIABLE

PYTEST = (sys.executable, "-m", "pytest", "-p", "dev.testing.pytest_plugin")
TESTS_FAILED, NO_TESTS = 1, 5  # pytest's exit statuses for what is no trouble of its own
PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("side by side", ("-n", "2", "--dist", "loadfile", "-m", "not pipeline")),
    # They wait for fio more than they compute.
    ("whole systems, three at a time", ("-n", "3", "--dist", "loadfile", "-m", "pipeline and not alone")),
    # What measures speed or harms everything has the machine to itself.
    ("one at a time", ("-m", "alone")),
)
PASSED_AGAIN = CLONE / ".build" / "passed-only-again.txt"


def main(arguments: str) -> int:
    """Run Vitest and pytest, or pytest alone with `arguments`; 0 where everything passed."""
    _sweep()
    with _stores() as state:
        env = _environment(state)
        if arguments:
            return subprocess.run([*PYTEST, *shlex.split(arguments)], cwd=CLONE, env=env, check=False).returncode
        front_end = _vitest(env, state.root / "vitest.json")
        return close(Suite(CLONE, env, state.root), PARTS, front_end, PASSED_AGAIN)


@contextmanager
def _stores() -> Iterator[State]:
    state = default_state(f"test-{os.getpid()}")
    state.prepare()
    state.write_facts("owner.json", asdict(_myself()))
    try:
        with step("PostgreSQL and Redis for the tests"):
            lifecycle.start_stores(state, careless=True)
        yield state
    finally:
        lifecycle.remove(state)


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
            lifecycle.remove(state)


def _environment(state: State) -> dict[str, str]:
    """No address of a web tier: there is none, and tests that start one give it its own."""
    env = services.environment(state)
    del env["SWEETSPOT_PUBLIC_URL"]
    return env


@dataclass(frozen=True)
class Suite:
    """Where pytest is called, with which environment; `notes` is a folder for what it writes down."""

    folder: Path
    env: Mapping[str, str]
    notes: Path

    def run(self, *options: str) -> Outcomes:
        path = self.notes / "outcomes"
        path.unlink(missing_ok=True)
        env = {**self.env, OUTCOMES_VARIABLE: str(path)}
        status = subprocess.run([*PYTEST, *options], cwd=self.folder, env=env, check=False).returncode
        told = outcomes.read(path)
        if status in (0, NO_TESTS) or (status == TESTS_FAILED and told.failed):
            return told
        return told + Outcomes(broken=(f"pytest {shlex.join(options)} ended with status {status}",))

    def passed_again(self, test: str) -> bool:
        say(f"Once more, alone: {test}")
        return test in self.run(test).passed


def close(suite: Suite, parts: Sequence[tuple[str, tuple[str, ...]]], others: Outcomes, note: Path) -> int:
    """Run the parts, give a few failures a second try, say how it all ended; 0 where everything passed.

    `others`: how tests ended that are not pytest's. `note` is written where a test passed only when run again.
    """
    ended = others
    for how, options in parts:
        say(f"Server and worker (pytest, {how}):")
        ended += suite.run(*options)
    again = [test for test in outcomes.worth_another_try(ended) if suite.passed_again(test)]
    note.unlink(missing_ok=True)
    if again:
        _tell(again, ended, note)
    ended = ended.mended(again)
    for line in (*(f"failed: {test}" for test in ended.failed), *ended.broken, ended.closing_line):
        say(line)
    return 0 if ended.good else 1


def _tell(again: Sequence[str], ended: Outcomes, note: Path) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("\n\n".join(f"{test}\n{ended.failed[test]}" for test in again) + "\n")
    say(f"passed only when run again alone: {', '.join(again)}")
    say(f"What they said at first: {note}")


def _vitest(env: Mapping[str, str], report: Path) -> Outcomes:
    """The front end's own tests; none of them waits for anything, so none gets a second try."""
    say("Front end (Vitest):")
    argv = node.command("vitest/vitest.mjs", "run", "--reporter=default", "--reporter=json", f"--outputFile={report}")
    status = subprocess.run(argv, cwd=node.FRONTEND, env=env, check=False).returncode
    broken = (f"Vitest ended with status {status}",) if status else ()
    tests = json.loads(report.read_text())["testResults"] if report.exists() else []
    return _of_vitest(tests) + Outcomes(broken=broken)


def _of_vitest(files: Sequence[Mapping[str, object]]) -> Outcomes:
    """From its JSON: per file a name and its tests (assertionResults) with fullName, status and failureMessages."""
    by_status: dict[str, dict[str, str]] = {"passed": {}, "failed": {}}
    for file in files:
        for test in file["assertionResults"]:  # type: ignore[attr-defined]
            said = by_status.setdefault(test["status"], {})
            said[f"{file['name']} > {test['fullName']}"] = "\n".join(test["failureMessages"])
    skipped = (name for status in by_status.keys() - {"passed", "failed"} for name in by_status[status])
    return Outcomes(frozenset(by_status["passed"]), frozenset(skipped), by_status["failed"])
