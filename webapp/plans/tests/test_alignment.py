"""I/O that is not whole sectors of a device is refused before the run."""

from collections.abc import Mapping

import pytest

from webapp.plans.expand import expand
from webapp.plans.tests.helpers import device, directory, document, part
from worker.contract.workload import TargetKind

BUFFERED = {"direct": "off"}
LARGE = device(logical_block_bytes=4096)
POOL = device(kind=TargetKind.POOL, logical_block_bytes=4096)


@pytest.mark.parametrize(("factors", "target", "fits"), [
    ({"block_size": "512"}, LARGE, False),
    ({"block_size": "6k"}, LARGE, False),
    ({"block_size": "4k, 8k"}, LARGE, True),
    ({"block_size": "512"}, device(logical_block_bytes=512), True),
    ({"block_size": "512"}, device(), True),  # not known
    ({"block_size": "512", **BUFFERED}, LARGE, True),
    ({"block_size": "512", "ioengine": "sg", **BUFFERED}, LARGE, False),
    ({"block_size": "512", "pattern": "trim", **BUFFERED}, LARGE, False),
    ({"block_size": "512"}, directory(logical_block_bytes=4096), True),  # the file system may buffer it
    ({"block_range": "512-4k"}, LARGE, False),
    ({"block_split": "4k/50:512/50"}, LARGE, False),
    ({"offset": "512"}, LARGE, False),
    ({"offset": "8k"}, LARGE, True),
    ({"offset_increment": "512", "numjobs": "2"}, LARGE, False),
    ({"blockalign": "512"}, LARGE, False),
    ({"pattern": "read", "skip": "512"}, LARGE, False),
])  # fmt: skip
def test_direct_io_is_whole_sectors(factors: Mapping[str, str], target: object, fits: bool) -> None:
    plan = document(part("main", {"pattern": "randread", **factors}))
    found = expand(plan, [target], seed=1)  # type: ignore[list-item]
    assert (not found.problems) is fits, found.problems
    assert bool(found.trials) is fits


def test_one_target_with_larger_sectors_is_named() -> None:
    fitting = device(id="small", name="a/small", logical_block_bytes=512)
    found = expand(document(part(block_size="512, 4k")), [LARGE, fitting], seed=1)
    assert [LARGE.shown in text and fitting.shown not in text for text in found.problems] == [True]
