"""Enrolment, registration and reports as they come over HTTP, and everything that is refused there."""

import json
import time
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.core import tally
from webapp.hosts.lifecycle import revoke_host
from webapp.hosts.models import EnrolmentToken, Host, HostInventory, HostState, InventoryContent, Target
from webapp.hosts.services import issue_enrolment_token
from webapp.hosts.tokens import request_rotation
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import expire_leases
from webapp.runs.dispatch.tests.test_dispatcher import at_once
from webapp.runs.models import Attempt
from webapp.tests.factories.hosts import a_host_with_token, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import ACCEPTED, STARTED, queued_envelopes, sample, say
from webapp.tests.factories.runs import a_run
from webapp.worker_api import report_interval
from worker.contract.base import MAX_ENROL_BYTES, MAX_HELLO_BYTES, MAX_REPORT_BYTES, Message, encode
from worker.contract.greetings import Enrol, EnrolReply, HelloReply, Problem, TokenRequest
from worker.contract.reports import Batch, Report, ReportReply
from worker.contract.tests.examples import HELLO

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
replace = msgspec.structs.replace


def post(what: str, message: Message | bytes, token: str = "", **extra: Any) -> Any:
    body = message if isinstance(message, bytes) else encode(message)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = Client(enforce_csrf_checks=True)
    return client.post(f"/api/worker/v1/{what}", body, content_type="application/json", headers=headers, **extra)


def problem(response: Any) -> Problem:
    found: Problem = msgspec.json.decode(response.content, type=Problem)
    return found


def enrol_message(token: str, hostname: str = "storage1.lab.example") -> Enrol:
    return Enrol(token=token, hostname=hostname, worker_version="0.1.0", oldest_contract=2, newest_contract=2)


def enrol(token: str, hostname: str = "storage1.lab.example") -> Any:
    return post("enrol", enrol_message(token, hostname))


# ---- enrolment


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


# ---- the edge


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


# ---- registration


def register(token: str, message: Message = HELLO) -> Any:
    return post("hello", message, token)


def test_it_stores_the_registration() -> None:
    host, token = a_host_with_token(last_seen_at=None, capabilities={})
    reply = msgspec.json.decode(register(token).content, type=HelloReply)
    assert reply.contract == 2
    assert abs(reply.server_time - timezone.now().timestamp()) < 5
    assert reply.public_keys
    host.refresh_from_db()
    assert host.last_seen_at
    assert host.capabilities["engines"]["fio"]["version"] == "fio-3.33"
    target = Target.objects.get()
    assert (target.slug, target.serial, target.destroy) == ("nvme0", "S4EWNX0R512345", True)
    assert target.lock_keys == ["eui.0025385b71b0a2f1", "nvme-drive:SAMSUNG MZQLB960HAJR-00007:S4EWNX0R512345"]


def test_it_keeps_the_same_inventory_once_and_every_change() -> None:
    _, token = a_host_with_token()
    changed = replace(HELLO, inventory=replace(HELLO.inventory, memory_bytes=1))
    for message in (HELLO, HELLO, changed, HELLO):
        assert register(token, message).status_code == 200
    assert HostInventory.objects.count() == 3
    assert InventoryContent.objects.count() == 2


def test_values_that_change_by_themselves_create_no_new_inventory() -> None:
    host, token = a_host_with_token()
    warmer = replace(HELLO.health[0], temperature_c=55)
    for message in (HELLO, replace(HELLO, health=(warmer,))):
        assert register(token, message).status_code == 200
    host.refresh_from_db()
    assert (HostInventory.objects.count(), host.health[0]["temperature_c"]) == (1, 55)
    assert host.settings_allowed == ["vm.dirty_ratio", "vm.dirty_bytes"]


def test_it_refuses_in_words_what_the_database_cannot_keep() -> None:
    _, token = a_host_with_token()
    inventory = replace(HELLO.inventory, hostname="a\x00b")
    response = post("hello", replace(HELLO, inventory=inventory), token)
    assert response.status_code == 400
    assert problem(response).code == "bad_message"
    assert not InventoryContent.objects.exists()


def test_it_follows_the_policy_file() -> None:
    _, token = a_host_with_token()
    register(token)
    first = Target.objects.get()
    renamed = replace(HELLO, targets=(replace(HELLO.targets[0], id="other"),))
    register(token, renamed)
    assert dict(Target.objects.values_list("slug", "in_policy")) == {"nvme0": False, "other": True}
    register(token)
    first.refresh_from_db()
    assert first.in_policy
    register(token, replace(HELLO, targets=(replace(HELLO.targets[0], destroy=False, size_bytes=1),)))
    first.refresh_from_db()
    assert (first.destroy, first.size_bytes) == (False, 1)


def test_it_refuses_a_policy_that_lists_an_id_twice() -> None:
    _, token = a_host_with_token()
    response = register(token, replace(HELLO, targets=HELLO.targets * 2))
    assert (response.status_code, problem(response).code) == (400, "policy_id_twice")
    assert not Target.objects.exists()


