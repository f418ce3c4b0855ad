from collections.abc import Callable

import pytest
from django.test import Client

from webapp.runs.models import Run
from webapp.screens.tests import factories

ADDRESS = "/compare/?run=1&x=iodepth&series=engine&panel=pattern"


@pytest.fixture
def run(db: None) -> Run:
    run = factories.make_run(factories.make_version(), [factories.make_target(factories.make_host())])
    factories.finish_run(run)
    return run


def test_it_says_what_to_do_while_there_is_nothing_to_compare(operator: Client) -> None:
    page = operator.get("/compare/").content.decode()
    assert "There is nothing to compare yet" in page


def test_it_says_so_when_a_choice_leaves_nothing(operator: Client, run: Run) -> None:
    assert "There is nothing to compare in this choice" in operator.get("/compare/?run=99").content.decode()
    assert "No result fits this choice" in operator.get("/compare/?run=99&x=iodepth").content.decode()


def test_it_puts_its_own_choice_into_the_address(operator: Client, run: Run) -> None:
    response = operator.get("/compare/?run=1")
    assert response.status_code == 302
    assert response["Location"] == ADDRESS


def test_it_shows_charts_sentences_and_all_numbers(operator: Client, run: Run) -> None:
    page = operator.get(ADDRESS).content.decode()
    assert page.count("<canvas") == 4
    assert 'id="compare-data"' in page
    assert page.count('class="mark"') == 12
    assert "slower than io_uring" in page
    assert "single-factor" in page


def test_it_holds_the_others_against_the_chosen_baseline(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&baseline=psync&metric=latency_p99").content.decode()
    assert '<option value="psync" selected>' in page
    assert "lower is better" in page


def test_it_warns_when_something_else_differs_too(operator: Client, run: Run) -> None:
    page = operator.get("/compare/?run=1&x=iodepth&series=pattern").content.decode()
    assert "confounded" in page
    assert "Block size" in page


@pytest.mark.parametrize("query", ["x=nonsense", "x=iodepth&metric=speed", "colour=red", "x=iodepth&series=iodepth"])
def test_it_says_in_words_what_it_cannot_compare(operator: Client, run: Run, query: str) -> None:
    response = operator.get(f"/compare/?{query}")
    assert response.status_code == 400
    assert "Begin again" in response.content.decode()


def test_it_takes_as_many_queries_for_many_results_as_for_few(queries_of: Callable[[str], int], run: Run) -> None:
    address = ADDRESS.replace("run=1&", "")
    few = queries_of(address)
    factories.finish_run(factories.make_run(run.version, list(run.targets.all())))
    assert queries_of(address) == few
