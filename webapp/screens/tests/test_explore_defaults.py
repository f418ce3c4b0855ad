from collections.abc import Sequence
from itertools import product

from webapp.plans.factors import Value
from webapp.plans.points import applicable
from webapp.results.reading.filter import NOT_SET
from webapp.screens.explore.defaults import choose, choose_targets

BASE: dict[str, Value] = {"runtime": 3}
GRID: list[dict[str, Value]] = [
    {**BASE, "pattern": pattern, "block_size": block, "ioengine": engine, "iodepth": depth}
    for pattern, block, engine, depth in [
        *product(("randread", "randwrite"), (4096,), ("io_uring", "psync"), (1, 32)),
        *product(("read", "write"), (131072,), ("io_uring", "psync"), (8,)),
    ]
]


def test_x_is_the_number_with_the_most_levels_and_each_pattern_has_a_chart() -> None:
    chosen = choose(GRID)
    assert (chosen.x, chosen.series, chosen.panel, chosen.fixed) == ("iodepth", "ioengine", "pattern", {})


def test_a_setting_becomes_the_series_and_the_engine_is_fixed() -> None:
    both: list[dict[str, Value]] = [
        {**point, "scheduler": scheduler} for point in GRID for scheduler in ("none", "mq-deadline")
    ]
    chosen = choose(both)
    assert (chosen.series, chosen.fixed) == ("scheduler", {"ioengine": "io_uring"})


def test_other_factors_are_fixed_at_their_most_frequent_level() -> None:
    more: list[dict[str, Value]] = [*GRID, *({**point, "iodepth": 32, "numjobs": 4} for point in GRID)]
    filled: list[dict[str, Value]] = [{"numjobs": 1, **point} for point in more]
    assert choose(filled[:-1]).fixed == {"numjobs": 1}


def test_a_setting_is_fixed_at_not_set_if_most_points_do_not_set_it() -> None:
    chosen = choose(
        [*GRID, *({**point, "scheduler": "kyber"} for point in GRID[:1])],
    )
    assert (chosen.series, chosen.fixed) == ("scheduler", {"ioengine": "io_uring"})
    more: list[dict[str, Value]] = [*GRID, {**GRID[0], "scheduler": "kyber", "read_ahead_kb": "0"}]
    assert choose(more).fixed == {"read_ahead_kb": NOT_SET, "ioengine": "io_uring"}


def test_it_has_a_default_if_nothing_varies() -> None:
    chosen = choose(GRID[:1])
    assert (chosen.x, chosen.series, chosen.panel, chosen.fixed) == ("block_size", "", "", {})
    assert choose([]).x == "block_size"


def test_x_is_a_factor_that_varies_inside_a_chart() -> None:
    """Block size goes along with the pattern here: on x it would be one bar a chart."""
    sizes: list[dict[str, Value]] = [{**point, "iodepth": 1} for point in GRID if point["pattern"] == "read"]
    assert choose([*GRID, *sizes]).x == "iodepth"


def test_one_target_is_shown_if_targets_ran_different_points() -> None:
    chosen = choose_targets({"a/loop": [{**GRID[0], "scheduler": "none"}], "a/scratch": GRID})
    assert (chosen.target, chosen.x, chosen.series) == ("a/scratch", "iodepth", "ioengine")


def test_targets_that_ran_the_same_points_are_compared() -> None:
    chosen = choose_targets({"a/slow": GRID, "a/fast": list(reversed(GRID))})
    assert (chosen.target, chosen.series, chosen.fixed) == ("", "target", {"ioengine": "io_uring"})


