"""Published references and baseline runs as lines in Explore."""

import json
import math
import re
from typing import Any

import pytest
from django.test import Client

from webapp.results.models import Import, Result
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import Lab
from webapp.trends.models import Baseline

ADDRESS = "/explore/?run=1&x=iodepth&metric=iops"
TEXT = """pattern,block_size,iodepth,numjobs,iops
randread,4k,1,1,900
randread,4k,32,1,1800
randread,8k,1,1,500
randwrite,4k,1,1,400
randread,,1,1,300
"""


def lines(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script id="compare-data" type="application/json">(.*?)</script>', page)
    assert found
    return list(json.loads(found[1])["references"])


@pytest.fixture
def lab(db: None) -> Lab:
    lab = Lab(a_target(a_host("a"), "scratch"))
    lab.measure(1000.0, 1100.0, pattern="randread", block_size=4096, iodepth=1)
    lab.measure(2000.0, 2200.0, pattern="randread", block_size=4096, iodepth=32)
    return lab


@pytest.fixture
def run(lab: Lab) -> Run:
    return lab.run


@pytest.fixture
def published(db: None) -> Import:
    made = an_import(title="Old drive", text=TEXT)
    Result.objects.filter(origin__imported=made).update(reference=True)
    return made


def test_a_published_table_is_a_line_where_it_agrees(viewer: Client, run: Run, published: Import) -> None:
    page = viewer.get(f"{ADDRESS}&lines=published").content.decode()
    (line,) = lines(page)
    assert [(point["level"], point["value"]) for point in line["points"]] == [(0, 900.0), (1, 1800.0)]
    assert line["name"] == "Old drive"
    assert line["points"][1]["text"] == "1.80k IOPS"
    assert "They are not series" in page


def test_it_is_not_drawn_at_a_point_without_a_value(viewer: Client, lab: Lab, published: Import) -> None:
    """4 KiB and 8 KiB are published, and neither is a mean over both."""
    lab.measure(500.0, pattern="randread", block_size=8192, iodepth=1)
    (line,) = lines(viewer.get(f"{ADDRESS}&lines=published").content.decode())
    assert [point["level"] for point in line["points"]] == [0]  # the only one: queue depth 1 mixes block sizes
    both = lines(viewer.get(f"{ADDRESS}&lines=published&series=block_size").content.decode())
    assert sorted(point["value"] for line in both for point in line["points"]) == [500.0, 900.0, 1800.0]


def test_a_factor_that_it_does_not_state_is_named(viewer: Client, run: Run) -> None:
    made = an_import(title="Old drive", text="pattern,block_size,iops\nrandread,4k,900\n")
    Result.objects.filter(origin__imported=made).update(reference=True)
    (line,) = lines(viewer.get(f"{ADDRESS}&lines=published").content.decode())
    assert [point["level"] for point in line["points"]] == [0, 1]
    assert line["name"] == "Old drive (queue depth, jobs not stated)"


def test_they_are_hidden_unless_asked_for(viewer: Client, run: Run, published: Import) -> None:
    page = viewer.get(ADDRESS).content.decode()
    assert lines(page) == []
    assert "chart-references" not in page
    assert 'name="lines"' in page


def test_a_baseline_run_is_a_line_with_its_limit(viewer: Client, run: Run) -> None:
    target = run.targets.get()
    Baseline.objects.create(plan=run.version.plan, target=target, run=run, tolerances={"iops": 10.0})
    page = viewer.get(f"{ADDRESS}&lines=baseline").content.decode()
    value, limit = lines(page)
    compared = [math.sqrt(each * 1.1 * each) for each in (1000, 2000)]  # geometric means, as a verdict compares them
    assert (value["name"], limit["name"]) == ("Baseline run 1", "Baseline run 1: limit −10 %")
    assert [point["value"] for point in value["points"]] == pytest.approx(compared)
    assert [point["value"] for point in limit["points"]] == pytest.approx([0.9 * each for each in compared])
    without = viewer.get(f"{ADDRESS}&lines=baseline&metric=latency_mean").content.decode()
    assert lines(without) == []
    assert "No reference matches" in without
