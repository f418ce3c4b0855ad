"""The summary of two products on one page."""

import pytest
from django.test import Client

from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.results.models import Result
from webapp.screens.bench.summary import MOST_CAVEATS, MOST_ROWS, MOST_UNLIKE
from webapp.screens.tests.test_bench import ADDRESS, labs, shown  # noqa: F401 - fixture
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import FACTS, Lab

SUMMARY = ADDRESS.replace("/bench/", "/bench/summary/")
Labs = tuple[Lab, Lab]


def evidence(client: Client, address: str = SUMMARY) -> dict[str, list[str]]:
    return dict(client.get(address).context["evidence"])


def test_it_has_the_verdict_and_the_plot_of_bench(operator: Client, labs: Labs) -> None:  # noqa: F811
    context = operator.get(SUMMARY).context
    bench = operator.get(ADDRESS).context["sections"]
    assert context["sections"].answer.verdict == bench.answer.verdict
    assert context["sections"].forest.parts == bench.forest.parts
    assert "bench/summary/?product=model" in shown(operator, ADDRESS)


def test_evidence_names_results_runs_days_repeats_and_hosts(operator: Client, labs: Labs) -> None:  # noqa: F811
    assert evidence(operator) == {
        "Results": ["14", "12"],
        "Source": ["Run 1", "Run 2"],
        "Measured (UTC)": ["2024-05-01", "2024-05-01"],
        "n of each value": ["4", "4"],
        "Host": ["storage1", "storage1"],
    }


def test_evidence_of_several_runs_and_days_has_their_ends(operator: Client, labs: Labs) -> None:  # noqa: F811
    again = Lab(labs[0].target, number=9)
    again.measure(100.0, iodepth=1)
    Result.objects.filter(run=again.run).update(measured_at="2024-06-02T23:30:00Z")
    found = evidence(operator)
    assert found["Source"][0] == "2 runs, latest run 9"
    assert found["Measured (UTC)"][0] == "2024-05-01 to 2024-06-02"
    assert found["n of each value"][0] == "4 to 5"


def test_an_import_without_times_has_unknown_days(operator: Client, labs: Labs) -> None:  # noqa: F811
    an_import(title="Old tests")
    found = evidence(operator, f"/bench/summary/?product=model:{SAMSUNG}&product=import:1")
    assert found["Source"] == ["Run 1", "Old tests"]
    assert found["Measured (UTC)"][1] == ""


def test_what_is_not_alike_is_bounded_and_counted(operator: Client, labs: Labs) -> None:  # noqa: F811
    facts = {f"host.fact{number}": "one" for number in range(MOST_UNLIKE + 3)}
    for lab, level in zip(labs, ("one", "other"), strict=True):
        lab.measure(100.0, iodepth=1, facts=FACTS | dict.fromkeys(facts, level))
    context = operator.get(SUMMARY).context
    assert len(context["unlike"]) == MOST_UNLIKE
    assert context["more_unlike"] == 3
    assert all(one.differs and one.label not in ("Host", "Model") for one in context["unlike"])
    assert len(context["caveats"]) <= MOST_CAVEATS


def test_the_plot_has_as_many_rows_as_there_is_room_for(operator: Client, labs: Labs) -> None:  # noqa: F811
    for lab in labs:
        for pattern in ("randwrite", "read", "write"):
            for depth in (1, 2, 4, 8, 16, 32):
                lab.measure(100.0, pattern=pattern, iodepth=depth, direction=pattern.removeprefix("rand"))
    groups = operator.get(SUMMARY).context["sections"].answer.forest
    assert sum(len(group.rows) + 1 for group in groups) <= MOST_ROWS
    assert len(groups) >= 2


@pytest.mark.parametrize(
    "query", ["", f"product=model:{SAMSUNG}", "product=drive:x", "&".join(f"product=run:{run}" for run in (1, 2, 3))]
)
def test_it_is_of_two_products(operator: Client, labs: Labs, query: str) -> None:  # noqa: F811
    answer = operator.get(f"/bench/summary/?{query}")
    assert (answer.status_code, answer["Location"]) == (302, "/bench/")


def test_two_products_without_a_common_workload_have_no_plot(operator: Client, labs: Labs) -> None:  # noqa: F811
    Result.objects.filter(target__model=INTEL).update(direction="write")
    Result.objects.filter(target__model=INTEL).update(invalid=True)
    context = operator.get(SUMMARY).context
    assert context["sections"].forest is None
    assert context["caveats"]
