from collections.abc import Callable

from django.test import Client

from webapp.hosts.lifecycle import rename_host
from webapp.runs.models import Run
from webapp.screens.tests import factories


def make_run(**changes: object) -> Run:
    target = factories.make_target(factories.make_host())
    return factories.make_run(factories.make_version(), [target], **changes)  # type: ignore[arg-type]


def test_it_says_what_to_do_while_nothing_has_run(operator: Client) -> None:
    assert "Nothing has been run yet" in operator.get("/runs/").content.decode()


def test_it_lists_runs_of_one_state(operator: Client) -> None:
    run = make_run(repeats=1, state="cancelled")
    factories.make_run(run.version, list(run.targets.all()), repeats=1)
    page = operator.get("/runs/?state=cancelled").content.decode()
    assert "Run 1<" in page
    assert "Run 2<" not in page
    assert "No run fits these filters" in operator.get("/runs/?state=failed").content.decode()


def test_a_filter_by_a_hosts_former_name_follows_the_rename(operator: Client) -> None:
    run = make_run(repeats=1)
    rename_host(host=run.targets.get().host, slug="rack4", by=None)
    page = operator.get("/runs/?host=storage1").content.decode()
    assert "Run 1<" in page
    assert '<option value="rack4" selected>rack4</option>' in page


def test_it_takes_as_many_queries_for_many_runs_as_for_one(queries_of: Callable[[str], int]) -> None:
    run = make_run(repeats=1)
    one = queries_of("/runs/")
    for _ in range(4):
        factories.make_run(run.version, list(run.targets.all()), repeats=1)
    assert queries_of("/runs/") == one


def test_it_shows_a_run_that_has_not_begun(operator: Client) -> None:
    make_run(repeats=1, state="queued", started_at=None)
    page = operator.get("/runs/1/").content.decode()
    assert "Queued" in page
    assert "0 of 12 trials" in page
    assert "No second has been measured yet" in page


def test_a_finished_run_says_what_was_learned(operator: Client) -> None:
    factories.finish_run(make_run())
    page = operator.get("/runs/1/").content.decode()
    assert "36 of 36 trials done" in page
    assert "than io_uring" in page or "of io_uring" in page
    assert "No second has been measured yet" not in page


def test_it_shows_the_grid_with_numbers_reasons_and_what_is_still_planned(operator: Client) -> None:
    run = make_run(repeats=2)
    factories.finish_trial(run.trials.get(index=0))
    factories.fail_trial(run.trials.get(index=1), reason="fio 3.33 on storage1 has no psync.")
    page = operator.get("/runs/1/").content.decode()
    result = run.results.get()
    assert f'data-trial="0"><a href="/runs/1/trials/0/" title="Trial 1: Done">{result.iops / 1000:.1f}k</a>' in page
    assert 'class="trial state-failed" data-trial="1"' in page
    assert "fio 3.33 on storage1 has no psync." in page
    assert page.count('class="trial state-planned"') == 22
    assert "Cancel run 1?" in page


def test_it_shows_as_many_queries_for_a_large_run_as_for_a_small_one(
    operator: Client, queries_of: Callable[[str], int]
) -> None:
    before = make_run(repeats=1)  # so that both have a run before them there
    run, large = (factories.make_run(before.version, list(before.targets.all()), repeats=n) for n in (1, 4))
    for one in (before, run, large):
        factories.finish_run(one)
    assert queries_of("/runs/2/") == queries_of("/runs/3/")


def test_it_offers_cancelling_only_to_operators_and_only_while_the_run_is_open(
    operator: Client, viewer: Client
) -> None:
    run = make_run(repeats=1)
    assert "/runs/1/cancel/" in operator.get("/runs/1/").content.decode()
    assert "/runs/1/cancel/" not in viewer.get("/runs/1/").content.decode()
    Run.objects.filter(pk=run.pk).update(state="done")
    assert "/runs/1/cancel/" not in operator.get("/runs/1/").content.decode()


def test_it_cancels_a_run(operator: Client) -> None:
    make_run(repeats=1)
    assert operator.post("/runs/1/cancel/")["Location"] == "/runs/1/"
    assert Run.objects.get().cancel_requested_at is not None or Run.objects.get().state == "cancelled"
    page = operator.get("/runs/1/").content.decode()
    assert "being cancelled; changed settings are put back" in page
    assert 'action="/runs/1/cancel/"' not in page


def test_it_says_so_when_a_run_has_ended_before_it_could_be_cancelled(operator: Client) -> None:
    make_run(repeats=1, state="done")
    operator.post("/runs/1/cancel/")
    assert "has already ended" in operator.get("/runs/1/").content.decode()
    assert Run.objects.get().cancel_requested_at is None


def test_it_shows_what_a_trial_asked_for_and_what_was_there(operator: Client) -> None:
    run = make_run(repeats=3)
    factories.finish_trial(run.trials.get(index=0))
    page = operator.get("/runs/1/trials/0/").content.decode()
    for text in ("rw=randread", "cpu affinity is not set", "mq-deadline", "kernel.release", "Repeat 3", "exit code 0"):
        assert text in page


def test_it_shows_a_failed_trial_with_its_reason_and_a_planned_one_without_numbers(operator: Client) -> None:
    run = make_run(repeats=1)
    factories.fail_trial(run.trials.get(index=0), code="fio_silent", reason="fio said nothing for 60 s.")
    failed = operator.get("/runs/1/trials/0/").content.decode()
    assert "fio_silent" in failed
    assert "fio said nothing for 60 s." in failed
    assert "This trial has not begun" in operator.get("/runs/1/trials/1/").content.decode()
