from itertools import product

from webapp.screens.compare.defaults import choose

BASE = {"runtime": 3}
GRID = [
    {**BASE, "pattern": pattern, "block_size": block, "engine": engine, "iodepth": depth}
    for pattern, block, engine, depth in [
        *product(("randread", "randwrite"), (4096,), ("io_uring", "psync"), (1, 32)),
        *product(("read", "write"), (131072,), ("io_uring", "psync"), (8,)),
    ]
]


def test_it_takes_the_longest_number_for_x_and_compares_like_with_like() -> None:
    chosen = choose(GRID)
    assert (chosen.x, chosen.series) == ("iodepth", "engine")
    assert chosen.fixed == {"pattern": "randread"}


def test_it_prefers_a_setting_for_the_series() -> None:
    both = [{**point, "scheduler": scheduler} for point in GRID for scheduler in ("none", "mq-deadline")]
    chosen = choose(both)
    assert chosen.series == "scheduler"
    assert chosen.fixed == {"pattern": "randread", "engine": "io_uring"}


def test_it_keeps_what_was_chosen() -> None:
    chosen = choose(GRID, x="engine", series="iodepth")
    assert (chosen.x, chosen.series) == ("engine", "iodepth")


def test_it_has_an_answer_where_nothing_varies() -> None:
    assert choose(GRID[:1]).series == ""
    assert choose([]).x == "block_size"
