import pytest

from webapp.plans.points import applies, differing, varying
from webapp.plans.values import Value

Points = list[dict[str, Value]]


@pytest.mark.parametrize(
    ("points", "names"),
    [
        ([], ()),
        ([{"iodepth": 1}, {"iodepth": 1}], ()),
        ([{"iodepth": 1, "pattern": "read"}, {"iodepth": 2, "pattern": "write"}], ("pattern", "iodepth")),
        # what does not apply follows from what varies
        ([{"ioengine": "psync"}, {"ioengine": "io_uring", "fixedbufs": False}], ("ioengine",)),
        ([{"ioengine": "io_uring", "fixedbufs": True}, {"ioengine": "io_uring", "fixedbufs": False}], ("fixedbufs",)),
        # left as the host had it is not the same as set to what it may have been
        ([{"scheduler": "none"}, {}], ("scheduler",)),
        # one of two alternatives
        ([{"block_size": 4096}, {"block_split": "4k/60:8k/40"}], ("block_size", "block_split")),
        ([{"block_size": 4096, "amount": 1}, {"block_size": 4096, "runtime": 5}], ("runtime", "amount")),
        # what moves no blocks has no block size
        ([{"copy_method": "direct", "block_size": 4096}, {"copy_method": "reflink"}], ("copy_method",)),
        # a whole device is a size like any other; what nobody knows comes last
        ([{"size": None, "zeta": 1, "beta": 1}, {"size": 1, "zeta": 2, "beta": 2}], ("size", "beta", "zeta")),
    ],
)
def test_it_lists_the_factors_with_several_levels(points: Points, names: tuple[str, ...]) -> None:
    assert varying(points) == names


def test_it_finds_all_that_can_vary() -> None:
    points: Points = [{"a": 1, "b": "x", "c": None}, {"a": 1, "b": "y", "c": None}, {"a": 1, "b": "x", "d": 0}]
    assert differing(points) == {"b", "c", "d"}
    assert differing(points[:1]) == differing([]) == set()


@pytest.mark.parametrize(
    ("name", "point", "can_act"),
    [
        ("database_fsync", {"engine": "pgbench", "script": "select-only"}, False),
        ("database_fsync", {"engine": "pgbench", "script": "tpcb-like"}, True),
        ("database_fsync", {"engine": "fio", "pattern": "randwrite"}, False),
        ("scheduler", {"engine": "pgbench", "script": "select-only"}, True),
        ("writer.iodepth", {"streams": "reader"}, False),
        ("writer.iodepth", {"streams": "reader + writer"}, True),
        ("writer.iodepth", {"streams": "reader + writer", "writer.engine": "pgbench"}, False),
        ("streams_on", {"streams": "reader"}, False),
    ],
)
def test_it_tells_where_a_factor_can_act(name: str, point: dict[str, Value], can_act: bool) -> None:
    assert applies(name, point) is can_act
