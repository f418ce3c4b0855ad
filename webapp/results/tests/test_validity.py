"""Marking what is not to be trusted: left out by default, never gone, taken back."""

import pytest
from django.test import Client

from webapp.analysis.comparing import compare
from webapp.analysis.question import read_query
from webapp.core.models import AuditEntry
from webapp.results.models import Result, known
from webapp.results.reading.filter import read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import read_rows
from webapp.results.validity import mark_run, mark_trial, trust_run, trust_trial
from webapp.runs.models import Run, RunState, Trial, TrialState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import Lab
from webapp.tests.refusals import refuses
from webapp.tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(db: None) -> Lab:
    lab = Lab(a_target(a_host("a"), "scratch"))
    lab.measure(1.0, 2.0, 3.0, iodepth=1)
    return lab


def seen(query: str = "") -> list[float]:
    pairs = [tuple(pair.split("=", 1)) for pair in query.split("&") if pair]
    return sorted(known(result.iops) for result in ResultQuery.of(read_filter(pairs)).results)  # type: ignore[arg-type]


def trial(lab: Lab, index: int) -> Trial:
    return lab.run.trials.select_related("run").get(index=index)


def test_it_leaves_a_marked_trial_out_and_says_how_many_and_why(lab: Lab) -> None:
    mark_trial(trial=trial(lab, 1), reason="  A backup ran.  ", by=a_user("olga"))
    assert seen() == [1.0, 3.0]
    assert seen("invalid=1") == [1.0, 2.0, 3.0]
    assert ResultQuery.of(read_filter([])).count_invalid_left_out() == 1
    assert ResultQuery.of(read_filter([("invalid", "1")])).count_invalid_left_out() == 0
    (marked,) = read_rows(Result.objects.filter(invalid=True))
    assert marked.why_invalid == "A backup ran."
    assert compare(read_query([("x", "iodepth")])).results == 2
    assert "1 invalid result is left out." in compare(read_query([("x", "iodepth")])).notes
    assert compare(read_query([("x", "iodepth"), ("invalid", "1")])).results == 3
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.detail) == ("olga", "trial.invalid", {"reason": "A backup ran."})


def test_marking_twice_is_marking_once_and_another_reason_replaces_the_first(lab: Lab) -> None:
    for reason in ("hot", "hot", "hotter"):
        mark_trial(trial=trial(lab, 0), reason=reason, by=None)
    assert trial(lab, 0).invalid_reason == "hotter"
    assert AuditEntry.objects.count() == 2


def test_it_takes_the_mark_back_and_twice_is_once(lab: Lab) -> None:
    mark_trial(trial=trial(lab, 0), reason="hot", by=None)
    for _ in range(2):
        trust_trial(trial=trial(lab, 0), by=None)
    assert seen() == [1.0, 2.0, 3.0]
    assert AuditEntry.objects.filter(action="trial.valid", detail={"reason": "hot"}).count() == 1


def test_a_run_is_marked_whole_and_a_trial_of_it_keeps_its_own_mark(lab: Lab) -> None:
    mark_trial(trial=trial(lab, 2), reason="hot", by=None)
    mark_run(run=lab.run, reason="wrong cable", by=None)
    assert seen() == []
    assert trial(lab, 0).why_invalid == "wrong cable"
    assert trial(lab, 2).why_invalid == "hot"
    with refuses("run_invalid"):
        trust_trial(trial=trial(lab, 0), by=None)
    trust_trial(trial=trial(lab, 2), by=None)
    assert seen() == []
    mark_trial(trial=trial(lab, 2), reason="hot", by=None)
    for _ in range(2):
        trust_run(run=lab.run, by=None)
    assert seen() == [1.0, 2.0]


def test_it_needs_a_reason_and_something_that_has_ended(lab: Lab) -> None:
    with refuses("reason_missing"):
        mark_trial(trial=trial(lab, 0), reason=" \n", by=None)
    Trial.objects.filter(run=lab.run, index=0).update(state=TrialState.RUNNING)
    with refuses("trial_not_done"):
        mark_trial(trial=trial(lab, 0), reason="hot", by=None)
    Run.objects.update(state=RunState.RUNNING)
    with refuses("run_not_ended"):
        mark_run(run=lab.run, reason="hot", by=None)
    assert seen() == [1.0, 2.0, 3.0]
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_leave_one_mark_that_fits_the_results() -> None:
    lab = Lab(a_target(a_host("a"), "scratch"))
    lab.measure(1.0, iodepth=1)
    at_once(
        *(lambda: mark_run(run=Run.objects.get(), reason="cable", by=None) for _ in range(2)),
        *(lambda: mark_trial(trial=trial(lab, 0), reason="hot", by=None) for _ in range(2)),
        lambda: trust_run(run=Run.objects.get(), by=None),
    )
    assert Result.objects.get().invalid == bool(trial(lab, 0).why_invalid)
    assert AuditEntry.objects.filter(action="trial.invalid").count() == 1


def test_the_api_marks_and_unmarks(lab: Lab, client: Client) -> None:
    client.force_login(a_user("olga"))
    path = f"/api/v1/trials/{trial(lab, 0).pk}/invalid"
    answer = client.post(path, {"reason": "hot"}, content_type="application/json")
    assert (answer.status_code, answer.json()["invalid_reason"]) == (200, "hot")
    assert client.post(path, {"reason": ""}, content_type="application/json").status_code == 422
    assert client.delete(path).json()["invalid_reason"] == ""
    run = client.post("/api/v1/runs/1/invalid", {"reason": "cable"}, content_type="application/json")
    assert run.json()["invalid_reason"] == "cable"
    assert client.delete("/api/v1/runs/1/invalid").json()["invalid_reason"] == ""
    client.force_login(a_user("vera", role="viewer"))  # type: ignore[arg-type]
    assert client.post(path, {"reason": "hot"}, content_type="application/json").status_code == 403
    assert seen() == [1.0, 2.0, 3.0]
