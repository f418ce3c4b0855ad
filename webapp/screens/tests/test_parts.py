"""The parts of a plan, such as `fresh` and `aged`, are a dimension and a filter."""

import pytest
from django.test import Client

from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery, read_query
from webapp.results.reading.filter import read_filter
from webapp.results.reading.query import ResultQuery
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def phases() -> Lab:
    """Equal workloads in two parts: the plan names the later one first in the alphabet."""
    lab = Lab(a_target(a_host("a"), "scratch"))
    for part, factor in (("fresh", 2.0), ("aged", 1.0)):
        for depth in (1, 8):
            for result in lab.measure(*(1000.0 * factor * depth,) * 3, iodepth=depth):
                trial = result.trial
                assert trial is not None
                trial.part = part
                trial.save(update_fields=["part"])
    return lab


@pytest.mark.parametrize("role", ["series", "panel", "x"])
def test_parts_are_series_charts_or_x_in_the_order_of_the_plan(phases: Lab, role: str) -> None:
    query = [("x", "iodepth"), (role, "part")] if role != "x" else [("x", "part"), ("series", "iodepth")]
    made = compare(read_query(query))
    series = [one.name for one in made.panels[0].series]
    named = {"series": series, "panel": [panel.name for panel in made.panels], "x": [x.text for x in made.levels]}
    assert named[role] == ["fresh", "aged"]
    labels = {"series": made.series_label, "panel": made.panel_label, "x": made.x_label}
    assert labels[role] == "Part"
    if role == "series":
        (against,) = [one.against_baseline for one in made.panels[0].series if one.against_baseline]
        assert against.ratio.value == pytest.approx(0.5)


def test_no_mean_covers_parts(phases: Lab) -> None:
    made = compare(CompareQuery(x="iodepth"))
    assert [(one.name, [level.key for level in one.levels]) for one in made.mixtures] == [("part", ["fresh", "aged"])]
    assert made.panels == ()


def test_a_filter_finds_the_results_of_a_part_and_no_import(phases: Lab, operator: Client) -> None:
    an_import(text="pattern,block_size,iodepth,iops\nrandread,4k,1,100\n")
    found = ResultQuery.of(read_filter([("part", "aged")])).results
    assert {result.iops for result in found} == {1000.0, 8000.0}
    assert operator.get("/api/v1/results?part=aged").json()["count"] == 6
    page = operator.get("/explore/?run=1&x=iodepth&series=part").content.decode()
    assert '<option value="part" selected>Part</option>' in page
    assert page.index('name="part" value="fresh"') < page.index('name="part" value="aged"')


def test_the_api_describes_the_filter(operator: Client) -> None:
    parameters = operator.get("/api/v1/openapi.json").json()["paths"]["/api/v1/compare"]["get"]["parameters"]
    assert "part" in {parameter["name"] for parameter in parameters}
