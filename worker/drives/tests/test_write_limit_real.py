"""A write limit of the policy on a real loop device, whose counting a plan or another program switches off."""

import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.contract.items import Finished, Item, Outcome, Phase
from worker.contract.orders import Arming, SettingRequest, TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.policy import Policy
from worker.process.control import Control
from worker.settings import session
from worker.tests.waiting import until

pytestmark = rig.needs_root
LIMIT = 2**40


class Drive:
    """A loop device that a run may write to within limits."""

    def __init__(self, folder: Path, path: str, file: Path) -> None:
        more = {"destroy": True, "settings": ["iostats"], "max_write_bytes": LIMIT}
        self.policy: Policy = rig.load(folder, rig.block(path, file, **more))
        self.counting = Path(f"/sys/block/{Path(path).name}/queue/iostats")
        self.items: list[Item] = []
        self.journal = Journal(folder / "journal.db")
        self._host = HostContext(folder, self.policy.path, self.journal, CompleteFiles(folder / "files.db"))

    def run(self, pattern: Pattern, iostats: str, *, runtime_s: int = 1) -> Finished:
        target = rig.stream(self.policy).target
        work = FioWorkload(pattern=pattern, ioengine=IoEngine.PSYNC, size_bytes=8 * rig.MIB, runtime_s=runtime_s)
        now = time.time()
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t",
            streams=(Stream(number=0, target=target, workload=work),),
            settings=(SettingRequest(name="iostats", value=iostats),),
            arming=Arming(serials=(target.stable_id,), by="tester", until=now + 60),
        )  # fmt: skip
        context = OrderContext(host=self._host, emit=self.items.append, control=Control(order.attempt))
        return carry_out(order, context)

    def runs(self) -> bool:
        return any(isinstance(item, Phase) and item.name == "run" for item in self.items)


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Drive]:
    file = rig.sparse(tmp_path / "image")
    with rig.loop(file) as path:
        made = Drive(tmp_path, path, file)
        try:
            yield made
        finally:
            made.counting.write_text("1")  # a loop device keeps it when it is detached


def test_a_trial_that_writes_may_not_switch_the_counting_off(drive: Drive) -> None:
    """One that reads may, and a later one of the same run that writes has it on again."""
    assert drive.run(Pattern.RANDREAD, "0").outcome is Outcome.DONE
    assert drive.counting.read_text() == "0\n"
    end = drive.run(Pattern.RANDWRITE, "0")
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_write_limit")
    assert "iostats=0 makes the kernel stop counting" in end.message
    end = drive.run(Pattern.RANDWRITE, "1")
    assert end.outcome is Outcome.DONE, end.message
    session.restore_run("r", drive.journal)


def test_a_trial_is_stopped_when_another_program_switches_the_counting_off(drive: Drive) -> None:
    def switch() -> None:
        until(drive.runs, 10, lambda: "the trial did not start")
        drive.counting.write_text("0")

    thread = threading.Thread(target=switch)
    thread.start()
    end = drive.run(Pattern.RANDWRITE, "1", runtime_s=60)
    thread.join()
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_write_limit")
    assert end.message.endswith("the setting iostats is 0.")
