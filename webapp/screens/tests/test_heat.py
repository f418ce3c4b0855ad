import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery
from webapp.analysis.tests.orders import alternate
from webapp.results.models import Result
from webapp.screens.explore.heat import heat_of
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db
QUERY = CompareQuery("iodepth", ("ioengine",), baseline="io_uring")


@pytest.fixture
def lab() -> Lab:
    lab = Lab(a_target(a_host("a"), "scratch"))
    lab.measure(99.0, 100.0, 101.0, iodepth=1)
    lab.measure(990.0, 1000.0, 1010.0, iodepth=2)
    lab.measure(9900.0, 10000.0, 10100.0, iodepth=4)
    lab.measure(49.0, 50.0, 51.0, iodepth=1, ioengine="psync")
    lab.measure(1900.0, 2000.0, 2100.0, iodepth=2, ioengine="psync")
    alternate(lab.run)
    return lab


def test_darker_means_the_same_in_the_light_and_in_the_dark() -> None:
    """Each step has one colour for both, and each is darker than the one before."""
    style = (Path(settings.BASE_DIR) / "frontend/src/styles/heat.css").read_text()
    steps = re.findall(r"\.heat-s(\d) \{\s*--cell: #(..)(..)(..);", style)
    assert [int(step) for step, *_ in steps] == [*range(9)]
    lights = [sum(int(part, 16) for part in parts) for _, *parts in steps]
    assert lights == sorted(lights, reverse=True)


def test_the_least_value_has_the_lightest_step_and_the_largest_the_darkest(lab: Lab) -> None:
    heat = heat_of(compare(QUERY), ratios=False)
    (uring, psync) = heat.maps[0].rows
    assert [cell and cell.step for cell in psync.cells] == ["s0", "s6", None]
    assert [cell and cell.step for cell in uring.cells] == ["s1", "s5", "s8"]
    assert [step for step, _ in heat.legend] == [f"s{n}" for n in range(9)]
    assert "in steps of equal ratio" in heat.words
    assert "higher is better" in heat.words


def test_a_value_of_another_kind_than_the_baseline_s_is_not_said_to_lack_a_baseline(lab: Lab) -> None:
    Result.objects.filter(point__ioengine="psync").update(latency_kind="clat")
    heat = heat_of(compare(replace(QUERY, metric="latency_p99")), ratios=True)
    (cell, *_) = next(row for row in heat.maps[0].rows if not row.is_baseline).cells
    assert cell
    assert (cell.text, cell.title) == (
        "–", "No ratio: the baseline has no value here, or the values are not comparable.",
    )  # fmt: skip


def test_ratios_go_from_worse_over_neutral_to_better(lab: Lab) -> None:
    lab.measure(80.0, 100.0, 120.0, iodepth=1, ioengine="libaio")
    alternate(lab.run)
    heat = heat_of(compare(QUERY), ratios=True)
    rows = {row.series: [(cell.text, cell.step) if cell else None for cell in row.cells] for row in heat.maps[0].rows}
    assert rows["psync"] == [("×0.50", "d0"), ("×2.00", "d8"), None]
    assert rows["io_uring"][0] == ("baseline", "d4")
    assert rows["libaio"][0] == ("×0.99", "d4")


def test_of_what_is_better_when_lower_less_is_blue(lab: Lab) -> None:
    heat = heat_of(compare(CompareQuery("iodepth", ("ioengine",), metric="latency_mean")), ratios=True)
    psync = heat.maps[0].rows[1]
    assert [cell and cell.step for cell in psync.cells] == ["d0", "d8", None]  # half the IOPS, twice the latency


def test_one_value_alone_has_the_middle_step() -> None:
    Lab(a_target(a_host("a"), "scratch")).measure(5.0, 5.0)
    heat = heat_of(compare(CompareQuery("iodepth")), ratios=False)
    assert heat.legend == (("s4", "5.00"),)


def test_maps_of_two_numbers_have_lines_of_equal_value() -> None:
    lab = Lab(a_target(a_host("a"), "scratch"))
    for jobs in (1, 2, 4):
        for depth in (1, 4, 16):
            lab.measure(100.0 * jobs * depth, iodepth=depth, numjobs=jobs)
    numbers = CompareQuery("iodepth", ("numjobs",))
    (values,) = heat_of(compare(numbers), ratios=False).maps
    assert [contour.text for contour in values.contours] == ["200", "500", "1.00k", "2.00k", "5.00k"]
    assert not heat_of(compare(numbers), ratios=True).has_contours


def test_there_are_no_lines_between_names(lab: Lab) -> None:
    lab.measure(70.0, iodepth=1, ioengine="libaio")
    assert not heat_of(compare(QUERY), ratios=False).has_contours
