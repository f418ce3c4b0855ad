"""What a plan is expected to write; every figure is worked out beside it."""

from typing import Any

import pytest

from webapp.plans.document import Part
from webapp.plans.estimate import Earlier, Expected, Speeds, estimate, written_expected
from webapp.plans.expand import Expansion, expand
from webapp.plans.tests.helpers import device, directory, document, part

MB = 10**6


def made(*targets: Any, **factors: str) -> Expansion:
    return expand(document(part(grid=factors), repeats=1), targets or [device()], seed=1)


def seen(pattern: str, block_size: int, rate: float, **more: Any) -> tuple[dict[str, Any], float]:
    return {"pattern": pattern, "block_size": block_size, "direct": True, **more}, rate


def told(expansion: Expansion, *own: Any, model: tuple[Any, ...] = ()) -> dict[str, Expected]:
    return written_expected(
        expansion, estimate(expansion).written_before, {"loop": Earlier(Speeds.of(own), Speeds.of(model))}
    )


FAST = seen("randwrite", 4096, 90 * MB), seen("randwrite", 4096, 100 * MB), seen("randwrite", 65536, 700 * MB)
DEPTHS = (
    seen("randwrite", 4096, 3 * MB, iodepth=1),
    seen("randwrite", 4096, 100 * MB, iodepth=32, ioengine="io_uring"),
    seen("randwrite", 4096, 80 * MB, iodepth=32, ioengine="libaio"),
)
LIKE_IT = (seen("randwrite", 4096, 50 * MB),)


@pytest.mark.parametrize(
    ("factors", "own", "model", "expected"),
    [
        ({"pattern": "randwrite"}, FAST, (), Expected(285 * MB, False)),  # 3 s at the median of its block size
        ({"pattern": "randwrite", "block_size": "8k"}, FAST, (), Expected(285 * MB, False)),  # else of the nearest
        ({"pattern": "randwrite", "block_size": "32k"}, FAST, (), Expected(2100 * MB, False)),
        ({"pattern": "randwrite", "iodepth": "1"}, DEPTHS, (), Expected(9 * MB, False)),  # not 300 MB, of depth 32
        ({"pattern": "randwrite", "iodepth": "16", "ioengine": "libaio"}, DEPTHS, (), Expected(240 * MB, False)),
        ({"pattern": "randwrite", "ramp": "2s"}, FAST, (), Expected(475 * MB, False)),
        ({"pattern": "randwrite"}, FAST, LIKE_IT, Expected(285 * MB, False)),
        ({"pattern": "randwrite"}, (), LIKE_IT, Expected(150 * MB, True)),
        ({"pattern": "randwrite, randread"}, FAST, (), Expected(285 * MB, False)),
        ({"pattern": "write"}, FAST, (), None),
        ({"pattern": "randwrite, write"}, FAST, (), None),  # one of them is not known
        ({"pattern": "randwrite", "direct": "off"}, FAST, (), None),
        ({"pattern": "randwrite", "amount": "64M"}, FAST, (), None),  # exact already
        ({"pattern": "randread"}, FAST, (), None),
        ({"pattern": "randrw", "read_percent": "70"}, (seen("randrw", 4096, 40 * MB, read_percent=70),), (),
         Expected(120 * MB, False)),
        ({"pattern": "randrw", "read_percent": "50"}, (seen("randrw", 4096, 40 * MB, read_percent=70),), (), None),
        ({"pattern": "randwrite"}, (seen("randwrite", 4096, 1e12),), (), Expected(round(3 * 3.5e6 * 4096), False)),
    ],
)  # fmt: skip
def test_it_goes_by_the_nearest_earlier_results_of_its_kind(
    factors: dict[str, str], own: Any, model: Any, expected: Expected | None
) -> None:
    assert told(made(**factors), *own, model=model).get("loop") == expected


def test_files_that_are_written_first_are_added() -> None:
    expansion = made(directory(), pattern="randwrite")
    found = written_expected(expansion, estimate(expansion).written_before, {"dir": Earlier(Speeds.of(FAST))})
    assert found["dir"].bytes == 285 * MB + 64 * 2**20


def test_targets_that_are_written_at_once_count_each() -> None:
    both = made(device(), device(id="b", name="a/loop2"), pattern="randwrite", at_once="2")
    known = {"loop": Earlier(Speeds.of(FAST)), "b": Earlier(model=Speeds.of(LIKE_IT))}
    assert written_expected(both, {}, known) == {"loop": Expected(285 * MB, False), "b": Expected(150 * MB, True)}


def test_amounts_are_added_as_they_are() -> None:
    exact = part("exact", {"pattern": "write", "amount": "64M"})
    plan = document(part(grid={"pattern": "randwrite"}), exact, repeats=1)
    assert told(expand(plan, [device()], seed=1), *FAST)["loop"].bytes == 285 * MB + 64 * 2**20


def test_the_load_of_a_database_is_added_to_its_expected_writes() -> None:
    part_of = Part(name="main", factors={"engine": "pgbench", "script": "tpcb-like", "scale": "100"})
    expansion = expand(document(part_of, repeats=1, common={"runtime": "3s"}), [directory(size_bytes=2**40)], seed=1)
    (trial,) = expansion.trials
    earlier = {"dir": Earlier(Speeds.of([(trial.point, 10.0 * MB)]))}
    found = written_expected(expansion, estimate(expansion).written_before, earlier)
    assert found["dir"] == Expected(trial.workload.load_bytes + 30 * MB, by_model=False)
