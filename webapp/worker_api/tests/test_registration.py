"""Registration of hosts as it comes over HTTP, honest and hostile."""

import time
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from msgspec.structs import replace

from webapp.core.throttle import Rate
from webapp.hosts.models import HostInventory, InventoryContent, Target
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import expire_leases
from webapp.runs.models import Attempt
from webapp.tests.factories.hosts import a_host_with_token, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import ACCEPTED, STARTED, queued_envelopes, say
from webapp.tests.factories.runs import a_run
from webapp.worker_api import views
from webapp.worker_api.tests.posting import post, problem
from webapp.worker_api.tests.registering import register
from worker.contract.greetings import HelloReply
from worker.contract.tests.examples import HELLO

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_a_host_that_registers_too_often_must_wait_and_others_need_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each registration rewrites the row of the host, with up to 4 MB."""
    clock = [0.0]
    monkeypatch.setattr(views, "NUMBER", Rate(burst=3, per_s=0.2, clock=lambda: clock[0]))
    (_, token), (_, other) = a_host_with_token(), a_host_with_token()
    assert [register(token).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    assert problem(register(token)).code == "too_fast"
    assert register(other).status_code == 200
    clock[0] = 5.0
    assert [register(token).status_code for _ in range(2)] == [200, 429]


def test_the_bytes_of_registrations_have_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    body = msgspec.json.encode(HELLO)
    monkeypatch.setattr(views, "BYTES", Rate(burst=2.5 * len(body), per_s=0))
    _, token = a_host_with_token()
    assert [post("hello", body, token).status_code for _ in range(3)] == [200, 200, 429]


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


def hello_with(**facts: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(HELLO) | facts)


def changed(**facts: Any) -> bytes:
    return hello_with(inventory=msgspec.to_builtins(HELLO)["inventory"] | facts)


def device_with(**facts: Any) -> bytes:
    return changed(block_devices=[{**msgspec.to_builtins(HELLO)["inventory"]["block_devices"][0], **facts}])


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
    assert counts[0] == counts[1] <= 24, counts


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


def test_a_crafted_inventory_holds_no_process() -> None:
    host, token = a_host_with_token()
    started_at = time.process_time()
    assert post("hello", layered_hello(3, 20), token).status_code == 200
    viewer = Client()
    viewer.force_login(a_user())
    assert viewer.get(f"/hosts/{host.slug}/").status_code == 200
    assert time.process_time() - started_at < 5


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


def test_it_keeps_what_a_preview_needs_of_a_target() -> None:
    _, token = a_host_with_token()
    for sector_bytes in (512, 4096):  # the policy entry stays, so the target is updated
        facts = {"file_system": "8:1", "test_file_bytes": 7, "logical_block_bytes": sector_bytes}
        register(token, replace(HELLO, targets=(replace(HELLO.targets[0], **facts),)))
        assert Target.objects.values(*facts).get() == facts