def test_it_keeps_a_drive_apart_from_the_one_that_took_its_place() -> None:
    """Results point at the target they were measured on; a new drive under the old id must not rename them."""
    _, token = a_host_with_token()
    first, other = HELLO.targets[0], replace(HELLO.targets[0], serial="ANOTHER", model="New model", stable_id="eui.2")
    register(token, HELLO)
    old = Target.objects.get()
    register(token, replace(HELLO, targets=(other,)))
    old.refresh_from_db()
    assert (old.serial, old.in_policy, old.present) == (first.serial, False, False)
    assert Target.objects.get(in_policy=True).serial == "ANOTHER"
    register(token, HELLO)  # the first one is put back
    old.refresh_from_db()
    assert (old.in_policy, old.present, Target.objects.count()) == (True, True, 2)


def test_it_stores_the_warnings_about_a_target_and_forgets_them() -> None:
    _, token = a_host_with_token()
    register(token)
    assert Target.objects.get().warnings == list(HELLO.targets[0].warnings) != []
    register(token, replace(HELLO, targets=(replace(HELLO.targets[0], warnings=()),)))
    assert Target.objects.get().warnings == []


def test_it_needs_a_fixed_number_of_queries_for_any_number_of_targets() -> None:
    _, token = a_host_with_token()
    register(token)
    many = tuple(replace(HELLO.targets[0], id=f"t{number}") for number in range(50))
    counts = []
    for targets in (HELLO.targets, HELLO.targets + many):  # none goes: retiring what went is one query more
        with CaptureQueriesContext(connection) as captured:
            register(token, replace(HELLO, targets=targets))
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 21, counts


def test_it_sends_work_to_a_host_that_comes_back() -> None:
    host, token = a_host_with_token(last_seen_at=None)
    a_run(a_target(host))
    assert dispatch_host(host.pk) is None
    register(token)
    assert len(queued_envelopes(host)) == 1


def test_a_returning_host_can_continue_a_lost_attempt() -> None:
    host, token = a_host_with_token()
    a_run(a_target(host))
    attempt = dispatch_host(host.pk)
    assert attempt
    say(host, attempt, (1, (ACCEPTED, STARTED)))
    Attempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    expire_leases()
    register(token, replace(HELLO, journal=(str(attempt.pk),)))
    assert Attempt.objects.get().state == "running"


# ---- reports


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
    monkeypatch.setattr(report_interval._of_this_process, "interval_s", 3.4)
    assert msgspec.json.decode(post("report", Report(), token).content, type=ReportReply).report_every_s == 3.4


def test_it_accepts_messages_from_hosts_in_maintenance() -> None:
    _, token = a_host_with_token(state=HostState.MAINTENANCE)
    assert post("report", Report(), token).status_code == 200


# ---- versions of the contract


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


# ---- hostile inventories


def layered_hello(width: int, layers: int) -> bytes:
    """A small message in which width ** layers ways lead from the target to the bottom."""
    plain = msgspec.to_builtins(HELLO)
    example = {**plain["inventory"]["block_devices"][0], "controller": ""}
    names = [[f"d{layer}-{number}" for number in range(width)] for layer in range(layers)]
    plain["inventory"]["block_devices"] = [
        {**example, "name": name, "stable_id": f"wwn-{name}", "parents": names[layer - 1] if layer else []}
        for layer in range(layers)
        for name in names[layer]
    ]
    plain["targets"][0]["device"] = names[-1][0]
    return msgspec.json.encode(plain)


def test_a_crafted_inventory_holds_no_process() -> None:
    host, token = a_host_with_token()
    started_at = time.process_time()
    assert post("hello", layered_hello(3, 20), token).status_code == 200
    viewer = Client()
    viewer.force_login(a_user())
    assert viewer.get(f"/hosts/{host.slug}/").status_code == 200
    assert time.process_time() - started_at < 5


def hello_with(**facts: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(HELLO) | facts)


def changed(**facts: Any) -> bytes:
    return hello_with(inventory=msgspec.to_builtins(HELLO)["inventory"] | facts)


def device_with(**facts: Any) -> bytes:
    return changed(block_devices=[{**msgspec.to_builtins(HELLO)["inventory"]["block_devices"][0], **facts}])


@pytest.mark.parametrize(
    "body",
    [
        device_with(parents=[f"sd{number}" for number in range(1500)]),
        device_with(optimal_io_bytes=-1),
        changed(pci=[{"address": "a", "kind": "", "vendor_id": "", "device_id": "", "link": {"payload_bytes": -26}}]),
        changed(numa_nodes=[{"number": number, "cpus": "", "memory_bytes": 1} for number in range(5000)]),
        hello_with(at=1.7e308),
        hello_with(health=[{"device": "a", "serial": "", "percent_used": -1}]),
    ],
    ids=["parents", "negative size", "negative payload", "many nodes", "time", "percent"],
)  # fmt: skip
def test_it_refuses_figures_that_no_host_has(body: bytes) -> None:
    _, token = a_host_with_token()
    refused = post("hello", body, token)
    assert (refused.status_code, problem(refused).code) == (400, "bad_message")
