"""Streams of one order that name one path with different targets: the guard checks every target by itself."""

import time
import uuid
from pathlib import Path

from msgspec.structs import replace

from worker.contract.items import Item, Outcome
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream, TargetKind
from worker.control import Control
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import Trial
from worker.policy import Policy

READ = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, runtime_s=1, size_bytes=2 * rig.MIB)


def run(folder: Path, policy: Policy, *streams: Stream) -> tuple[Outcome, str]:
    now = time.time()
    order = TrialOrder(
        host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t", streams=streams
    )
    files = CompleteFiles(folder / "files.db")
    host = HostContext(folder, policy.path, Journal(folder / "journal.db"), files)
    items: list[Item] = []
    end = Trial(order, OrderContext(host=host, emit=items.append, control=Control("a"))).run()
    return end.outcome, end.code


def test_a_stream_beside_an_allowed_one_cannot_name_its_file_as_a_directory(tmp_path: Path) -> None:
    """Prefill would write files beside the file of the policy, without destroy and without arming."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    image = rig.sparse(shared / "image")
    policy = rig.load(tmp_path, {"id": "file", "kind": "file", "path": str(image)})
    allowed = replace(rig.stream(policy), workload=READ)
    target = replace(allowed.target, kind=TargetKind.DIRECTORY)
    beside = replace(allowed, number=1, target=target, workload=replace(READ, size_bytes=rig.MIB))
    assert run(tmp_path, policy, allowed, beside) == (Outcome.FAILED, "guard_not_in_policy")
    assert [path.name for path in shared.iterdir()] == ["image"]
