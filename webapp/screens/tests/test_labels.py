"""Labels of hosts in groups on Explore and Results: filter, column, CSV, API and the first choice."""

import csv
from collections.abc import Callable

import pytest
from django.test import Client

from webapp.analysis.default_questions import choose_for
from webapp.plans.factors import Value
from webapp.results.reading.query import TargetPoint
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run

GRID: list[dict[str, Value]] = [
    {"pattern": pattern, "block_size": 4096, "ioengine": engine, "iodepth": depth}
    for pattern in ("randread", "randwrite")
    for engine in ("io_uring", "psync")
    for depth in (1, 32)
]


@pytest.fixture
def runs(db: None) -> list[Run]:
    """Two hosts of a group and one run without a group."""
    version, made = first_look(), []
    for host, label in (("storage1", "adaptec"), ("storage2", "broadcom, new"), ("storage3", "")):
        target = storage1_scratch(a_host(host))
        run = first_look_run(version, [target], repeats=1, label=label)
        finish_run(run)
        made.append(run)
    return made


def test_compare_begins_with_a_line_for_each_label(operator: Client, runs: list[Run]) -> None:
    answer = operator.get("/explore/?run=1&run=2")
    assert "series=label" in answer["Location"]
    page = operator.get(answer["Location"]).content.decode()
    assert "Target differs between series because each label belongs to a different host." in page
    assert "Confounded" not in page
    assert '<option value="label" selected>Label</option>' in page


def test_the_first_choice_prefers_labels_and_matches_the_rest() -> None:
    both = [TargetPoint(f"{host}/x", point, label) for host, label in (("a", "A"), ("b", "B")) for point in GRID]
    chosen = choose_for(both)
    assert (chosen.x, chosen.series, chosen.panel, chosen.fixed) == ("matched", "label", "pattern", {})
    one = [TargetPoint("a/x", point, "A") for point in GRID] + [TargetPoint("a/x", point) for point in GRID]
    assert choose_for(one).series == "ioengine"
    several = [TargetPoint(each.target_name, {**each.point, "at_once": n}, each.label) for each in both for n in (1, 2)]
    assert (choose_for(several).x, choose_for(several).series) == ("at_once", "label,ioengine,iodepth")


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("label=adaptec", 12),
        ("label=broadcom,+new", 12),
        ("label=adaptec&label=no+label", 24),
        ("label=no+label&run=3", 12),
        ("label=adaptec&run=3", 0),
        ("label=nothing", 0),
        ("label=", 36),
    ],
)
def test_results_are_chosen_by_label(operator: Client, runs: list[Run], query: str, count: int) -> None:
    page = operator.get(f"/results/?{query}").content.decode()
    assert page.count('class="sticky nowrap"') == count
    assert operator.get(f"/api/v1/results?{query}").json()["count"] == count


def test_labels_are_offered_once_there_are_any(operator: Client, runs: list[Run]) -> None:
    for address in ("/results/?label=adaptec", "/explore/?x=iodepth&label=adaptec"):
        page = operator.get(address).content.decode()
        assert 'name="label" value="adaptec" checked' in page
        assert 'name="label" value="broadcom, new"' in page
        assert 'name="label" value="no label"' in page
    Run.objects.update(label="")
    assert 'name="label"' not in operator.get("/results/").content.decode()


def test_table_csv_and_api_have_the_label(operator: Client, runs: list[Run]) -> None:
    assert "broadcom, new</td>" in operator.get("/results/?columns=label,iops").content.decode()
    answer = operator.get("/results.csv?run=1&run=3")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert {row["label"] for row in csv.DictReader(text.splitlines())} == {"adaptec", ""}
    assert {row["label"] for row in operator.get("/api/v1/results?run=2").json()["items"]} == {"broadcom, new"}
    compared = operator.get("/api/v1/compare?x=matched&series=label&panel=pattern&label=adaptec&label=no+label").json()
    assert [series["name"] for series in compared["panels"][0]["series"]] == ["adaptec", "no label"]
    csv_text = b"".join(operator.get("/explore.csv?x=matched&series=label&panel=pattern").streaming_content)  # type: ignore[attr-defined]
    assert b"broadcom, new" in csv_text


def test_labels_take_no_more_queries(queries_of: Callable[[str], int], runs: list[Run]) -> None:
    addresses = ("/results/", "/explore/?x=iodepth&series=label", "/api/v1/results")
    counts = []
    for number in range(4, 10):
        target = storage1_scratch(a_host(f"storage{number}"))
        run = first_look_run(runs[0].version, [target], repeats=1, label=f"label {number}")
        finish_run(run)
        if number in (6, 9):  # with more results than a page has
            counts.append([queries_of(address) for address in addresses])
    assert counts[0] == counts[1]
