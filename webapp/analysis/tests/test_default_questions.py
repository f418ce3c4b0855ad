"""The questions of what was measured: one for each factor that varies, matched over everything else."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from webapp.analysis.default_questions import Chosen, choose_for, questions_of
from webapp.plans.factors import Value
from webapp.plans.points import applicable
from webapp.results.reading.query import TargetPoint

Points = Sequence[dict[str, Value]]
BASE: dict[str, Value] = {"runtime": 3}
GRID: list[dict[str, Value]] = [
    {**BASE, "pattern": pattern, "block_size": block, "ioengine": engine, "iodepth": depth}
    for pattern, block, engine, depth in [
        *product(("randread", "randwrite"), (4096,), ("io_uring", "psync"), (1, 32)),
        *product(("read", "write"), (131072,), ("io_uring", "psync"), (8,)),
    ]
]
BLOCKS: list[dict[str, Value]] = [{**BASE, "pattern": "read", "block_size": size} for size in (4096, 8192, 16384)]


def measured(**by_target: Points) -> list[TargetPoint]:
    """Targets on host a; `b_x` is x on host b."""
    names = {name: name.replace("_", "/") if "_" in name else f"a/{name}" for name in by_target}
    return [TargetPoint(names[name], point) for name, points in by_target.items() for point in points]


def axes(chosen: Chosen) -> tuple[str, str, str]:
    assert not chosen.fixed
    return chosen.x, chosen.series, chosen.panel


def test_x_is_the_only_factor_that_is_left_inside_the_charts() -> None:
    """The block size goes along with the pattern here."""
    assert axes(choose_for(measured(loop=GRID))) == ("iodepth", "ioengine", "pattern")


def test_each_factor_is_compared_over_all_others_and_settings_come_first() -> None:
    both = [{**point, "scheduler": name, "read_ahead_kb": ahead} for point in GRID for name in ("none", "kyber")
            for ahead in ("0", "128")]  # fmt: skip
    found = questions_of(measured(loop=both))
    assert [chosen.about for chosen in found] == ["scheduler", "read_ahead_kb", "ioengine"]
    assert {axes(chosen) for chosen in found} == {("matched", chosen.about, "pattern") for chosen in found}


def test_parts_are_phases_if_several_factors_tell_them_apart() -> None:
    """The rows of one table: reads and re-reads have the same pattern."""
    given: dict[str, dict[str, Value]] = {
        "Rewrite": {"pattern": "write", "drop_caches": True},
        "Read": {"pattern": "read", "drop_caches": True},
        "Re-read": {"pattern": "read", "drop_caches": False, "pre_read": True, "invalidate": False},
        "Stride read": {"pattern": "read", "drop_caches": True, "skip": 2**24},
    }
    phases = [
        TargetPoint("a/files", BASE | {"block_size": 2**20, "numjobs": jobs} | point, part=part)
        for part, point in given.items()
        for jobs in (1, 2, 10)
    ]
    assert [(chosen.about, *axes(chosen)) for chosen in questions_of(phases)] == [
        ("part", "numjobs", "part", "pattern")
    ]
    two_patterns = [*phases, replace(phases[0], point={**phases[0].point, "pattern": "randwrite"})]
    assert "part" not in {chosen.about for chosen in questions_of(two_patterns)}


def test_targets_are_never_the_question_if_a_factor_has_one() -> None:
    found = questions_of(measured(slow=GRID, fast=list(reversed(GRID))))
    assert [axes(chosen) for chosen in found] == [("matched", "ioengine", "pattern")]
    different = measured(loop=[{**GRID[0], "scheduler": "none"}], scratch=GRID)
    assert [chosen.about for chosen in questions_of(different)] == ["scheduler", "ioengine"]


def test_targets_are_compared_if_only_axes_of_load_vary() -> None:
    found = questions_of(measured(slow=BLOCKS, fast=BLOCKS))
    assert [(chosen.about, chosen.metric, *axes(chosen)) for chosen in found] == [
        ("target", "", "block_size", "target", ""),
        ("", "", "block_size", "target", ""),
        ("", "bytes_per_s", "block_size", "target", ""),
    ]


def test_a_number_that_says_how_and_not_how_much_is_compared_like_a_name() -> None:
    """0 writes between two fsync is never, not the least."""
    points = [{**BASE, "pattern": "randwrite", "fsync_every": every} for every in (0, 1, 4, 16)]
    nice = [{**BASE, "pattern": "randread", "nice": value} for value in (-10, 0, 10)]
    assert [chosen.about for chosen in questions_of(measured(loop=points))] == ["fsync_every"]
    assert [chosen.about for chosen in questions_of(measured(loop=nice))] == ["nice"]


def test_of_axes_of_load_the_longest_is_x_and_the_others_are_series() -> None:
    loads = [{**GRID[0], "iodepth": depth, "numjobs": jobs} for depth in (1, 2, 4) for jobs in (1, 8)]
    assert axes(choose_for(measured(loop=loads))) == ("iodepth", "numjobs", "")
    many = [{**GRID[0], "iodepth": 2**depth, "numjobs": jobs, "block_size": 512 * 2**size}
            for depth in range(7) for jobs in range(1, 6) for size in range(6)]  # fmt: skip
    assert axes(choose_for(measured(loop=many))) == ("matched", "", "")


def test_what_a_person_has_chosen_is_matched_over_the_rest() -> None:
    assert axes(choose_for(measured(loop=GRID), ["iodepth"])) == ("ioengine", "iodepth", "pattern")
    assert axes(choose_for(measured(loop=GRID, other=GRID), ["target"])) == ("matched", "target", "pattern")
    assert axes(choose_for(measured(loop=BLOCKS, other=BLOCKS), [], "target")) == ("block_size", "", "target")


def test_it_has_a_default_if_nothing_varies() -> None:
    assert axes(choose_for(measured(loop=GRID[:1]))) == ("block_size", "", "")


def test_parts_with_equal_points_are_compared() -> None:
    point = GRID[0]
    both = [
        TargetPoint("a/loop", {**point, "iodepth": depth}, part=part) for part in ("fresh", "aged") for depth in (1, 8)
    ]
    assert axes(choose_for(both)) == ("iodepth", "part", "")
    others = [TargetPoint("a/loop", {**point, "iodepth": depth}, part=f"depth {depth}") for depth in (1, 8)]
    assert axes(choose_for(others)) == ("iodepth", "", "")


def test_targets_at_once_are_x_for_any_targets() -> None:
    one, two = ([{**point, "at_once": count} for point in BLOCKS] for count in (1, 2))
    chosen = choose_for([*measured(x=one, y=one), *(TargetPoint("a/x + y", point) for point in two)])
    assert axes(chosen) == ("at_once", "block_size", "")
    hosts = [
        *measured(a_x=one, a_y=one, b_x=one),
        *(TargetPoint(f"{host}/x + y", point) for host in "ab" for point in two),
    ]
    assert axes(choose_for(hosts)) == ("at_once", "host,block_size", "")


def copies(*methods: str, sizes: Sequence[int] = (2**20,)) -> list[dict[str, Value]]:
    plain: list[dict[str, Value]] = [
        {"engine": "file_copy", "copy_method": method, "block_size": 2**20, "size": size}
        for method, size in product(methods, sizes)
    ]
    return [applicable(point) for point in plain]


def test_names_are_the_series_if_nothing_else_varies() -> None:
    assert axes(choose_for(measured(scratch=copies("buffered", "direct")))) == ("block_size", "copy_method", "")
    with_reflinks = measured(scratch=copies("buffered", "direct", "reflink"))
    assert axes(choose_for(with_reflinks)) == ("size", "copy_method", "")


def test_copies_of_several_sizes_are_compared_by_method() -> None:
    both = measured(scratch=copies("buffered", "reflink", sizes=(2**20, 2**30)))
    assert axes(choose_for(both)) == ("size", "copy_method", "")


def test_changes_from_a_base_are_the_series_and_what_they_change_is_part_of_them() -> None:
    changes = [("base", "bfq", "128"), ("I/O scheduler none", "none", "128"), ("Read-ahead 0 KiB", "bfq", "0")]
    points: list[dict[str, Value]] = [
        {"pattern": pattern, "block_size": 4096, "change": change, "scheduler": scheduler, "read_ahead_kb": ahead}
        for pattern in ("read", "write")
        for change, scheduler, ahead in changes
    ]
    assert [axes(chosen) for chosen in questions_of(measured(loop=points))] == [("block_size", "change", "pattern")]


@pytest.mark.parametrize(
    ("lines", "series"),
    [
        (["raid0 x1 chunk 64k", "raid0 x2 chunk 64k", "raid1 x2", "raid10 x4 chunk 64k"], "layout.level"),
        (["raid0 x4 chunk 64k / xfs", "raid5 x4 chunk 8k / ext4"], "layout"),
    ],
)
def test_layouts_are_compared_by_the_only_name_in_which_they_differ(lines: list[str], series: str) -> None:
    points = [{**point, "layout": line} for point in GRID for line in lines]
    assert [chosen.series for chosen in questions_of(measured(pool=points))] == [series, "ioengine"]


def test_the_only_number_in_which_layouts_differ_is_an_axis() -> None:
    points = [{**BLOCKS[0], "layout": f"raid5 x4 chunk {size}"} for size in ("8k", "64k", "1M")]
    assert axes(choose_for(measured(pool=points))) == ("layout.chunk", "", "")
