"""What could not be restored is tried again."""

import time
from pathlib import Path

import pytest

from worker.contract.orders import CloseRunOrder
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Baseline, Journal
from worker.orders import executor
from worker.orders.context import HostContext, OrderContext
from worker.orders.executor import Executor
from worker.process.control import Control

pytestmark = rig.needs_root


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return rig.sparse(tmp_path / "disk.img")


@pytest.fixture
def journal(tmp_path: Path, file: Path) -> Journal:
    """With a setting of a device that is absent."""
    journal = Journal(tmp_path / "journal.db")
    journal.save_baselines(
        [
            Baseline(
                run="r", stable_id=f"loop:{file}", name="nomerges", device="loop999", boot_id=journal.boot_id,
                survives_reboot=False, before="0", written="2", pending=False, requested=True,
            )
        ]
    )  # fmt: skip
    return journal


@pytest.fixture
def context(tmp_path: Path, journal: Journal) -> HostContext:
    return HostContext(tmp_path, tmp_path / "policy.toml", journal, CompleteFiles(tmp_path / "files.db"))


@pytest.fixture
def orders(context: HostContext, monkeypatch: pytest.MonkeyPatch) -> Executor:
    monkeypatch.setattr(executor, "RETRY_S", 0.0)
    return Executor("h", context, None, None, ask_start=None, on_crash=lambda: None)  # type: ignore[arg-type]


def test_a_setting_is_restored_when_its_drive_appears_late(orders: Executor, journal: Journal, file: Path) -> None:
    orders._restore_all()
    assert len(journal.baselines()) == 1
    with rig.loop(file) as device:
        node = Path(f"/sys/block/{Path(device).name}/queue/nomerges")
        node.write_text("2")
        orders._idle_done = False
        orders._retry_restoring()
        assert (node.read_text(), len(journal.baselines())) == ("2\n", 1)  # a run uses the host
        orders._idle_done = True
        orders._retry_restoring()
        assert (node.read_text(), journal.baselines()) == ("0\n", ())


def test_removing_temporary_folders_before_a_trial_does_not_delay_the_next_retry(
    orders: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials shorter than the time between retries would otherwise prevent all retries."""
    monkeypatch.setattr(executor, "RETRY_S", 3600.0)
    orders._restored_at = time.monotonic() - 3601.0
    orders._restored((), again=True)
    tried: list[bool] = []
    monkeypatch.setattr(orders, "_restore_all", lambda *, again: tried.append(again))
    orders._left_over = True
    orders._retry_restoring()
    assert tried == [True]
    orders._retry_restoring()
    assert tried == [True]  # too early for another one


def test_what_a_closed_run_left_is_restored_while_another_run_uses_the_host(
    orders: Executor, context: HostContext, journal: Journal, file: Path
) -> None:
    closing = CloseRunOrder(host="h", attempt="a", issued_at=0, expires_at=1, run="r")
    told: list[object] = []
    end = executor.close_run(
        closing,
        OrderContext(
            host=context, emit=told.append, control=Control("a"), server_now=lambda: 0.0, register=lambda: None
        ),
    )
    assert end.code == "settings_not_restored"
    orders._idle_done = False
    orders._note_left(closing, end)
    with rig.loop(file) as device:
        node = Path(f"/sys/block/{Path(device).name}/queue/nomerges")
        node.write_text("2")
        orders._retry_restoring()
        assert (node.read_text(), journal.baselines()) == ("0\n", ())
    assert not orders._left_by
