"""Hosts and targets over HTTP, against the real database."""

import pytest
from django.utils import timezone

from webapp.api.tests.clients import DOCUMENT, Caller, caller
from webapp.core.models import Role
from webapp.hosts.keys import signing_key
from webapp.hosts.models import EnrolmentToken, Host, HostInventory, InventoryContent
from webapp.hosts.services import rename_host
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def test_hosts_come_with_targets_and_inventory(viewer: Caller, lab: Lab, host: Host) -> None:
    content = InventoryContent.objects.create(digest="d", facts={"hostname": "a"})
    HostInventory.objects.create(host=host, content=content, taken_at=timezone.now())
    status, found = viewer("get", "hosts/a")
    assert status == 200
    assert [target["name"] for target in found["targets"]] == ["a/scratch"]
    assert found["inventory"] == {"hostname": "a"}
    assert "token_hash" not in found
    assert viewer("get", "targets?host=a&kind=directory&present=true")[1]["count"] == 1
    assert viewer("get", "targets?kind=block")[1]["items"] == []


def test_a_target_is_found_by_a_former_name_of_its_host_wherever_it_is_named(operator: Caller, host: Host) -> None:
    a_drive(host, "nvme0")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    rename_host(host=host, slug="rack4", by=None)
    a_drive(a_host("b"), "nvme0")
    for name in ("a", "rack4"):
        assert operator("post", f"hosts/{name}/targets/nvme0/endurance", {"tbw_tb": 9, "source": "paper"})[0] == 200
        assert operator("get", f"hosts/{name}/targets/nvme0/purges")[0] == 200
        assert operator("get", f"hosts/{name}/targets/nvme0/settings")[0] == 200
    twice = operator("get", "plans/mine/preview?target=a/nvme0&target=b/nvme0&target=rack4/nvme0")[1]
    assert {trial["target"] for trial in twice["trials"]} == {"rack4/nvme0", "b/nvme0"}
    assert (twice["problems"], twice["estimate"]["trials"]) == ([], 8)
    assert operator("post", "runs", {"plan": "mine", "targets": ["a/nvme0"]})[0] == 201
    assert operator("get", "runs/1")[1]["targets"] == ["rack4/nvme0"]
    status, told = operator("get", "hosts/c/targets/nvme0/purges")
    assert (status, told["code"]) == (404, "target_unknown")


def test_an_enrolment_has_the_command_and_the_fingerprint(operator: Caller) -> None:
    assert operator("post", "enrolments", {"slug": "storage2"})[0] == 403
    status, made = caller(Role.ADMIN)("post", "enrolments", {"slug": "storage2"})
    assert status == 200
    assert f"SWEETSPOT_TOKEN={made['token']} " in made["line"]
    assert made["line"].endswith(f"--key {made['fingerprint']}")
    assert made["fingerprint"] == signing_key()[0]
    assert EnrolmentToken.objects.get(host_slug="storage2").reference == made["reference"]
