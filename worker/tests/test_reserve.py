"""A full disk under the state directory: a small file system in memory, filled to the last byte."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from worker.contract.items import Finished, Outcome
from worker.contract.orders import InventoryOrder, SettingOperation, SettingOrder, SettingRequest
from worker.contract.workload import FioWorkload, IoEngine, Pattern, TargetRef
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal, JournalError
from worker.kernel.files import FILE
from worker.kernel.targets import OpenTarget
from worker.layouts import building
from worker.layouts.tests.rack import Rack, racked
from worker.link.client import Client
from worker.link.reporter import Reporter
from worker.link.spool import Spool
from worker.orders.context import HostContext, code_of
from worker.orders.restore import restore
from worker.process.scope import open_scope
from worker.recipes.layouts.text import parse
from worker.settings import session
from worker.tests.service import Bench

pytestmark = rig.needs_root
SIZE_BYTES = 24 * rig.MIB


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir(mode=0o700)
    rig.run("mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES},mode=0700", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        rig.run("umount", "--lazy", str(folder))


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    assert os.statvfs(folder).f_bavail == 0
    return filler


def test_a_full_disk_does_not_prevent_restoring(state: Path, tmp_path: Path) -> None:
    with racked(tmp_path) as rack:
        journal = Journal(state / "journal.db")
        context = HostContext(state, rack.folder / "policy.toml", journal, CompleteFiles(tmp_path / "files.db"))
        with rig.loop(rig.sparse(tmp_path / "one.img")) as device:
            name = Path(device).name
            node = Path(f"/sys/block/{name}/queue/read_ahead_kb")
            node.write_text("256")
            allowed = rig.load(tmp_path, rig.block(device, tmp_path / "one.img", settings=["*"]))
            target = {0: OpenTarget(path=device, device=name, target="disk")}
            session.apply_settings([SettingRequest(name="read_ahead_kb", value="64")], "r", target, allowed, journal)
            _build(rack, state, journal)
            fill(state)
            assert [(item.restored, item.note) for item in restore(context)] == [(True, ""), (True, "")]
            assert (node.read_text(), journal.baselines(), journal.layouts()) == ("256\n", (), ())


def _build(rack: Rack, state: Path, journal: Journal) -> None:
    building.build(
        parse("single / ext4"), rack.policy.targets[:1], rack.armed,
        allowed=rack.policy, key="t1", run="r", state=state, journal=journal,
    )  # fmt: skip


def test_a_full_disk_does_not_prevent_the_start(state: Path) -> None:
    journal = Journal(state / "journal.db")
    journal.receive("{}", "a")
    journal.close()
    fill(state)
    again = Journal(state / "journal.db")
    again.start("a")
    again.finish("a")
    assert again.open_attempts() == ()


def test_nothing_new_begins_until_there_is_space_again(state: Path) -> None:
    journal = Journal(state / "journal.db")
    journal.require_reserve()
    filler = fill(state)
    assert (state / FILE).exists()
    journal.reserve.free_if_needed()
    with pytest.raises(JournalError, match="Free 10 MiB") as error:
        journal.require_reserve()
    assert error.value.code == "state_disk_full"
    filler.unlink()
    journal.require_reserve()
    assert (state / FILE).stat().st_blocks * 512 >= 8 * rig.MIB


def test_a_full_disk_does_not_keep_the_end_of_an_attempt(state: Path) -> None:
    journal = Journal(state / "journal.db")
    spool = Spool(state / "spool.db", reserve_bytes=0)
    reporter = Reporter(spool, Client("http://127.0.0.1:1", "token"))
    fill(state)
    journal.reserve.free_if_needed()
    reporter.finish("a1", Finished(at=time.time(), outcome=Outcome.FAILED, code="fio_error", message="x" * 50_000))
    assert spool.is_finished("a1")


def test_a_full_disk_does_not_keep_an_order(state: Path) -> None:
    """Such as the order to restore settings."""
    journal = Journal(state / "journal.db")
    fill(state)
    numbers = range(2000)
    assert all(journal.receive("{}" * 500, f"a{number}") for number in numbers)
    assert len(journal.open_attempts()) == len(numbers)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A worker whose state directory is on a small disk."""
    for name in ("state", "scratch"):
        (tmp_path / name).mkdir(mode=0o700)
    rig.run("mount", "-t", "tmpfs", "-o", f"size={80 * rig.MIB},mode=0700", "tmpfs", str(tmp_path / "state"))
    bench = Bench(tmp_path, f'[[target]]\nid = "scratch"\nkind = "directory"\npath = "{tmp_path / "scratch"}"\n')
    try:
        bench.start()
        yield bench
    finally:
        bench.close()
        rig.run("umount", "--lazy", str(tmp_path / "state"))


