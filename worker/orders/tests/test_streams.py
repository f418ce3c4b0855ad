"""Streams of one order that name one path with different targets: the guard checks every target by itself."""

import time
import uuid
from pathlib import Path

from msgspec.structs import replace

from worker.contract.fio_options import FioOptions
from worker.contract.items import Finished, Item, Outcome, StreamResult
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, SteadyRounds, Stream, TargetKind
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.policy import Policy
from worker.process.control import Control

READ = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, runtime_s=1, size_bytes=2 * rig.MIB)


def run(folder: Path, policy: Policy, *streams: Stream) -> tuple[Outcome, str]:
    end = finished(folder, policy, [], *streams)
    return end.outcome, end.code


def finished(folder: Path, policy: Policy, items: list[Item], *streams: Stream) -> Finished:
    """Run a trial; its items are added to `items`."""
    now = time.time()
    order = TrialOrder(
        host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t", streams=streams
    )
    files = CompleteFiles(folder / "files.db")
    host = HostContext(folder, policy.path, Journal(folder / "journal.db"), files)
    return carry_out(order, OrderContext(host=host, emit=items.append, control=Control("a")))


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


def test_a_stop_rule_ends_all_streams_with_the_same_window(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir(mode=0o700)
    policy = rig.load(tmp_path, *({"id": path.name, "kind": "directory", "path": str(path)} for path in folders))
    steady = FioOptions(rate_iops=100)
    work = replace(READ, stop=SteadyRounds(round_s=1), runtime_s=300, options=steady)
    streams = [replace(rig.stream(policy, target=n), number=n, workload=work) for n in range(2)]
    items: list[Item] = []
    assert finished(tmp_path, policy, items, *streams).outcome is Outcome.DONE
    first, second = (item.stopped for item in items if isinstance(item, StreamResult))
    assert first is not None
    assert first.reached
    assert second is not None
    assert abs(first.from_ms - second.from_ms) <= 2000
    assert first.to_ms < 300_000
