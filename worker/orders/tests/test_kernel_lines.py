"""Lines of the kernel's log during a trial: those of its drive, and those of the rest of the host."""

import os
import time
import uuid
from pathlib import Path

import pytest

from worker.contract.items import Item, KernelLog, Outcome, Sample
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control

KMSG = Path("/dev/kmsg")
pytestmark = [*rig.needs_root, pytest.mark.skipif(not os.access(KMSG, os.W_OK), reason="needs a kernel log")]


def test_a_trial_on_a_loop_device_is_not_blamed_for_another_one(tmp_path: Path) -> None:
    file, mark = rig.sparse(tmp_path / "disk.img"), uuid.uuid4().hex
    with rig.loop(file) as device, rig.loop(rig.sparse(tmp_path / "other.img")) as other:
        policy = rig.load(tmp_path, rig.block(device, file))
        items: list[Item] = []
        now = time.time()
        work = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, size_bytes=rig.MIB, runtime_s=2)
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t",
            streams=(Stream(number=0, target=rig.stream(policy).target, workload=work),),
        )  # fmt: skip

        def emit(item: Item) -> None:
            items.append(item)
            if isinstance(item, Sample) and not any(isinstance(each, KernelLog) for each in items):
                for name in (Path(other).name, Path(device).name, "nothing"):
                    KMSG.write_text(f"<3>I/O error, dev {name}, sector 8 op 0x0:(READ) {mark}")
                KMSG.write_text("the kernel gives its newest record out late: a neutral one follows")

        files = CompleteFiles(tmp_path / "files.db")
        host = HostContext(tmp_path, policy.path, Journal(tmp_path / "journal.db"), files)
        end = carry_out(order, OrderContext(host=host, emit=emit, control=Control("a")))
    assert end.outcome is Outcome.DONE, end.message
    lines = [line for item in items if isinstance(item, KernelLog) for line in item.lines if mark in line.text]
    named = {line.text.split()[3].rstrip(","): line.elsewhere for line in lines}
    assert named == {Path(other).name: True, Path(device).name: False, "nothing": True}
