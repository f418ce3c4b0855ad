from collections.abc import Callable

from django.test import Client

from webapp.screens.tests import factories


def test_it_says_how_to_begin_while_there_is_no_host(operator: Client) -> None:
    factories.make_version()
    page = operator.get("/").content.decode()
    assert "First steps" in page
    assert "/plans/first-look/" in page
    assert "Nothing is running" in page


def test_it_shows_what_runs_and_what_has_finished(operator: Client) -> None:
    target = factories.make_target(factories.make_host())
    version = factories.make_version()
    finished = factories.make_run(version, [target], repeats=1)
    factories.finish_run(finished)
    factories.make_run(version, [target], repeats=1)
    page = operator.get("/").content.decode()
    assert "First steps" not in page
    assert 'data-live-url="/runs/2/live/"' in page
    assert 'data-live-url="/runs/1/live/"' not in page
    assert "12 of 12" in page


def test_it_takes_as_many_queries_for_many_runs_as_for_one(queries_of: Callable[[str], int]) -> None:
    target = factories.make_target(factories.make_host())
    version = factories.make_version()
    factories.make_run(version, [target], repeats=1)
    factories.make_run(version, [target], repeats=1, state="done")
    one = queries_of("/")
    for _ in range(3):
        factories.make_run(version, [target], repeats=1)
        factories.make_run(version, [target], repeats=1, state="done")
    assert queries_of("/") == one