def test_targets_at_once_are_x_for_any_targets() -> None:
    blocks: list[dict[str, Value]] = [{**BASE, "pattern": "read", "block_size": size} for size in (4096, 8192, 16384)]
    one, two = ([{**point, "at_once": count} for point in blocks] for count in (1, 2))
    chosen = choose_targets({"a/x": one, "a/y": one, "a/x + y": two})
    assert (chosen.x, chosen.series, chosen.target, chosen.fixed) == ("at_once", "block_size", "", {})
    chosen = choose_targets({"a/x": one, "a/x + y": two, "b/x": one, "b/x + y": two})
    assert (chosen.x, chosen.series, chosen.target) == ("at_once", "host", "")
    assert list(chosen.fixed) == ["block_size"]
    alone: list[dict[str, Value]] = [{**BASE, "pattern": "read", "block_size": 4096}]
    chosen = choose_targets({"a/x": [{**alone[0], "at_once": 1}], "a/x + y": [{**alone[0], "at_once": 2}]})
    assert (chosen.x, chosen.series, chosen.fixed) == ("at_once", "", {})


def copies(*methods: str, sizes: Sequence[int] = (2**20,)) -> list[dict[str, Value]]:
    plain: list[dict[str, Value]] = [
        {"engine": "file_copy", "copy_method": method, "block_size": 2**20, "size": size}
        for method, size in product(methods, sizes)
    ]
    return [applicable(point) for point in plain]


def test_names_are_the_series_if_nothing_else_varies() -> None:
    chosen = choose_targets({"a/scratch": copies("buffered", "direct")})
    assert (chosen.x, chosen.series, chosen.panel, chosen.fixed) == ("block_size", "copy_method", "", {})
    with_reflinks = choose_targets({"a/scratch": copies("buffered", "direct", "reflink")})
    assert (with_reflinks.x, with_reflinks.series, with_reflinks.fixed) == ("size", "copy_method", {})
    schedulers: list[dict[str, Value]] = [{**GRID[0], "scheduler": name} for name in ("none", "mq-deadline")]
    assert choose_targets({"a/loop": schedulers}).series == "scheduler"


def test_copies_of_several_sizes_are_compared_by_method() -> None:
    chosen = choose_targets({"a/scratch": copies("buffered", "reflink", sizes=(2**20, 2**30))})
    assert (chosen.x, chosen.series, chosen.fixed) == ("size", "copy_method", {})


def test_a_number_is_x_if_nothing_else_varies() -> None:
    depths: list[dict[str, Value]] = [{**GRID[0], "iodepth": depth} for depth in (1, 2, 4)]
    chosen = choose_targets({"a/loop": depths})
    assert (chosen.x, chosen.series) == ("iodepth", "")


def test_changes_from_a_base_are_the_series_and_what_they_change_is_not_fixed() -> None:
    changes = [("base", "bfq", "128"), ("I/O scheduler none", "none", "128"), ("Read-ahead 0 KiB", "bfq", "0")]
    measured: list[dict[str, Value]] = [
        {"pattern": pattern, "block_size": 4096, "change": change, "scheduler": scheduler, "read_ahead_kb": ahead}
        for pattern in ("read", "write")
        for change, scheduler, ahead in changes
    ]
    chosen = choose(measured)
    assert (chosen.x, chosen.series, chosen.panel, chosen.fixed) == ("block_size", "change", "pattern", {})


def test_the_number_that_a_sweep_of_layouts_varies_is_x() -> None:
    lines = ("raid0 x1 chunk 64k", "raid0 x2 chunk 64k", "raid1 x2", "raid10 x4 chunk 64k")
    drives: list[dict[str, Value]] = [{**point, "layout": line} for point in GRID for line in lines]
    chosen = choose_targets({"a/pool": drives})
    assert (chosen.x, chosen.series, chosen.panel) == ("layout.drives", "layout.level", "pattern")
    assert set(chosen.fixed) == {"ioengine", "iodepth"}
    sizes = [f"raid5 x4 chunk {size}" for size in ("8k", "1M")]
    chunks: list[dict[str, Value]] = [{**point, "layout": line} for point in GRID for line in sizes]
    chosen = choose_targets({"a/pool": chunks})
    assert (chosen.x, chosen.series) == ("layout.chunk", "iodepth")
