import csv
from collections.abc import Callable

import pytest
from django.test import Client

from webapp.runs.models import Run
from webapp.screens.tests import factories


@pytest.fixture
def run(db: None) -> Run:
    run = factories.make_run(factories.make_version(), [factories.make_target(factories.make_host())], repeats=2)
    factories.finish_run(run)
    return run


def rows(client: Client, query: str = "") -> int:
    return client.get(f"/results/{query}").content.decode().count('class="sticky nowrap"')


def test_it_says_what_to_do_while_nothing_was_measured(operator: Client) -> None:
    assert "Nothing has been measured yet" in operator.get("/results/").content.decode()


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 24),
        ("?run=1", 24),
        ("?host=storage1&direction=write", 12),
        ("?factor.block_size=4k", 16),
        ("?factor.block_size=128k&factor.engine=psync", 4),
        ("?factor.iodepth=7", 0),
        ("?run=99", 0),
        ("?target=storage1/scratch&factor.iodepth=1&factor.iodepth=8", 16),
    ],
)
def test_it_filters_by_what_stands_in_the_address(operator: Client, run: Run, query: str, count: int) -> None:
    assert rows(operator, query) == count


def test_it_says_so_when_no_result_fits(operator: Client, run: Run) -> None:
    assert "No result fits these filters" in operator.get("/results/?factor.iodepth=7").content.decode()


@pytest.mark.parametrize("query", ["factor.iodepth=nonsense", "run=x", "colour=red", "target=scratch"])
def test_it_says_which_filter_it_does_not_understand(operator: Client, run: Run, query: str) -> None:
    for address in ("/results/", "/results.csv"):
        response = operator.get(f"{address}?{query}")
        assert response.status_code == 400
        assert query.partition("=")[0].removeprefix("factor.") in response.content.decode().lower().replace(" ", "")


def test_it_offers_filters_for_the_factors_that_vary(operator: Client, run: Run) -> None:
    page = operator.get("/results/?factor.block_size=4k").content.decode()
    assert 'name="factor.engine"' in page
    assert 'name="factor.runtime"' not in page
    assert '<option value="4k" selected>4 KiB</option>' in page


def test_it_marks_a_result_that_is_not_to_be_trusted(operator: Client, run: Run) -> None:
    result = run.results.order_by("id").first()
    assert result is not None
    run.trials.filter(pk=result.trial_id).update(invalid_reason="A backup ran meanwhile.")
    run.results.filter(pk=result.pk).update(invalid=True)
    assert rows(operator) == 23
    page = operator.get("/results/?invalid=1").content.decode()
    assert "not to be trusted: A backup ran meanwhile." in page


def test_it_gives_the_same_rows_as_csv_in_plain_numbers(operator: Client, run: Run) -> None:
    response = operator.get("/results.csv?factor.block_size=4k&direction=read")
    text = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    lines = list(csv.DictReader(text.splitlines()))
    assert len(lines) == 8
    assert {line["block_size"] for line in lines} == {"4096"}
    assert float(lines[0]["iops"]) > 0


def test_it_takes_as_many_queries_for_many_results_as_for_few(queries_of: Callable[[str], int], run: Run) -> None:
    few = queries_of("/results/")
    factories.finish_run(factories.make_run(run.version, list(run.targets.all()), repeats=2))
    assert queries_of("/results/") == few
