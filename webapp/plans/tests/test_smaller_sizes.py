"""Sizes of a plan are divided, so that it fits small targets."""

from pathlib import Path

import pytest

from webapp.plans.document import import_plan
from webapp.plans.expand import expand
from webapp.plans.grids import grids_of
from webapp.plans.services import BUILTIN
from webapp.plans.sizes import fitting_bytes, with_smaller_sizes
from webapp.plans.tests.helpers import GIB, device, directory, document, part

MIB = 2**20


def builtin(name: str) -> Path:
    return BUILTIN / f"{name}.yaml"


def test_sizes_keep_their_ratios() -> None:
    made = with_smaller_sizes(document(part(size="64M..16G *2", amount="4G")), 64 * MIB)
    assert made.parts[0].factors["size"] == "256k, 512k, 1M, 2M, 4M, 8M, 16M, 32M, 64M"
    assert made.parts[0].factors["amount"] == "16M"
    assert "divided by 256**, to fit targets of 64 MiB" in made.note


def test_sequential_jobs_keep_whole_blocks() -> None:
    one = part(pattern="read", size="8000M", block_size="4k, 32k", numjobs="1, 10, 40", ioengine="psync")
    made = with_smaller_sizes(document(one), 64 * MIB)
    assert made.parts[0].factors["size"] == "64000k"  # 50 times 40 blocks of 32 KiB
    assert not expand(made, [device(size_bytes=64 * MIB)], seed=1).problems


def test_a_plan_that_fits_stays_as_it_is() -> None:
    fits = document(part(size="64M, whole"))
    assert with_smaller_sizes(fits, 64 * MIB) is fits
    assert fitting_bytes(grids_of(fits), [device(size_bytes=64 * MIB)]) == 0


@pytest.mark.parametrize("path", sorted(BUILTIN.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_built_in_plan_that_does_not_fit_is_scaled_to_fit(path: Path) -> None:
    plan = import_plan(path.read_text(encoding="utf-8"))
    targets = [directory(size_bytes=256 * MIB), device(size_bytes=128 * MIB, purges={"discard": ""})]
    for target in targets:
        room = fitting_bytes(grids_of(plan), [target])
        problems = expand(with_smaller_sizes(plan, room) if room else plan, [target], seed=1).problems
        assert not any("are needed" in text for text in problems), problems


def test_the_smallest_target_counts() -> None:
    plan = import_plan(builtin("bm-flash-grid").read_text(encoding="utf-8"))
    assert fitting_bytes(grids_of(plan), [device(size_bytes=8 * GIB), device(size_bytes=GIB)]) == GIB
    assert fitting_bytes(grids_of(plan), [directory(size_bytes=GIB)]) == GIB // 2


def test_the_points_of_a_plan_that_is_too_long_are_not_counted() -> None:
    counts = dict.fromkeys(("numjobs", "iodepth", "runtime"), "1..1000 +1")
    assert fitting_bytes(grids_of(document(part(grid=counts))), [device(size_bytes=MIB)]) == 0
