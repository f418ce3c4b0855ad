"""Shares of streams beside others: exact ratios of matched repeats; no claim without a match or with few repeats."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from webapp.analysis.shares import Share, shares
from webapp.analysis.tests.streams import of_stream
from webapp.results.metrics import METRICS
from webapp.results.reading.rows import ResultRow


def found(
    rows: Sequence[ResultRow], overlaps: dict[tuple[str, str], float] | None = None
) -> dict[tuple[str, ...], Share]:
    return {share.streams: share for share in shares(rows, METRICS["iops"], overlaps or {})}


ALONE = [*of_stream("a", "a", (100, 100, 100), 0), *of_stream("b", "b", (200, 200, 200), 10)]
TOGETHER = [
    *of_stream("a", "a + b", (50, 50, 50), 20, **{"b.iodepth": 8}),
    *of_stream("b", "a + b", (50, 50, 50), 20, **{"a.iodepth": 4}),
]


def test_the_share_is_the_ratio_to_the_same_stream_alone() -> None:
    told = found([*ALONE, *TOGETHER])
    assert {streams: share.n for streams, share in told.items()} == {("a",): 3, ("b",): 3, ("a", "b"): 3}
    ratios = {streams: share.ratio.value for streams, share in told.items() if share.ratio}
    assert ratios == {("a",): pytest.approx(0.5), ("b",): pytest.approx(0.25), ("a", "b"): pytest.approx(1 / 3)}
    sure = told["a",].ratio
    assert sure is not None
    assert sure.low is not None
    assert sure.low < 0.5


def test_nothing_is_claimed_without_the_stream_alone_or_with_two_repeats() -> None:
    told = found([each for each in (*ALONE, *TOGETHER) if each.stream == "a" or each.point["beside"] != "alone"])
    assert told["a",].ratio is not None
    assert (told["b",].ratio, told["b",].why_not) == (None, "b was not measured alone")
    few = found([each for each in (*ALONE, *TOGETHER) if each.repeat < 3])
    assert {(share.ratio, share.why_not, share.n) for share in few.values()} == {(None, "too few repeats", 2)}


def test_a_stream_without_iops_is_compared_by_the_metric_of_its_engine() -> None:
    def resync(streams: str, rate: float, trial: int) -> list[ResultRow]:
        rows = of_stream("array", streams, (0, 0, 0), trial, engine="array_action")
        return [replace(row, direction="resync", iops=None, ios=None, bytes_per_s=rate) for row in rows]

    share = found([*ALONE, *TOGETHER, *resync("array", 200.0, 30), *resync("a + array", 50.0, 40)])["array",]
    assert (share.metric.key, share.n) == ("bytes_per_s", 3)
    assert share.ratio is not None
    assert share.ratio.value == pytest.approx(0.25)


def test_a_stream_that_ran_mostly_alone_says_so() -> None:
    told = found([*ALONE, *TOGETHER], {("t21", "a"): 0.4})
    assert "the streams ran together for only 40 % of its time" in told["a",].cautions


def test_other_levels_of_the_stream_itself_are_no_match() -> None:
    other = of_stream("a", "a", (100, 100, 100), 0, iodepth=64)
    assert found([*other, *TOGETHER])["a",].why_not == "a was not measured alone"
