"""Two workers with one identity: a copied state directory, or a cloned machine."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from worker.contract.items import Outcome
from worker.contract.orders import InventoryOrder
from worker.journal import Journal, TemporaryFolder
from worker.link.session import FILE
from worker.tests.service import ROOT, Bench
from worker.tests.service_orders import POLICY, trial
from worker.tests.waiting import until

pytestmark = pytest.mark.service


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "scratch").mkdir()
    bench = Bench(tmp_path, POLICY.format(path=tmp_path / "scratch"))
    try:
        yield bench
    finally:
        bench.close()


@pytest.mark.parametrize(
    "arguments", [("start",), ("restore", "--yes"), ("forget",), ("layout", "single", "--build", "scratch")]
)
def test_a_copy_of_the_state_directory_changes_nothing_beside_the_worker(
    bench: Bench, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    bench.start()
    copy = tmp_path / "copy"
    shutil.copytree(bench.paths.state, copy)
    copy.chmod(0o700)
    for state in (copy, bench.paths.state):
        command = [sys.executable, "-m", "worker", "--state", str(state), "--policy", str(bench.paths.policy)]
        done = subprocess.run([*command, *arguments], cwd=ROOT, timeout=60, check=False, capture_output=True)
        assert done.returncode == 2, done.stderr


def test_a_worker_carries_out_only_orders_for_its_session(bench: Bench) -> None:
    bench.start()
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    session = bench.peer.hellos[-1].session
    assert session
    other = bench.send(replace(trial(bench), session="another"))
    own = bench.send(InventoryOrder(**{**bench.head(), "session": session}))
    assert bench.peer.wait_end(own).outcome is Outcome.DONE
    assert not bench.peer.items(other)


def test_a_worker_carries_out_orders_for_the_worker_before_it(bench: Bench) -> None:
    bench.start()
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    session = bench.peer.hellos[-1].session
    bench.kill()
    attempt = bench.send(InventoryOrder(**{**bench.head(), "session": session}))
    bench.start()
    assert bench.peer.wait_end(attempt).outcome is Outcome.DONE
    assert bench.peer.hellos[-1].earlier_sessions == (session,)


def test_a_worker_that_never_registered_keeps_the_session_of_its_first_report(bench: Bench) -> None:
    """The server gives it the host's session with whatever message comes first, and sends orders for this session."""
    bench.peer.refuses_hellos = True
    bench.launch()
    bench.peer.wait(lambda: bool(bench.peer.sessions))
    until(lambda: (bench.paths.state / FILE).read_text().split() == [*bench.peer.sessions], 20, bench.log_text)
    bench.kill()
    assert not bench.peer.hellos


def test_a_second_worker_takes_no_orders_and_restores_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.start()
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    order = trial(bench)
    bench.kill()
    bench.send(order)
    journal = Journal(bench.paths.journal)
    journal.save_folder(TemporaryFolder(str(tmp_path / "scratch/temporary.0"), ""))
    (tmp_path / "scratch/temporary.0").mkdir()
    bench.peer.session = "of the other worker"
    bench.launch()
    until(lambda: bench.peer.second_hellos > 0, 20, bench.log_text)
    with pytest.raises(AssertionError):
        bench.peer.wait(lambda: bool(bench.peer.items(order.attempt)), limit_s=5)
    assert bench.redis.llen(bench.queue) == 1
    assert journal.folders(), "what its copy of the journal holds belongs to the other worker"
    journal.close()
    assert bench.stop() == 0
