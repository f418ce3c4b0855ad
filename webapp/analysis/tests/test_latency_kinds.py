"""Completion latency and total latency are not compared."""

from dataclasses import replace

import pytest

from webapp.analysis.cells import NOT_COMPARED
from webapp.analysis.comparing import compare
from webapp.analysis.headline import headline
from webapp.analysis.question import CompareQuery
from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Selection, side_by_side
from webapp.results.models import Result
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db
P99 = CompareQuery(x="iodepth", series=("ioengine",), metric="latency_p99", baseline="io_uring")


@pytest.fixture
def mixed(lab: Lab) -> Lab:
    """psync has ten times the p99 latency, but of another kind."""
    lab.measure(*[100.0] * 4, iodepth=1)
    lab.measure(*[100.0] * 4, iodepth=1, ioengine="psync")
    Result.objects.filter(point__ioengine="psync").update(latency_kind="clat", p99_ns=40_000)
    return lab


def test_a_comparison_warns_and_claims_nothing(mixed: Lab) -> None:
    made = compare(P99)
    (warning,) = made.warnings
    assert "psync: completion latency" in warning
    assert "io_uring: total latency" in warning
    psync = next(series for series in made.panels[0].series if series.name == "psync")
    assert psync.cells[0].against_baseline is None
    assert psync.against_baseline is None
    assert psync.sentence == f"psync and io_uring are not compared at queue depth 1: {NOT_COMPARED}."
    assert "higher" not in headline(made)["sentence"]


def test_rates_and_equal_kinds_are_compared_as_before(mixed: Lab) -> None:
    assert compare(replace(P99, metric="iops")).warnings == ()
    Result.objects.update(latency_kind="lat")
    made = compare(P99)
    assert made.warnings == ()
    assert "×10.0" in headline(made)["sentence"]


def test_a_tool_that_does_not_say_its_kind_is_no_reason_to_warn(mixed: Lab) -> None:
    Result.objects.filter(point__ioengine="psync").update(latency_kind="")
    assert compare(P99).warnings == ()


def test_a_chart_of_one_series_has_no_range_over_both_kinds(mixed: Lab) -> None:
    made = compare(replace(P99, x="ioengine", series=(), baseline=""))
    assert made.warnings
    assert headline(made)["sentence"] == ""


def test_bench_warns_and_shows_no_ratio(mixed: Lab) -> None:
    other = Lab(mixed.target, number=2)
    other.measure(*[100.0] * 4, iodepth=1)
    Result.objects.filter(run=other.run).update(latency_kind="clat", p99_ns=40_000)
    runs = (Product(Kind.RUN, "1"), Product(Kind.RUN, "2"))
    found = side_by_side(Selection(runs, runs[0], "latency_p99"))
    assert "run 2: completion latency" in found.latency_kinds.lower()
    row = next(row for row in found.headlines if "p99" in row.title)
    assert row.cells[1] is not None
    assert row.cells[1].cell.against_baseline is None
    assert not [one for one in found.findings if one.panel.metric.key == "latency_p99"]
