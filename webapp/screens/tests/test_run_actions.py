"""The buttons of a run's pages: what they do, what they say, and when they are not there."""

import re
import uuid
from collections.abc import Callable

import pytest
from django.test import Client

from webapp.results.models import Result
from webapp.runs.models import Note, Run, RunState
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run, finish_trial
from webapp.tests.factories.runs import end_attempt, fail_trial, first_look_run, start_trial
from worker.contract.packing import Histogram, pack


@pytest.fixture
def run(db: None) -> Run:
    """Its first trial is done, the second runs."""
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=2)
    finish_trial(run.trials.get(index=0))
    start_trial(run.trials.get(index=1))
    return run


def end_running(run: Run) -> None:
    """Its trial is planned once more, and the host is free."""
    end_attempt(run.attempts.get(state="running"))
    run.attempts.filter(trial__index=1).delete()
    run.trials.filter(index=1).update(state="planned")


def said(client: Client, address: str, **data: object) -> str:
    return client.post(address, data, follow=True).content.decode()


def test_it_pauses_and_goes_on(operator: Client, run: Run) -> None:
    text = said(operator, "/runs/1/pause/")
    assert "Run 1 is paused" in text
    assert re.search(r'<h1 id="run-heading">Paused after \d of 24 trials</h1>', text)
    assert "Paused</strong> by olga" in text
    assert "The settings are kept for 60 s" in text
    assert re.search(r'id="run-elapsed">paused for \d s, ran for \d s<', text)
    assert ">Resume<" in text
    text = said(operator, "/runs/1/resume/")
    assert ">Pause<" in text
    assert re.search(r'id="run-elapsed">running for \d s<', text)
    assert Run.objects.get().state == RunState.RUNNING


def test_it_names_what_cancelling_stops(operator: Client, run: Run) -> None:
    text = operator.get("/runs/1/").content.decode()
    assert "Trial 2 on storage1 will be stopped." in text
    assert ">22 planned trials will not start.<" in text
    run.trials.exclude(index__in=(0, 1, 2)).update(state="cancelled")
    assert ">1 planned trial will not start.<" in operator.get("/runs/1/").content.decode()


def test_it_skips_the_running_trial_and_all_planned_ones_of_a_point(operator: Client, run: Run) -> None:
    assert "being stopped" in said(operator, "/runs/1/skip/", trial="2", reason="too <slow>")
    assert run.trials.get(index=1).skip_sentence == "Skipped by olga: too <slow>"
    assert "Skipped by olga: too &lt;slow&gt;" in operator.get("/runs/1/trials/2/").content.decode()
    text = said(operator, "/runs/1/skip/", point="3", trial="3", back="3")
    assert "2 trials will not start" in text
    assert "Skipped by olga." in text
    assert run.trials.filter(reason_code="skipped").count() == 2


def test_it_says_why_it_does_nothing(operator: Client, run: Run) -> None:
    assert "Trial 1 has ended" in said(operator, "/runs/1/skip/", trial="1")
    assert "no such trial" in said(operator, "/runs/1/skip/", trial="x")
    Run.objects.update(state="done")
    assert "Run 1 has ended" in said(operator, "/runs/1/pause/")
    assert "No trial of run 1 failed" in said(operator, "/runs/1/again/", what="failed")


def test_notes_keep_their_lines_and_are_no_markup(operator: Client, run: Run) -> None:
    said(operator, "/runs/1/notes/", text="fan <b>off</b>\nat noon")
    text = said(operator, "/runs/1/notes/", text="about this one", back="1")
    assert "about this one" in text
    assert "fan &lt;b&gt;" not in text
    page = operator.get("/runs/1/").content.decode()
    assert "fan &lt;b&gt;off&lt;/b&gt;\nat noon" in page
    assert "trial #1</a>" in page
    first = Note.objects.earliest("id").pk
    for _ in range(2):
        said(operator, f"/runs/1/notes/{first}/delete/")
    assert Note.objects.get().trial == run.trials.get(index=0)
    assert "note is empty" in said(operator, "/runs/1/notes/", text=" ")


def test_a_run_is_started_again_once_however_often_the_form_is_sent(operator: Client, run: Run) -> None:
    end_running(run)
    finish_run(run)
    page = operator.get("/runs/1/").content.decode()
    assert "Only the 0 failed trials" in page
    form = {"request_id": str(uuid.uuid4()), "seed": "same", "note": "after the update"}
    for _ in range(2):
        operator.post("/runs/1/again/", form)
    made = Run.objects.filter(again_of=run)
    if not made:  # the made-up plan does not fit the made-up target: then the page says why
        assert "Not started:" in operator.get("/runs/1/").content.decode()
    else:
        assert (made.get().seed, made.get().note) == (7, "after the update")


def test_a_viewer_has_no_buttons(viewer: Client, run: Run) -> None:
    for address in ("/runs/1/", "/runs/1/trials/2/"):
        page = viewer.get(address).content.decode()
        for word in ("Pause", "Cancel run", "Skip", "Add note", "Mark invalid", "Run again"):
            assert f">{word}" not in page, (address, word)


def test_it_tells_what_a_finished_run_came_to(operator: Client, run: Run) -> None:
    end_running(run)
    fail_trial(run.trials.get(index=1), reason="fio said nothing for 60 s.")
    finish_run(run)
    page = operator.get("/runs/1/").content.decode()
    assert "23 of 24 trials done, 1 failed" in page
    assert "fio said nothing for 60 s." in page
    assert "scheduler" in page
    assert "All trials had the same configuration." in page
    assert "± " in page


def test_it_shows_percentiles_of_the_whole_histogram_and_fios_own_words(operator: Client, run: Run) -> None:
    histogram = Histogram(latency_ns=(1000, 2000, 900_000), counts=(600, 380, 20))
    Result.objects.update(latency=pack(histogram))
    page = operator.get("/runs/1/trials/1/").content.decode()
    assert '<th scope="row" class="sticky">p99</th><td class="num">900 µs</td>' in page
    assert '<th scope="row" class="sticky">p99.9</th><td class="num">–</td>' in page
    assert operator.get("/runs/1/trials/2/engine-output.json").status_code == 404


def test_it_lists_runs_by_plan_host_person_and_text(operator: Client, run: Run) -> None:
    other = first_look_run(run.version, [storage1_scratch(a_host("storage2"))], repeats=1)
    Note.objects.create(run=other, text="The fan was OFF")

    def listed(query: str) -> list[int]:
        page = operator.get(f"/runs/?{query}").content.decode()
        return [number for number in (1, 2) if f'<a href="/runs/{number}/">' in page]

    assert listed("") == [1, 2]
    assert listed("host=storage2") == [2]
    assert listed("text=fan+was+off") == [2]
    assert listed(f"plan={run.version.plan.slug}&state=open") == [1, 2]
    assert listed("state=ended") == []
    assert listed("by=nobody") == []
    assert "No runs match" in operator.get("/runs/?plan=gone").content.decode()


def test_the_run_page_takes_as_many_queries_with_many_notes_and_settings(
    run: Run, queries_of: Callable[[str], int]
) -> None:
    end_running(run)
    Note.objects.create(run=run, text="one")
    few = queries_of("/runs/1/")
    for index in range(2, 6):
        finish_trial(run.trials.get(index=index))
        Note.objects.create(run=run, trial=run.trials.get(index=index), text="more")
    assert queries_of("/runs/1/") == few
