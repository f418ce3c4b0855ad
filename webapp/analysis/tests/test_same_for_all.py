"""The conditions that a page states once."""

from webapp.analysis.equals import same_for_all
from webapp.tests.factories.plans import a_point


def test_conditions_that_all_points_share_are_said_in_order() -> None:
    points = [a_point(pattern="randread", block_size=size, iodepth=32, numjobs=1, runtime=60) for size in (4096, 8192)]
    words = list(same_for_all(points))
    assert words[:2] == ["randread", "QD 32"]
    assert "direct" in words
    assert words[-2:] == ["1 min", "written first"]
    assert not any("KiB" in text or "job" in text for text in words)


def test_what_a_page_names_or_only_some_points_state_is_not_said() -> None:
    point = a_point(pattern="randread", block_size=4096, iodepth=32)
    assert "QD 32" not in [*same_for_all([point], named=["iodepth"])]
    assert [*same_for_all([{"pattern": "read", "size": 2**30}, {"pattern": "read"}])] == ["read"]
    assert not [*same_for_all([])]


def test_switches_have_words() -> None:
    assert [*same_for_all([{"direct": False, "prefill": True}])] == ["buffered", "written first"]
    assert not [*same_for_all([{"prefill": False, "sync": "none"}])]
    assert len([*same_for_all([{"sync": "dsync"}])]) == 1
