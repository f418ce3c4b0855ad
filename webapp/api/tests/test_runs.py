"""Runs over HTTP, against the real database."""

from threading import BoundedSemaphore
from unittest.mock import patch
from uuid import uuid4

import pytest

from webapp.api import runs
from webapp.api.tests.clients import DOCUMENT, Caller
from webapp.hosts.models import Host
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def test_a_run_is_started_watched_and_cancelled(operator: Caller, viewer: Caller, host: Host) -> None:
    a_target(host, "scratch")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, run = operator("post", "runs", {"plan": "mine", "targets": ["a/scratch"], "note": "first", "seed": 3})
    assert (status, run["number"], run["plan"], run["trial_count"], run["seed"]) == (201, 1, "mine", 4, 3)
    assert viewer("get", "runs/1")[1]["progress"]["total"] == 4
    assert viewer("get", "runs/1")[1]["targets"] == ["a/scratch"]
    listed = viewer("get", "runs/1/trials?limit=2")[1]
    assert (listed["count"], [t["number"] for t in listed["items"]]) == (4, [1, 2])
    assert listed["items"][0]["point"]["pattern"] == "randread"
    assert viewer("get", f"trials/{listed['items'][0]['id']}/samples")[1]["samples"] == []
    assert viewer("get", f"trials/{listed['items'][1]['id']}/job")[1]["code"] == "job_unknown"
    cancelled = operator("post", "runs/1/cancel")[1]
    assert operator("post", "runs/1/cancel")[0] == 200
    assert cancelled["state"] in (RunState.CANCELLED, RunState.RUNNING, RunState.CLOSING, RunState.QUEUED)
    assert viewer("get", "runs/1/trials?state=cancelled")[1]["count"] >= 3
    assert viewer("get", "runs?plan=mine&host=a")[1]["count"] == 1
    assert viewer("get", "runs?plan=other")[1]["count"] == 0


def test_a_run_that_cannot_be_is_refused_in_words(operator: Caller, host: Host) -> None:
    a_target(host, "scratch", present=False, problem="unplugged")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, refused = operator("post", "runs", {"plan": "mine", "targets": ["a/scratch"]})
    assert (status, refused["code"]) == (409, "target_unavailable")
    assert "unplugged" in refused["message"]


@pytest.mark.parametrize(
    ("path", "more", "words"),
    [
        (
            "runs",
            {"dry_run": True},
            "body.dry_run: Unknown field. Use armed_serials, note, plan, request_id, seed, targets, version.",
        ),
        (
            "runs",
            {"sed": 1},
            "body.sed: Unknown field. Did you mean seed? "
            "Use armed_serials, note, plan, request_id, seed, targets, version.",
        ),
        ("runs?dry_run=1", {}, "query.dry_run: Unknown parameter. It takes none."),
    ],
)
def test_a_run_that_is_asked_for_with_an_unknown_field_is_not_started(
    operator: Caller, host: Host, path: str, more: dict[str, object], words: str
) -> None:
    a_target(host, "scratch")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, refused = operator("post", path, {"plan": "mine", "targets": ["a/scratch"], **more})
    assert (status, refused) == (422, {"code": "request_refused", "message": words})
    assert not Run.objects.exists()


def test_a_start_that_is_sent_twice_starts_one_run(operator: Caller, host: Host) -> None:
    a_target(host, "scratch")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    start = {"plan": "mine", "targets": ["a/scratch"], "request_id": str(uuid4())}
    assert [operator("post", "runs", start)[1]["number"] for _ in range(2)] == [1, 1]


def test_a_wait_ends_with_the_run(viewer: Caller, lab: Lab) -> None:
    Run.objects.update(state=RunState.RUNNING)

    def end_run(_seconds: float) -> None:
        Run.objects.update(state=RunState.DONE)

    with patch.object(runs, "sleep", side_effect=end_run) as sleep:
        assert viewer("get", "runs/1/wait?seconds=30")[1]["state"] == "done"
    sleep.assert_called_once()
    assert viewer("get", "runs/9/wait")[0] == 404
    assert viewer("get", "runs/1/wait?seconds=31")[0] == 422


def test_few_wait_at_a_time_and_others_are_answered_at_once(viewer: Caller, lab: Lab) -> None:
    Run.objects.update(state=RunState.RUNNING)
    full = BoundedSemaphore(1)
    full.acquire()
    with patch.object(runs, "_places", full), patch.object(runs, "sleep") as sleep:
        assert viewer("get", "runs/1/wait")[1]["state"] == "running"
    sleep.assert_not_called()


def test_the_shares_of_streams_are_read(viewer: Caller, lab: Lab) -> None:
    assert viewer("get", f"runs/{lab.run.number}/shares") == (200, [])
    for streams, beside, iops in (("a", "alone", 100.0), ("a + b", "b", 50.0)):
        lab.measure(*[iops] * 3, stream="a", streams=streams, beside=beside)
    (share,) = viewer("get", f"runs/{lab.run.number}/shares")[1]
    assert (share["streams"], share["n"], share["ratio"]) == (["a"], 3, pytest.approx(0.5))
    assert share["low"] < 0.5 < share["high"]
    assert viewer("get", f"runs/{lab.run.number}/rounds") == (200, [])


def test_a_run_answers_its_question(viewer: Caller, host: Host) -> None:
    lab = Lab(a_target(host, "scratch"))
    for scheduler, iops in (("none", 1000.0), ("kyber", 500.0)):
        lab.measure(*(iops,) * 4, scheduler=scheduler)
    status, answer = viewer("get", "runs/1/answer")
    assert (status, [factor["factor"] for factor in answer["factors"]]) == (200, ["scheduler"])
    (factor,) = answer["factors"]
    first = answer["findings"][0]
    assert (answer["headline"], answer["claim"]) == (first["sentence"], first["claim"])
    assert answer["conclusion"] == factor["conclusion"] != "none"
    compared = viewer("get", f"compare?{factor['query']}")[1]
    assert [series["headline"] for series in compared["panels"][0]["series"] if series["headline"]] == [factor["text"]]
    assert viewer("get", "runs/99/answer")[1]["code"] == "run_unknown"
