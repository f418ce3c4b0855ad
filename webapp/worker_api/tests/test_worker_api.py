"""Enrolment, registration and reports as they come over HTTP, and everything that is refused there."""

import json
from datetime import timedelta

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from msgspec.structs import replace

from webapp.core import tally
from webapp.hosts.credentials import request_rotation
from webapp.hosts.models import HostState
from webapp.hosts.services import revoke_host
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.tests.factories.hosts import a_host_with_token, a_target
from webapp.tests.factories.reports import ACCEPTED, STARTED, sample
from webapp.tests.factories.runs import a_run
from webapp.worker_api import views
from webapp.worker_api.tests.posting import post, problem
from worker.contract.base import MAX_ENROL_BYTES, MAX_HELLO_BYTES, MAX_REPORT_BYTES, encode
from worker.contract.greetings import TokenRequest
from worker.contract.reports import Batch, Report, ReportReply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.mark.parametrize("what", ["hello", "report"])
def test_it_refuses_who_has_no_good_token(what: str) -> None:
    host, token = a_host_with_token()
    revoke_host(host=host, by=None)
    answers = [post(what, b"{}"), post(what, b"{}", "nonsense"), post(what, b"{}", token)]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1


@pytest.mark.parametrize("token", ["", "nonsense", "é"])
def test_it_needs_one_query_to_refuse_and_one_to_count_it(token: str) -> None:
    tally.forget()
    with CaptureQueriesContext(connection) as captured:
        assert post("report", b"{}", token).status_code == 401
    assert len(captured) == 2


@pytest.mark.parametrize(
    ("what", "limit"), [("enrol", MAX_ENROL_BYTES), ("hello", MAX_HELLO_BYTES), ("report", MAX_REPORT_BYTES)]
)
def test_it_refuses_a_body_that_is_too_long_by_its_announced_length(what: str, limit: int) -> None:
    _, token = a_host_with_token()
    response = post(what, b"{}", token, CONTENT_LENGTH=str(limit + 1))
    assert (response.status_code, problem(response).code) == (413, "too_large")


def test_it_refuses_a_body_without_a_length() -> None:
    _, token = a_host_with_token()
    response = post("report", b"{}", token, CONTENT_LENGTH="")
    assert (response.status_code, problem(response).code) == (400, "bad_message")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"version":2,"batches":7}', b'{"version":2,"extra":1}', b"\xff\xfe", b"[" * 10_000],
)
def test_it_refuses_messages_that_violate_the_contract(body: bytes) -> None:
    _, token = a_host_with_token()
    response = post("report", body, token)
    assert (response.status_code, problem(response).code) == (400, "bad_message")


def test_it_refuses_another_contract_version_in_words() -> None:
    _, token = a_host_with_token()
    response = post("report", json.dumps({"version": 9, "news": 1}).encode(), token)
    assert (response.status_code, problem(response).code) == (426, "version_mismatch")
    assert "Upgrade" in problem(response).message


@pytest.mark.parametrize("what", ["enrol", "hello", "report"])
def test_it_takes_nothing_but_posts(what: str) -> None:
    assert Client().get(f"/api/worker/v1/{what}").status_code == 405


def test_it_stores_the_time_of_a_report_before_the_reply() -> None:
    host, token = a_host_with_token(last_seen_at=timezone.now() - timedelta(minutes=1))
    response = post("report", Report(active=("x",)), token)
    reply = msgspec.json.decode(response.content, type=ReportReply)
    assert reply.attempts[0].refusal
    assert reply.attempts[0].refusal.code == "unknown_attempt"
    host.refresh_from_db()
    assert host.last_seen_at
    assert host.last_seen_at > timezone.now() - timedelta(seconds=5)


def test_it_does_not_read_the_body_of_an_unauthenticated_request() -> None:
    """Not even its announced length matters: who sends it is asked first."""
    assert post("report", b"{", "nonsense", CONTENT_LENGTH=str(MAX_REPORT_BYTES + 1)).status_code == 401


def test_it_names_an_invalid_batch_and_accepts_the_others() -> None:
    host, token = a_host_with_token()
    a_run(a_target(host), trials=1)
    attempt = dispatch_host(host.pk)
    assert attempt
    good = Batch(attempt=str(attempt.pk), seq=1, items=(ACCEPTED, STARTED, sample(0)))
    report = json.loads(encode(Report(batches=(good, replace(good, seq=2), replace(good, seq=3)))))
    report["batches"][1]["items"] = [{"type": "sample", "stream": -1}]
    response = post("report", json.dumps(report).encode(), token)
    (reply,) = msgspec.json.decode(response.content, type=ReportReply).attempts
    assert (response.status_code, reply.attempt, reply.confirmed_seq) == (200, str(attempt.pk), 1)
    assert reply.refusal
    assert (reply.refusal.code, reply.refusal.seq) == ("bad_item", 2)
    assert "could not be read" in reply.refusal.message
    attempt.refresh_from_db()
    assert (attempt.state, attempt.outcome_code, attempt.samples.count()) == ("failed", "bad_item", 1)


def test_it_says_how_often_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    _, token = a_host_with_token()
    assert msgspec.json.decode(post("report", Report(), token).content, type=ReportReply).report_every_s == 1
    monkeypatch.setattr(views._of_this_process, "interval_s", 3.4)
    assert msgspec.json.decode(post("report", Report(), token).content, type=ReportReply).report_every_s == 3.4


def test_it_accepts_messages_from_hosts_in_maintenance() -> None:
    _, token = a_host_with_token(state=HostState.MAINTENANCE)
    assert post("report", Report(), token).status_code == 200


def test_the_reply_has_the_version_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.contract.base.CONTRACT_VERSION", 3)
    host, token = a_host_with_token()
    for version in (2, 3):
        reply = post("report", Report(version=version, active=("nothing",)), token)
        assert json.loads(reply.content)["version"] == version
    request_rotation(host=host, by=None)
    assert json.loads(post("token", TokenRequest(version=3), token).content)["version"] == 3
    refused = post("report", Report(version=4), token)
    assert (refused.status_code, problem(refused).code) == (426, "version_mismatch")
    assert "understands 2 to 3" in problem(refused).message
