"""Somebody uses the drive while a trial holds it: the next step that writes, or the measurement, does not begin."""

import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from worker.contract.items import Finished, Item, Outcome, Phase, PhaseName, StreamStarted
from worker.contract.orders import Arming, TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, PauseStep, Stream, WriteStep
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control

pytestmark = rig.needs_root


@pytest.fixture(autouse=True)
def busy_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.guard.openers.BUSY_LIMIT_S", 0.5)


class Host:
    def __init__(self, folder: Path, device: str, file: Path) -> None:
        self.device = device
        self.policy = rig.load(folder, rig.block(device, file, destroy=True))
        self._context = HostContext(
            folder, self.policy.path, Journal(folder / "journal.db"), CompleteFiles(folder / "files.db")
        )
        self.items: list[Item] = []

    def trial(self, use: Callable[[str], AbstractContextManager[object]], at: PhaseName, *, writes: bool) -> Finished:
        """Pause, write the drive once if `writes`, and measure. `use` begins with the phase `at`."""
        now = time.time()
        target = rig.stream(self.policy).target
        work = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, size_bytes=rig.MIB, runtime_s=1)
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t",
            streams=(Stream(number=0, target=target, workload=work),),
            steps=(PauseStep(seconds=1), WriteStep(block_bytes=65536)) if writes else (PauseStep(seconds=1),),
            arming=Arming(by="a", until=now + 60, serials=(target.stable_id,)),
        )  # fmt: skip
        with ExitStack() as users:

            def emit(item: Item) -> None:
                is_first = not any(isinstance(each, Phase) and each.name is at for each in self.items)
                self.items.append(item)
                if isinstance(item, Phase) and item.name is at and is_first:
                    users.enter_context(use(self.device))

            return carry_out(order, OrderContext(host=self._context, emit=emit, control=Control("a")))


def loop_device(device: str) -> AbstractContextManager[object]:
    return rig.loop(Path(device))


@pytest.mark.parametrize("use", [loop_device, rig.opened_elsewhere])
def test_a_step_does_not_write_a_drive_that_somebody_uses(
    tmp_path: Path, use: Callable[[str], AbstractContextManager[object]]
) -> None:
    file = rig.sparse(tmp_path / "disk.img", 8 * rig.MIB)
    with rig.loop(file) as device:
        end = Host(tmp_path, device, file).trial(use, PhaseName.PREPARE, writes=True)
        assert (end.outcome, end.code) == (Outcome.FAILED, "guard_held"), end.message
    assert file.read_bytes() == bytes(8 * rig.MIB)


@pytest.mark.parametrize(("use", "at"), [(loop_device, PhaseName.RUN), (rig.opened_elsewhere, PhaseName.PREPARE)])
def test_a_measurement_does_not_begin_on_a_drive_that_somebody_uses(
    tmp_path: Path, use: Callable[[str], AbstractContextManager[object]], at: PhaseName
) -> None:
    file = rig.sparse(tmp_path / "disk.img", 8 * rig.MIB)
    with rig.loop(file) as device:
        host = Host(tmp_path, device, file)
        end = host.trial(use, at, writes=False)
        assert (end.outcome, end.code) == (Outcome.FAILED, "guard_held"), end.message
        assert not any(isinstance(item, StreamStarted) for item in host.items)
