"""Streams and targets at once against alone: who pays, and what the sum keeps."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from webapp.analysis.answer import Comparison, FindingKind
from webapp.analysis.findings import interference
from webapp.analysis.findings.tests.made import Values, found, made
from webapp.analysis.shares import Share, shares
from webapp.analysis.tests.streams import of_stream
from webapp.results.metrics import METRICS
from webapp.results.reading.rows import ResultRow

Rates = Sequence[float]
NOISE = (1.0, 1.01, 0.99, 1.005)


def rates(value: float) -> Rates:
    return [value * each for each in NOISE]


def streams(reader: float, writer: float, *, repeats: int = 4) -> list[ResultRow]:
    """Alone, the reader has 200 IOPS and the writer 100."""
    rows = [
        *of_stream("reader", "reader", rates(200)[:repeats], 0),
        *of_stream("writer", "writer", rates(100)[:repeats], 10),
        *of_stream("reader", "reader + writer", rates(reader)[:repeats], 20),
        *of_stream("writer", "reader + writer", rates(writer)[:repeats], 20),
    ]
    return [replace(row, direction="read") if row.stream == "reader" else row for row in rows]


def of(rows: Sequence[ResultRow]) -> list[Share]:
    return shares(rows, METRICS["iops"], {})


def chart() -> Comparison:
    """Charts by stream, series by what runs beside it."""
    values: Values = (1.0,)
    panels = {"reader": {"alone": values, "writer": values}, "writer": {"alone": values, "reader": values}}
    return made((1,), panels, by="beside")


def test_the_stream_that_loses_is_first_and_both_shares_are_stated() -> None:
    (one,) = interference.find(of(streams(118, 96)), chart())
    assert one.kind is FindingKind.INTERFERENCE
    assert one.sentence.startswith("At once, reader keeps 59 % (")
    assert "writer 96 % (" in one.sentence
    assert "sum" not in one.sentence  # reads and writes are not added
    assert [(mark.panel, mark.series) for mark in one.marks] == [(0, 1), (1, 1)]


def test_streams_of_one_direction_have_a_sum() -> None:
    rows = [
        *of_stream("a", "a", rates(100), 0), *of_stream("b", "b", rates(100), 10),
        *of_stream("a", "a + b", rates(74), 20), *of_stream("b", "a + b", rates(74), 20),
    ]  # fmt: skip
    (one,) = interference.find(of(rows), chart())
    assert "The sum of a and b is 74 % (" in one.sentence
    assert one.sentence.endswith(": 148 together, 200 alone.")


@pytest.mark.parametrize("reader", [200, 196])  # nothing is lost, and 2 % within the margin of 5 %
def test_without_a_clear_loss_it_is_silent(reader: float) -> None:
    assert list(interference.find(of(streams(reader, 100)), chart())) == []


def test_with_too_few_repeats_it_is_silent() -> None:
    assert list(interference.find(of(streams(118, 96, repeats=2)), chart())) == []


def test_a_stream_that_was_not_measured_alone_is_only_named() -> None:
    rows = [row for row in streams(118, 96) if row.stream != "writer" or row.point["beside"] != "alone"]
    (one,) = interference.find(of(rows), chart())
    assert one.sentence.startswith("Beside writer, reader keeps 59 % (")


# ---- a shared limit of targets at once


def limits(values: Sequence[float | Sequence[float]]) -> list[str]:
    counts = range(1, len(values) + 1)
    return [
        each.sentence
        for each in found(made(counts, {"": {"A": values}}, x="at_once", metric="bytes_per_s"))
        if each.kind is FindingKind.SHARED_LIMIT
    ]


def test_two_at_once_that_reach_no_more_than_one_share_a_limit() -> None:
    (sentence,) = limits(([1.78e9, 1.77e9, 1.79e9], [1.79e9, 1.78e9, 1.80e9]))
    assert sentence.startswith("2 targets at once reach together what one reaches alone, 1.78 GB/s (within ")
    assert limits((1.78e9, 1.79e9, 1.78e9, 1.77e9)) != []


@pytest.mark.parametrize(
    "values",
    [
        (1.2e9, 1.78e9),  # more than one alone
        (1.78e9, 1.2e9),  # less
        ([1.8e9, 1.2e9, 2.4e9], [1.8e9, 2.4e9, 1.2e9]),  # too noisy to say that they are equal
        (1.78e9,),
        (1.78e9, 1.79e9),  # two single values may agree by chance
    ],
)
def test_other_sums_are_no_shared_limit(values: Sequence[float | Sequence[float]]) -> None:
    assert limits(values) == []
