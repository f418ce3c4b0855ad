"""`make test` and `make test-quick`: tests against a private PostgreSQL and Redis that exist for one call only."""

import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from dev import node
from dev.console import say, step
from dev.stack import lifecycle, services
from dev.stack.state import REPOSITORY, State
from dev.stack.temporary import temporary
from dev.testing.pytest_plugin import SECOND_TRIES_VARIABLE, SECOND_TRY

PYTEST = (sys.executable, "-m", "pytest", "-p", "dev.testing.pytest_plugin", "-p", "dev.testing.waiting")
QUICK = ("-m", "not (pipeline or browser or service or root or slow or alone)")
NO_TESTS = 5  # pytest's exit status
SECOND_TRIES = REPOSITORY / ".build" / "second-tries.txt"
MAX_SECOND_TRIES = 3
FIO_RESULTS = "SWEETSPOT_FIO_RESULTS"  # folder of a large collection of fio's files, for test_corpus.py


@dataclass(frozen=True)
class Part:
    """One call of a test program. It must write JUnit XML to the report named in `argv`."""

    name: str
    argv: Sequence[str]
    report: Path
    folder: Path = REPOSITORY
    no_tests_status: int = 0


def main(arguments: str = "", *, quick: bool = False) -> int:
    """Run Vitest and pytest, or pytest alone with `arguments`; 0 if everything passed.

    `quick` leaves out the tests that start a whole system, a worker or a browser, use loop devices, measure speed, or
    are marked `slow`.
    """
    with temporary("test") as state:
        with step("starting PostgreSQL and Redis for the tests"):
            lifecycle.start_stores(state, durable=False)
        env = environment(state)
        if arguments:
            return subprocess.run([*PYTEST, *shlex.split(arguments)], cwd=REPOSITORY, env=env, check=False).returncode
        parts = [_quick(state.root)] if quick else _pytest(state.root)
        return run_parts([_vitest(state.root), *parts], env, SECOND_TRIES)


def environment(state: State) -> dict[str, str]:
    """Without the address of a web tier: a test that starts one sets it. With the folder of real results, if any."""
    env = services.environment(state)
    del env["SWEETSPOT_PUBLIC_URL"]
    return env | {name: os.environ[name] for name in (FIO_RESULTS,) if name in os.environ}


def _vitest(folder: Path) -> Part:
    report = folder / "vitest.xml"
    options = ("run", "--reporter=default", "--reporter=junit", f"--outputFile={report}")
    return Part("Front end (Vitest)", node.command("vitest/vitest.mjs", *options), report, node.FRONTEND)


def _pytest(folder: Path) -> list[Part]:
    # Half of the time tests wait for fio, a browser or another process: five keep two cores busy.
    # The plugin puts long tests first, therefore xdist must not reorder them.
    parallel = ("-n", "5", "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not alone")
    return [
        pytest_part("in parallel", folder / "1.xml", *parallel),
        pytest_part("alone", folder / "2.xml", "-m", "alone", "webapp/tests"),
    ]


def _quick(folder: Path) -> Part:
    return pytest_part("quick", folder / "1.xml", "-n", "3", "--dist", "loadfile", *QUICK)


def pytest_part(name: str, report: Path, *options: str, folder: Path = REPOSITORY) -> Part:
    argv = (*PYTEST, f"--junitxml={report}", *options)
    return Part(f"Server and worker (pytest, {name})", argv, report, folder, NO_TESTS)


def run_parts(parts: Sequence[Part], env: Mapping[str, str], second_tries: Path) -> int:
    """Run all parts and print totals; 0 if everything passed with at most MAX_SECOND_TRIES second tries.

    `second_tries`: file for the first failures of tests that ran twice.
    """
    second_tries.parent.mkdir(parents=True, exist_ok=True)
    second_tries.unlink(missing_ok=True)
    env = {**env, SECOND_TRIES_VARIABLE: str(second_tries)}
    outcomes: dict[str, str] = {}
    problems = [problem for part in parts if (problem := _run(part, env, outcomes))]
    problems += _report_second_tries(second_tries)
    problems += [f"failed: {test}" for test, outcome in outcomes.items() if outcome == "failed"]
    counts = Counter(outcomes.values())
    totals = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
    say("\n".join([*problems, totals]))
    return 1 if problems else 0


def _run(part: Part, env: Mapping[str, str], outcomes: dict[str, str]) -> str:
    """Add the outcome of each test to `outcomes`. The problem, "" if the part succeeded."""
    say(f"{part.name}:")
    status = subprocess.run(part.argv, cwd=part.folder, env=env, check=False).returncode
    if not part.report.exists():
        return f"{part.name}: ended with status {status} and no report of its tests"
    outcomes.update(read_report(part.report))
    return "" if status in (0, part.no_tests_status) else f"{part.name}: ended with status {status}"


def read_report(path: Path) -> dict[str, str]:
    """Test -> passed, failed or skipped, from JUnit XML. A test whose teardown failed has failed."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 - written by our own test programs
        name = f"{case.get('classname')}::{case.get('name')}"
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        found[name] = "failed" if "failed" in (outcome, found.get(name)) else outcome
    return found


def _report_second_tries(path: Path) -> list[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    tests = [line.removeprefix(SECOND_TRY) for line in lines if line.startswith(SECOND_TRY)]
    if not tests:
        return []
    say("\n".join([*(f"second try: {test}" for test in tests), f"Their first failures are in {path}"]))
    return (
        [f"{len(tests)} second tries; at most {MAX_SECOND_TRIES} are allowed"] if len(tests) > MAX_SECOND_TRIES else []
    )