@pytest.mark.service
def test_a_trial_waits_while_the_disk_is_full(bench: Bench) -> None:
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    (found,) = bench.peer.hellos[-1].targets
    target = TargetRef(id=found.id, kind=found.kind, path=found.path, stable_id=found.stable_id, serial=found.serial)
    work = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, size_bytes=rig.MIB, runtime_s=1, direct=False)
    filler = fill(bench.paths.state)
    attempt = bench.send(bench.trial(target, work))
    time.sleep(3)  # the subject is that the trial does not end
    assert bench.peer.end_of(attempt) is None
    filler.unlink()
    end = bench.peer.wait_end(attempt)
    assert end.outcome is Outcome.DONE, end.message


@pytest.mark.service
def test_a_worker_that_cannot_start_tells_the_server_why_and_starts_once_there_is_space(bench: Bench) -> None:
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    assert not bench.peer.hellos[-1].state_disk_full
    bench.kill()
    for name in (FILE, "spool.db-shm", "journal.db-shm"):
        (bench.paths.state / name).unlink(missing_ok=True)
    filler = fill(bench.paths.state)
    hellos = len(bench.peer.hellos)
    bench.launch()
    bench.peer.wait(lambda: len(bench.peer.hellos) > hellos)
    assert bench.peer.hellos[-1].state_disk_full
    assert bench.peer.hellos[-1].targets
    filler.unlink()
    bench.await_log(r"sweetspot@\S+ ready")
    bench.peer.wait(lambda: not bench.peer.hellos[-1].state_disk_full)


@pytest.mark.service
def test_an_inventory_goes_out_on_a_full_disk(bench: Bench) -> None:
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    fill(bench.paths.state)
    end = bench.peer.wait_end(bench.send(InventoryOrder(**bench.head())), limit_s=40)
    assert (end.outcome, end.code) == (Outcome.DONE, "")
    assert bench.peer.hellos[-1].state_disk_full


@pytest.mark.service
def test_a_setting_is_refused_with_a_code_on_a_full_disk(bench: Bench) -> None:
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    (found,) = bench.peer.hellos[-1].targets
    target = TargetRef(id=found.id, kind=found.kind, path=found.path, stable_id=found.stable_id, serial=found.serial)
    fill(bench.paths.state)
    order = SettingOrder(
        target=target, name="vm.dirty_ratio", operation=SettingOperation.SET, value="5", **bench.head()
    )
    end = bench.peer.wait_end(bench.send(order), limit_s=40)
    assert (end.outcome, end.code) == (Outcome.FAILED, "state_disk_full")


def test_a_journal_that_a_full_disk_makes_unreadable_is_not_called_damaged(state: Path) -> None:
    """Nobody may be told to delete it."""
    Journal(state / "journal.db").close()
    (state / FILE).unlink()
    fill(state)
    with pytest.raises(JournalError) as caught:
        Journal(state / "journal.db")
    assert caught.value.code == "state_disk_full"


def test_confirmed_and_refused_batches_are_sent_again_from_a_full_disk(state: Path) -> None:
    spool = Spool(state / "spool.db", reserve_bytes=0)
    for _ in range(50):
        spool.append("a", [b"1" * 4000])
    filler = fill(state)
    spool.confirm("a", 50)
    spool.refuse("a", "gap", "")
    assert spool.backlog()[0] in (0, 50)
    filler.unlink()
    spool.confirm("a", 50)
    assert spool.empty


def test_the_record_of_a_program_is_written_on_a_full_disk(state: Path) -> None:
    Journal(state / "journal.db").close()
    fill(state)
    with open_scope(state, "one", drives=("wwn-1",)):
        assert [path.name for path in (state / "scopes").iterdir()] == ["one.json"]
    assert list((state / "scopes").iterdir()) == []


def test_an_error_of_a_full_disk_elsewhere_is_not_blamed_on_the_state_disk(state: Path) -> None:
    journal = Journal(state / "journal.db")
    error = OSError(errno.ENOSPC, "")
    assert code_of(error, journal) == "internal_error"
    fill(state)
    assert code_of(error, journal) == "state_disk_full"
    assert code_of(ValueError(), journal) == "internal_error"
