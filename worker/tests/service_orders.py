"""Orders for the tests of the service, and its items."""

from typing import Any

from worker.contract.fio_options import FioOptions
from worker.contract.items import Item
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, TargetRef
from worker.tests.service import Bench

MIB = 1024 * 1024
IOPS = 1000  # without a limit, reads from the page cache use a whole core


POLICY = """\
[[target]]
id = "scratch"
kind = "directory"
path = "{path}"
"""


def target(bench: Bench) -> TargetRef:
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    (found,) = bench.peer.hellos[-1].targets
    assert found.present, found.problem
    return TargetRef(id=found.id, kind=found.kind, path=found.path, stable_id=found.stable_id, serial=found.serial)


def trial(bench: Bench, *, runtime_s: int = 1, **more: Any) -> TrialOrder:
    workload = FioWorkload(
        pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, size_bytes=8 * MIB, runtime_s=runtime_s, direct=False,
        options=FioOptions(rate_iops=IOPS),
    )  # fmt: skip
    return bench.trial(target(bench), workload, **more)


def kinds(items: list[Item]) -> list[str]:
    return [type(item).__name__ for item in items]


def of(items: list[Item], kind: type) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]
