"""Tests that use the guest alone: hardware tests, removal of a drive during a trial, comparison of snapshots."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.console import step
from dev.lab import worker_archive
from dev.lab.hardware import REMOVABLE_SERIAL
from dev.lab.machine import Machine

TESTS = ("worker/settings/tests/test_lab_hardware.py", "worker/layouts/tests", "worker/tests/lab")
REMOVAL_TRIAL = """
import json, sys
from pathlib import Path
from worker.tests.lab.drives import allow
directory = Path(sys.argv[1])
allow(directory, sys.argv[2])
work = {"pattern": "randread", "block_bytes": 4096, "iodepth": 4, "runtime_s": 60, "prefill": False}
trial = {"streams": [{"target": sys.argv[2], "workload": work}]}
(directory / "trial.json").write_text(json.dumps(trial))
"""

Snapshot = Mapping[str, str]


class Suite:
    def __init__(self, machine: Machine, repository: Path) -> None:
        self._machine = machine
        self._repository = repository

    def send(self) -> None:
        with step("copying the worker and its tests into the guest"), tempfile.TemporaryDirectory() as directory:
            tar = Path(directory) / "guest.tar"
            worker_archive.pack(self._repository, tar)
            with tar.open("rb") as file:
                self._machine.run(
                    "sh",
                    "-c",
                    f"mkdir -p {worker_archive.PLACE} && tar -C {worker_archive.PLACE} -xzf -",
                    stdin=file.fileno(),
                )

    def snapshot(self) -> Snapshot:
        with step("taking a snapshot of everything that must not change"):
            said = self._python("-m", "worker.tests.lab.snapshot").stdout
        found: dict[str, str] = json.loads(said)
        return found

    def tests(self) -> list[str]:
        """The problems."""
        with step("running tests of settings, layouts, inventory and faults"):
            status = self._run_visibly(
                "-m", "pytest", "-q", "-o", "markers=root", "-p", "no:cacheprovider", "-rs", "--durations=5", *TESTS
            )
        return ["Tests failed; see their output above."] if status else []

    def remove_a_drive(self) -> list[str]:
        """Remove a drive from the running machine while fio uses it; the problems."""
        with step("removing a drive during a trial"):
            self._machine.run("mkdir", "-p", "-m", "700", "/root/pull/state")
            self._python("-c", REMOVAL_TRIAL, "/root/pull", REMOVABLE_SERIAL)
            paths = ("--state", "/root/pull/state", "--policy", "/root/pull/policy.toml")
            with self._machine.start(
                *self._command("-m", "worker", *paths, "run", "/root/pull/trial.json", "--json")
            ) as run:
                items = self._follow(run)
            self._machine.insert_drive()
            self._machine.run("udevadm", "settle")
        return _problems(items)

    def _follow(self, run: "subprocess.Popen[str]") -> list[dict[str, object]]:
        """The trial's items. The drive is removed after its first sample."""
        items: list[dict[str, object]] = []
        removed = False
        for line in run.stdout or ():
            items.append(json.loads(line))
            if not removed and items[-1]["type"] == "sample":
                self._machine.remove_drive()
                removed = True
        return items

    def _command(self, *arguments: str) -> Sequence[str]:
        return ("env", "-C", worker_archive.PLACE, "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", "python3", *arguments)

    def _python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self._machine.run(*self._command(*arguments))

    def _run_visibly(self, *arguments: str) -> int:
        return self._machine.run_visibly(*self._command(*arguments))


def _problems(items: Sequence[Mapping[str, object]]) -> list[str]:
    end = items[-1] if items else {}
    if end.get("type") != "finished":
        return ["The worker did not report the end of the trial."]
    if (end["outcome"], end["code"]) != ("failed", "device_gone"):
        return [f"The trial ended as {end['outcome']} {end['code']}: {end['message']}"]
    return []


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """One line for each difference."""
    names = sorted(before.keys() | after.keys())
    nothing = "(missing)"
    return [
        f"{name}: {before.get(name, nothing)} → {after.get(name, nothing)}"
        for name in names
        if before.get(name) != after.get(name)
    ]
