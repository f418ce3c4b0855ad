"""Runs over HTTP, against the real database."""

import pytest

from webapp.api.tests.clients import DOCUMENT, Caller
from webapp.hosts.models import Host
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_target

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
        ("runs", {"dry_run": True}, "body.dry_run: Extra inputs are not permitted"),
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
