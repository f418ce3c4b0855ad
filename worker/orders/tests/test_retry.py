"""What could not be restored at the start of the worker is tried again while no run uses the host."""

from pathlib import Path

import pytest

from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Baseline, Journal
from worker.orders import executor
from worker.orders.context import HostContext
from worker.orders.executor import Executor

pytestmark = rig.needs_root


def test_a_setting_is_restored_when_its_drive_appears_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "RETRY_S", 0.0)
    journal = Journal(tmp_path / "journal.db")
    context = HostContext(tmp_path, tmp_path / "policy.toml", journal, CompleteFiles(tmp_path / "files.db"))
    file = rig.sparse(tmp_path / "disk.img")
    journal.save_baselines(
        [
            Baseline(
                run="r", stable_id=f"loop:{file}", name="nomerges", device="loop999", boot_id=journal.boot_id,
                survives_reboot=False, before="0", written="2", pending=False, requested=True,
            )
        ]
    )  # fmt: skip
    orders = Executor("h", context, None, None, ask_start=None, on_crash=lambda: None)  # type: ignore[arg-type]
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
