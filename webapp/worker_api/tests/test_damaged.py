"""Damaged messages from a host with a running attempt: whatever is wrong with them, the answer is no 5xx."""

import pytest
from django.test import Client
from hypothesis import given

from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.tests.factories.hosts import a_host_with_token, a_target
from webapp.tests.factories.reports import ACCEPTED, STARTED, say
from webapp.tests.factories.runs import a_run
from worker.contract.tests.damaged import DECODERS, accepted, damaged, times, valid_messages
from worker.contract.tests.examples import ATTEMPT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
POSTED = ("Report", "Hello", "Enrol")


def test_the_application_answers_no_5xx() -> None:
    host, token = a_host_with_token()
    a_run(a_target(host))
    attempt = dispatch_host(host.pk)
    assert attempt
    say(host, attempt, (1, (ACCEPTED, STARTED)))
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {token}"})
    valid = [text for text in valid_messages() if any(accepted(DECODERS[name], text) for name in POSTED)]

    @times(2)
    @given(damaged([*valid, *(text.replace(ATTEMPT.encode(), str(attempt.pk).encode()) for text in valid)]))
    def check(text: bytes) -> None:
        path = "report" if b"batches" in text else "hello" if b"inventory" in text else "enrol"
        assert client.post(f"/api/worker/v1/{path}", text, content_type="application/json").status_code < 500

    check()
