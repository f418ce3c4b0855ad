import pytest
from django.test import Client

from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run


@pytest.fixture
def run(db: None) -> Run:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    finish_run(run)
    return run


def test_it_marks_a_trial_and_takes_that_back(operator: Client, run: Run) -> None:
    page = operator.post("/runs/1/trials/1/invalid/", {"reason": "A <b>backup</b> ran."}, follow=True)
    text = page.content.decode()
    assert '<tr class="distrust" title="Invalid: A &lt;b&gt;backup&lt;/b&gt; ran.">' in text
    results = operator.get("/results/").content.decode()
    assert "1 invalid result left out" in results
    assert "invalid: A &lt;b&gt;backup" in operator.get("/results/?invalid=1").content.decode()
    assert "Mark as valid" in text
    assert "Mark invalid" in operator.post("/runs/1/trials/1/valid/", follow=True).content.decode()
    assert not run.results.filter(invalid=True).exists()


def test_it_marks_a_run_and_takes_that_back(operator: Client, run: Run) -> None:
    text = operator.post("/runs/1/invalid/", {"reason": "wrong cable"}, follow=True).content.decode()
    assert "left out of comparisons: wrong cable" in text
    assert not run.results.filter(invalid=False).exists()
    operator.post("/runs/1/valid/")
    assert not run.results.filter(invalid=True).exists()


def test_it_says_why_it_cannot(operator: Client, run: Run) -> None:
    assert "Enter a reason" in operator.post("/runs/1/invalid/", {"reason": " "}, follow=True).content.decode()
    Run.objects.update(state="running")
    assert "still open" in operator.post("/runs/1/invalid/", {"reason": "x"}, follow=True).content.decode()


def test_a_viewer_sees_the_mark_and_no_button(viewer: Client, run: Run) -> None:
    Run.objects.update(invalid_reason="wrong cable")
    text = viewer.get("/runs/1/").content.decode()
    assert "wrong cable" in text
    assert "Mark as valid" not in text
    assert "Mark invalid" not in viewer.get("/runs/1/trials/1/").content.decode()


def test_open_pages_learn_that_a_mark_was_set_or_taken_back(operator: Client, run: Run) -> None:
    def counts() -> list[int]:
        return [operator.get(f"/runs/marks/{query}").json()["count"] for query in ("", "?run=1", "?run=2")]

    assert 'data-count="0" data-reload' in operator.get("/runs/1/").content.decode()
    before = counts()
    operator.post("/runs/1/trials/1/invalid/", {"reason": "x"})
    operator.post("/runs/1/trials/1/invalid/", {"reason": "x"})
    assert counts() == [before[0] + 1, before[1] + 1, 0]
    operator.post("/runs/1/trials/1/valid/")
    operator.post("/runs/1/invalid/", {"reason": "x"})
    assert counts() == [before[0] + 3, before[1] + 3, 0]
    for page in ("/runs/1/", "/runs/1/trials/1/", "/results/", "/explore/?run=1&invalid=1"):
        assert 'data-count="3"' in operator.get(page, follow=True).content.decode()
