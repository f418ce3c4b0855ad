"""A host's token is changed without a moment in which none of its tokens opens."""

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.hosts.credentials import authenticate_host, next_token, request_rotation
from webapp.hosts.models import Host
from webapp.hosts.services import revoke_host
from webapp.tests.factories.hosts import a_host_with_token
from webapp.tests.refusals import refuses
from webapp.worker_api.tests.posting import post, problem
from webapp.worker_api.tests.registering import register
from worker.contract.greetings import HelloReply, TokenReply, TokenRequest
from worker.contract.reports import Report, ReportReply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_it_keeps_the_old_token_until_the_new_one_was_used() -> None:
    host, old = a_host_with_token()
    assert request_rotation(host=host, by=None)
    assert not request_rotation(host=host, by=None)
    first = next_token(host=host).host_token
    second = next_token(host=host).host_token  # the answer with the first was lost
    assert authenticate_host(old) == host
    assert authenticate_host(first) is None
    assert authenticate_host(second) == host
    assert authenticate_host(old) is None
    assert authenticate_host(second) == host
    assert Host.objects.get().rotation_requested_at is None


def test_it_gives_no_token_that_was_not_asked_for() -> None:
    _, token = a_host_with_token()
    answer = post("token", TokenRequest(), token)
    assert (answer.status_code, problem(answer).code) == (400, "token_not_due")
    assert post("token", TokenRequest(), "unknown").status_code == 401
    assert Host.objects.get().next_token_hash is None


def test_it_tells_the_host_in_every_reply_and_over_http_all_the_way() -> None:
    host, old = a_host_with_token()
    assert not msgspec.json.decode(register(old).content, type=HelloReply).token_due
    request_rotation(host=host, by=None)
    assert msgspec.json.decode(register(old).content, type=HelloReply).token_due
    assert msgspec.json.decode(post("report", Report(), old).content, type=ReportReply).token_due
    new = msgspec.json.decode(post("token", TokenRequest(), old).content, type=TokenReply).host_token
    reply = msgspec.json.decode(post("report", Report(), new).content, type=ReportReply)
    assert not reply.token_due
    assert post("report", Report(), old).status_code == 401


def test_it_knows_a_host_by_one_query() -> None:
    _, token = a_host_with_token()
    for plain in (token, "unknown"):
        with CaptureQueriesContext(connection) as queries:
            authenticate_host(plain)
        assert len(queries) == 1


def test_it_changes_no_token_of_a_revoked_host() -> None:
    host, _ = a_host_with_token()
    request_rotation(host=host, by=None)
    handed_out = next_token(host=host).host_token
    revoke_host(host=host, by=None)
    assert authenticate_host(handed_out) is None
    with refuses("host_revoked"):
        request_rotation(host=host, by=None)
