"""Every make target and every development tool runs in its smallest form, or has a reason why not.

The tools run as commands, in three lanes at the same time. Those that need a whole installation share one, which the
first of them starts and the last of them removes. Their figures are not judged here: other tests disturb them.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.presets import drives
from dev.stack.state import BASE_VARIABLE, REPOSITORY, State
from dev.stack.temporary import SHARED_VARIABLE

LIMIT_S = 900  # of a tool that hangs; on two quiet cores, none takes a minute
END_LIMIT_S = 120  # of a tool that was interrupted
MAKEFILE = (REPOSITORY / "Makefile").read_text()
Done = subprocess.CompletedProcess[str]


def figures(done: Done) -> int:
    """The number of figures that a tool prints as JSON with `--json`. Fails if there are none, as after a traceback."""
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    texts = re.findall(r"^\[\n.*?^\]$", done.stdout, re.MULTILINE | re.DOTALL)
    assert texts, done.stdout + done.stderr
    rows = [row for text in texts for row in json.loads(text)]
    assert all(row["count"] and isinstance(row["met"], bool) for row in rows)
    return len(rows)


def succeeded(done: Done) -> bool:
    assert done.returncode == 0, done.stdout + done.stderr
    return True


def rates(done: Done) -> int:
    """The number of rows of its tables. A rate of so few pages says nothing, so status 1 is no failure."""
    rows = re.findall(r"^\| .+ \|$", done.stdout, re.MULTILINE)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert rows, done.stdout + done.stderr
    return len(rows)


@dataclass(frozen=True)
class Smoke:
    """The smallest form of a tool: `python -m MODULE ARGUMENTS`. `target` is its make target, "" if it has none."""

    target: str
    module: str
    arguments: Sequence[str]
    check: Callable[[Done], object] = succeeded

    @property
    def name(self) -> str:
        return " ".join((self.target or self.module, *self.arguments))[:60]


INGEST = ("--hosts=2", "--seconds=2", "--quiet-seconds=1", "--trials=2", "--pairs=1", "--post-seconds=0.5", "--json")
IMPORT = ("--json-files=30", "--logs=60", "--rows=12", "--json")
SHARING = (  # one installation, in this order: those that stop the server come first
    Smoke("bench-ingest", "dev.bench.ingest", ("posts", "resend", "hosts", "overload", *INGEST), figures),
    Smoke("demo", "dev", ("demo", "smallest")),
    Smoke("status", "dev", ("status",)),
    Smoke("screens", "dev", ("screens", "--only=plans", "--folder={folder}")),
    Smoke("bench", "dev.bench.worker", ("--pairs=1", "--seconds=1", "--trials=2", "--json"), figures),
    Smoke("truth", "dev.truth", ("repeats", "--smallest", "--json"), figures),
    Smoke("bench-ingest", "dev.bench.ingest", ("memory", "--minutes=0.1", "--json"), figures),
    Smoke("bench-import", "dev.bench.imports", IMPORT, figures),
    Smoke("stop", "dev", ("stop",)),
    Smoke("clean", "dev", ("clean",)),
)
ALONE = (
    Smoke("truth", "dev.truth", ("drives", "events", "--smallest", "--json"), figures),
    Smoke("truth-search", "dev.truth.search", ("--seeds=2", "--combinations", "200", "--processes=1")),
    Smoke("truth-statistics", "dev.truth.statistics", ("--pages=2", "--scenarios=2", "--processes=1"), rates),
    Smoke("findings", "dev.findings", ("--pages=1", "--combinations=2", "--processes=1"), rates),
    Smoke("bench-size", "dev.bench.pages", ("--results=1", "--samples=1", "--requests=1", "--json"), figures),
    Smoke("docs", "dev.docs", ()),
    Smoke("lab", "dev.lab", ("--plan",)),
    Smoke("server-check", "dev.server_check", ("--plan",)),
)
PRESETS = (Smoke("presets", "dev.presets", ("first-look", "--points=1")),)
LANES = (SHARING, ALONE, PRESETS)
SMOKES = [smoke for lane in LANES for smoke in lane]

# Make targets that are not run here -> the test that runs the same code, or the reason why none can.
TESTED: Mapping[str, str] = {
    "faults": "dev/faults/tests/test_faults.py",
    "compose-env": "webapp/tests/test_containers.py",
    "compose-check": "webapp/tests/test_containers.py",
    "release": "dev/release/tests/test_release.py",
    "wheelhouse": "webapp/hosts/tests/test_wheelhouse.py",
    "test": "dev/testing/tests/test_runner.py",
    "test-quick": "dev/testing/tests/test_runner.py",
}
REASONS: Mapping[str, str] = {
    "help": "it prints the comments of this Makefile",
    "check": "CI runs it beside the tests",
    "fuzz": "it runs tests of this suite with more cases",
    "distributions": "it needs a mirror of a distribution and minutes for each root",
}


def make_targets() -> list[str]:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert phony
    return phony[1].split()


@pytest.mark.parametrize("target", make_targets())
def test_a_make_target_has_a_smallest_form_a_test_or_a_reason(target: str) -> None:
    assert (target in {smoke.target for smoke in SMOKES}) + (target in TESTED) + (target in REASONS) == 1
    assert target not in TESTED or (REPOSITORY / TESTED[target]).is_file()


def test_every_module_that_is_a_command_is_called_by_a_make_target_or_run_here() -> None:
    sources = {path: path.read_text() for path in (REPOSITORY / "dev").rglob("*.py")}
    commands = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__main__")
        for path, source in sources.items()
        if re.search(r'^if __name__ == "__main__":', source, re.MULTILINE)
    }
    called = {f"dev{name}" for name in re.findall(r"\$\(DEV\)((?:\.\w+)*)", MAKEFILE)}
    scripts = {
        "dev.lab.port_forward",  # QEMU starts it; dev/lab/tests/test_lab.py
        "dev.faults.proxy",
        "dev.faults.behind_controller",  # `make faults` starts them; dev/faults/tests
        "dev.job_file_proof",  # dev/tests/test_job_file_proof.py
        "dev.truth.grid_recording",
        "dev.truth.measured_grids",
        "dev.truth.stop_rules",  # dev/truth/tests
        "dev.release.prepare",
        "dev.release.squash",  # dev/release/tests
        "dev.worker_lock",  # webapp/tests/test_worker_lock.py
    }
    assert commands - called - {smoke.module for smoke in SMOKES} - scripts == set()


def test_the_fuzzing_names_tests_that_exist() -> None:
    lines = re.search(r"^FUZZ := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert lines
    paths = re.findall(r"\S+\.py", lines[1])
    assert paths
    assert [path for path in paths if not (REPOSITORY / path).is_file()] == []


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Smoke, "Future[Done]"]]:
    """The end of each command. The lanes run at the same time, the commands of a lane one after another."""
    folder = tmp_path_factory.mktemp("tools")
    base = Path("/var/tmp") / f"sweetspot-tools-{os.getpid()}"  # short: paths of Unix sockets are limited
    base.mkdir(mode=0o711)
    ended: dict[Smoke, Future[Done]] = {smoke: Future() for smoke in SMOKES}
    with ThreadPoolExecutor(len(LANES)) as lanes:
        for lane in LANES:
            shared = {SHARED_VARIABLE: str(base / "shared")} if lane is SHARING else {}
            lanes.submit(_run_lane, lane, ended, folder, {BASE_VARIABLE: str(base), **shared})
        yield ended
    left = [State(path) for path in base.iterdir()]
    for state in left:
        drives.remove(state)
    base.rmdir()
    assert [state.root.name for state in left] == []


def _run_lane(
    lane: Sequence[Smoke], ended: Mapping[Smoke, "Future[Done]"], folder: Path, variables: Mapping[str, str]
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWEETSPOT_", "DJANGO_"))}
    for smoke in lane:
        arguments = [argument.format(folder=folder) for argument in smoke.arguments]
        try:
            ended[smoke].set_result(_run([smoke.module, *arguments], {**environment, **variables}))
        except Exception as error:  # noqa: BLE001 - raised by the test that waits for it
            ended[smoke].set_exception(error)


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> Done:
    """The end of a command. One that hangs is interrupted, so that it removes its services."""
    command = subprocess.Popen(
        [sys.executable, "-m", *argv], cwd=REPOSITORY, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        output, errors = command.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        command.send_signal(signal.SIGINT)
        threading.Timer(END_LIMIT_S, command.kill).start()
        output, errors = command.communicate()
    return Done(command.args, command.returncode, output, errors)


@pytest.mark.pipeline
@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="requires root for loop devices")
@pytest.mark.parametrize("smoke", SMOKES, ids=lambda smoke: smoke.name)
def test_its_smallest_form_runs(runs: Mapping[Smoke, "Future[Done]"], smoke: Smoke) -> None:
    assert smoke.check(runs[smoke].result())
