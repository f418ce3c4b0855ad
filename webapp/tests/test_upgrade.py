"""Server and worker of neighbouring contract versions, both real: they understand or refuse each other."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from webapp.runs.models import Run, RunState
from webapp.tests import neighbour
from webapp.tests.system import ROOT, StorageHost, System
from webapp.tests.whole_runs import assert_nothing_open, assert_whole, plan, samples_of, scratch

pytestmark = [pytest.mark.pipeline]

BOTH, NEW = (2, 3), (3, 3)  # oldest and newest version understood; ours is 2 alone
Versions = tuple[int, int]


def built_for(versions: Versions) -> list[str]:
    """What stands for `python -m` in the command line of a program of these versions."""
    return [sys.executable, str(Path(neighbour.__file__)), *map(str, versions)]


def as_worker(storage: StorageHost, versions: Versions | None) -> None:
    """The host's worker is of these versions from its next start on; None: as it is."""
    storage.wrap = (lambda command: [*built_for(versions), *command[2:]]) if versions else (lambda command: command)


@pytest.fixture(autouse=True)
def as_it_was(system: System, storage: StorageHost) -> Iterator[None]:
    yield
    as_worker(storage, None)
    system.web.ensure_running()


@pytest.fixture
def newer_web(system: System) -> Iterator[None]:
    """A web tier that also supports a newer version of the contract."""
    usual = system.web.program
    system.web.stop()
    system.web.program = built_for(BOTH)
    system.web.start()
    yield
    system.web.stop()
    system.web.program = usual


def ended_well(system: System, run: Run) -> bool:
    system.until_ended(run, limit_s=60)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    assert_whole(run)
    assert_nothing_open()
    return True


def with_a_spool(system: System, storage: StorageHost) -> Run:
    """A run that was measured while the server was away: all its reports lie on the host's disk."""
    storage.stop()
    run, seen = system.start_run(plan(), scratch(storage)), len(storage.log)
    system.web.kill()
    storage.launch()
    system.until(lambda: "Ended: done" in storage.log[seen:], limit_s=60, what="the trial ends on the host")
    storage.stop()
    assert not samples_of(run).exists()
    return run


def test_it_upgrades_the_server_first_and_the_worker_later(
    system: System, storage: StorageHost, newer_web: None
) -> None:
    """In between the worker is one version behind; what it had on its disk when it was upgraded is taken."""
    assert ended_well(system, system.start_run(plan(), scratch(storage)))
    assert storage.host.contract == 2
    run = with_a_spool(system, storage)
    system.web.start()
    as_worker(storage, BOTH)
    storage.start()
    assert ended_well(system, run)
    assert storage.host.contract == 3
    assert storage.enrolment["contract"] == 3


def test_it_goes_on_with_a_worker_one_version_ahead(system: System, storage: StorageHost) -> None:
    storage.stop()
    as_worker(storage, BOTH)
    storage.start()
    assert storage.host.contract == 2
    assert ended_well(system, system.start_run(plan(), scratch(storage)))


def test_it_refuses_a_worker_of_no_common_version_in_words_and_loses_nothing(
    system: System, storage: StorageHost
) -> None:
    """The worker keeps what it has until the two are brought together."""
    run = with_a_spool(system, storage)
    system.web.start()
    as_worker(storage, NEW)
    argv = storage.command("doctor")
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "Hello is of contract version 3; this side understands 2 to 2. Upgrade this side." in done.stdout
    seen = len(storage.log)
    storage.launch()
    system.until(lambda: "Reports stay on disk" in storage.log[seen:], limit_s=30, what="reports are refused")
    storage.stop()
    assert not samples_of(run).exists()
    as_worker(storage, None)
    storage.start()
    assert ended_well(system, run)
