"""The path of a drive names another drive, before or while the engine runs: the trial fails."""

import os
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.contract.items import Finished, Item, Outcome, Phase, PhaseName, StreamStarted
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control

pytestmark = rig.needs_root


class Host:
    """Its drive has a device node of its own, which `replace` gives to another drive."""

    def __init__(self, folder: Path, device: str, other: str, file: Path) -> None:
        self._other, self.node = Path(other).stat().st_rdev, Path(f"/dev/sweetspot-test-{os.getpid()}")
        os.mknod(self.node, 0o600 | stat.S_IFBLK, Path(device).stat().st_rdev)
        self.policy = rig.load(folder, rig.block(str(self.node), file))
        files = CompleteFiles(folder / "files.db")
        self._context = HostContext(folder, self.policy.path, Journal(folder / "journal.db"), files)
        self.items: list[Item] = []

    def trial(self, replace_at: type[Item] | PhaseName | None, *, removed_only: bool = False) -> Finished:
        now = time.time()
        work = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, size_bytes=rig.MIB, runtime_s=1)
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t",
            streams=(Stream(number=0, target=rig.stream(self.policy).target, workload=work),),
        )  # fmt: skip

        def emit(item: Item) -> None:
            self.items.append(item)
            if replace_at in (type(item), getattr(item, "name", "") if isinstance(item, Phase) else ""):
                self.node.unlink()
                if not removed_only:
                    os.mknod(self.node, 0o600 | stat.S_IFBLK, self._other)

        return carry_out(order, OrderContext(host=self._context, emit=emit, control=Control("a")))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device, rig.loop(rig.sparse(tmp_path / "other.img")) as other:
        host = Host(tmp_path, device, other, file)
        yield host
        host.node.unlink(missing_ok=True)


def test_a_trial_runs_on_a_node_that_stays(host: Host) -> None:
    end = host.trial(None)
    assert end.outcome is Outcome.DONE, end.message


@pytest.mark.parametrize("moment", [PhaseName.RUN, StreamStarted])
def test_a_trial_fails_if_its_path_names_another_drive(host: Host, moment: type[Item] | PhaseName) -> None:
    end = host.trial(moment)
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_path"), end.message
    assert "no longer names the drive" in end.message
    assert any(isinstance(item, StreamStarted) for item in host.items) is (moment is StreamStarted)


def test_a_trial_says_that_its_drive_is_gone(host: Host) -> None:
    end = host.trial(PhaseName.RUN, removed_only=True)
    assert (end.outcome, end.code) == (Outcome.FAILED, "device_gone"), end.message
