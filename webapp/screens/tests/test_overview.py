import re
from collections.abc import Callable

from django.test import Client

from webapp.screens.outcome import outcome
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
    running = factories.make_run(version, [target], repeats=1)
    factories.start_trial(running.trials.get(index=4))
    page = operator.get("/").content.decode()
    assert "First steps" not in page
    assert "Trial 5 of 12" in page
    assert 'data-host="storage1"' in page
    assert 'data-live-url="/runs/2/live/"' in page
    assert 'data-live-url="/runs/1/live/"' not in page
    assert "12 of 12" in page


def test_it_takes_as_many_queries_for_many_runs_as_for_one(queries_of: Callable[[str], int]) -> None:
    target = factories.make_target(factories.make_host())
    version = factories.make_version()
    factories.make_run(version, [target], repeats=1)
    factories.make_run(version, [target], repeats=1, state="done")
    queries_of("/")  # what came of a finished run is computed once
    one = queries_of("/")
    for _ in range(3):
        factories.make_run(version, [target], repeats=1)
        factories.make_run(version, [target], repeats=1, state="done")
    queries_of("/")
    assert queries_of("/") == one


def test_it_says_what_the_numbers_of_a_finished_run_say(operator: Client) -> None:
    target = factories.make_target(factories.make_host())
    run = factories.make_run(factories.make_version(), [target])
    factories.finish_run(run)
    page = operator.get("/").content.decode()
    assert "than io_uring" in page or "of io_uring" in page
    assert "/compare/?run=1" in page


def test_of_series_that_may_all_be_equal_it_tells_the_one_that_is_known_best(db: None) -> None:
    run = factories.make_run(factories.make_version(), [factories.make_target(factories.make_host())])
    factories.finish_run(run)
    for result in run.results.select_related("trial"):
        wild = result.point["pattern"] == "randwrite"
        more = 1.3 if wild and result.point["ioengine"] == "psync" else 1
        result.iops = 1000 * more * (1 + (0.5 if wild else 0.02) * (result.trial.repeat - 2))
        result.save(update_fields=["iops"])
    says = outcome(run, marked=0).says
    assert "no difference in IOPS within the resolution of 3 repeats (± " in says
    assert "randwrite" not in says


def test_where_nothing_is_held_against_anything_it_names_the_lowest_and_the_highest(db: None) -> None:
    run = factories.make_run(factories.make_version(), [factories.make_target(factories.make_host())])
    factories.finish_run(run)
    run.results.exclude(point__pattern="randread").delete()
    run.results.exclude(point__ioengine="io_uring").delete()
    says = outcome(run, marked=0).says
    assert re.fullmatch(r"IOPS from \S+ \(Queue depth 1\) to \S+ \(Queue depth 32\) over 2 points\.", says), says


def test_it_gives_the_reason_where_trials_failed(operator: Client) -> None:
    target = factories.make_target(factories.make_host())
    run = factories.make_run(factories.make_version(), [target], repeats=1, state="failed", reason_code="no_trial_done")
    factories.fail_trial(run.trials.get(index=0))
    page = operator.get("/").content.decode()
    assert "No trial of the run was completed." in page
    assert "1 of 12 trials failed. First reason: fio 3.33 on storage1 has no psync." in page


def test_it_says_what_comes_next_and_why_it_waits(operator: Client) -> None:
    host = factories.make_host(state="maintenance", maintenance_note="new drives")
    factories.make_run(factories.make_version(), [factories.make_target(host)], repeats=1, state="queued")
    page = operator.get("/").content.decode()
    assert "storage1 is in maintenance" in page
    assert "12 trials" in page
    assert "Nothing is running" in page
