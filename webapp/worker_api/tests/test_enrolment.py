"""Enrolment as it comes over HTTP."""

from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone
from msgspec.structs import replace

from webapp.hosts.models import EnrolmentToken, Host
from webapp.hosts.services import issue_enrolment_token
from webapp.tests.factories.people import a_user
from webapp.tests.threads import at_once
from webapp.worker_api.tests.posting import enrol, enrol_message, post, problem
from worker.contract.greetings import EnrolReply
from worker.contract.reports import Report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_an_enrolled_host_can_send_messages() -> None:
    reply = msgspec.json.decode(enrol(issue_enrolment_token(by=a_user())).content, type=EnrolReply)
    host = Host.objects.get()
    assert (reply.host, reply.host_name, host.hostname) == (
        str(host.pk),
        "storage1-lab-example",
        "storage1.lab.example",
    )
    assert reply.host_token not in host.token_hash
    assert post("report", Report(), reply.host_token).status_code == 200


def test_it_names_the_host_as_the_token_says_and_never_twice() -> None:
    names = []
    for _ in range(3):
        reply = enrol(issue_enrolment_token(by=None, slug="lab"))
        names.append(msgspec.json.decode(reply.content, type=EnrolReply).host_name)
    assert names == ["lab", "lab-2", "lab-3"]


def test_it_takes_a_token_once() -> None:
    token = issue_enrolment_token(by=None)
    assert enrol(token).status_code == 200
    again = enrol(token)
    assert (again.status_code, problem(again).code) == (403, "enrolment_token_invalid")
    assert Host.objects.count() == 1


def test_it_takes_a_token_once_from_two_at_the_same_time() -> None:
    token = issue_enrolment_token(by=None)
    statuses = [response.status_code for response in at_once(*[lambda: enrol(token)] * 3)]  # type: ignore[attr-defined]
    assert sorted(statuses) == [200, 403, 403]
    assert Host.objects.count() == 1


def test_it_refuses_an_expired_and_an_unknown_token_alike() -> None:
    token = issue_enrolment_token(by=None)
    EnrolmentToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    expired, unknown = enrol(token), enrol("x" * 43)
    assert expired.status_code == unknown.status_code == 403
    assert expired.content == unknown.content


def test_it_refuses_a_worker_of_another_contract_and_keeps_the_token_good() -> None:
    token = issue_enrolment_token(by=None)
    newer = replace(enrol_message(token), oldest_contract=8, newest_contract=9)
    response = post("enrol", newer)
    assert (response.status_code, problem(response).code) == (426, "version_mismatch")
    assert enrol(token).status_code == 200
