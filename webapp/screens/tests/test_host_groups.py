"""Host groups on pages and in the API."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from webapp.hosts.groups import MemberSpec, create_group
from webapp.hosts.models import Host, HostGroup
from webapp.hosts.services import rename_host, revoke_host
from webapp.schedules.models import Schedule, Trigger
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look

FORM = {
    "title": "Both racks", "member": ["storage2", "storage1"], "label.storage2": "broadcom", "label.storage1": "",
    "target.storage2": ["scratch"], "target.storage1": ["nvme0", "scratch"],
}  # fmt: skip


@pytest.fixture
def hosts(db: None) -> list[Host]:
    made = [a_host(name) for name in ("storage1", "storage2", "storage3")]
    for host in made:
        storage1_scratch(host)
        storage1_drive(host)
    return made


@pytest.fixture
def group(hosts: list[Host]) -> HostGroup:
    members = [MemberSpec("storage2", ["scratch"], "broadcom"), MemberSpec("storage1", ["scratch"], "adaptec")]
    return create_group(title="Both racks", members=members, by=None)


def text_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def shown(page: str) -> list[str]:
    """Hosts in the order of the form."""
    return re.findall(r'name="member" value="([^"]*)"', page)


def members(slug: str = "both-racks") -> list[tuple[str, str, list[str]]]:
    found = HostGroup.objects.get(slug=slug).members.all()
    return [(one.host.slug, one.label, sorted(one.targets.values_list("slug", flat=True))) for one in found]


def test_the_list_says_what_a_group_is_while_there_is_none(operator: Client, viewer: Client) -> None:
    assert "A host group names hosts on which a schedule runs the same plan" in text_of(operator, "/groups/")
    assert "Create a host group" not in text_of(viewer, "/groups/")
    assert 'href="/groups/"' in text_of(viewer, "/hosts/")


def test_it_lists_hosts_with_labels_and_the_schedules_that_use_them(operator: Client, group: HostGroup) -> None:
    owner = a_user("otto")
    Schedule.objects.create(
        name="Nightly",
        owner=owner,
        version=first_look(),
        group=group,
        trigger=Trigger.CRON,
        cron="0 2 * * *",
    )
    page = text_of(operator, "/groups/")
    for words in ("Both racks", "broadcom", "adaptec", "storage1", "scratch", "Nightly"):
        assert words in page
    answer = operator.post("/groups/both-racks/delete/", follow=True).content.decode()
    assert "in use: schedule “Nightly”" in answer
    assert HostGroup.objects.exists()
    assert ">the schedule “Nightly”</a>." in answer


def test_more_groups_take_no_more_queries(
    queries_of: Callable[[str], int], hosts: list[Host], group: HostGroup
) -> None:
    before = queries_of("/groups/")
    for number in range(4):
        specs = [MemberSpec(host.slug, ["scratch", "nvme0"]) for host in hosts]
        create_group(title=f"More {number}", members=specs, by=None)
    assert queries_of("/groups/") == before
    assert queries_of("/groups/more-1/") == queries_of("/groups/both-racks/")


def test_it_creates_and_changes_a_group(operator: Client, hosts: list[Host]) -> None:
    answer = operator.post("/groups/new/", FORM, follow=True)
    assert answer.redirect_chain[-1][0] == "/groups/both-racks/"
    assert "was created" in answer.content.decode()
    expected = [("storage2", "broadcom", ["scratch"]), ("storage1", "storage1", ["nvme0", "scratch"])]
    assert members() == expected
    operator.post("/groups/both-racks/", FORM | {"title": "Other", "member": ["storage1"]})
    assert members() == expected[1:]
    assert HostGroup.objects.get().title == "Other"


def test_steps_change_the_form_and_save_nothing(operator: Client, hosts: list[Host]) -> None:
    def step(do: str, **changes: object) -> str:
        return operator.post("/groups/new/", FORM | {"do": do} | changes).content.decode()

    page = step("up:storage1")
    assert shown(page) == ["storage1", "storage2"]
    assert 'value="broadcom"' in page
    assert re.search(r'aria-label="Move storage1 down" autofocus', page)  # it is at the top now
    assert shown(step("down:storage1")) == ["storage2", "storage1"]
    assert shown(step("remove:storage2")) == ["storage1"]
    assert shown(step("add", add="storage3")) == ["storage2", "storage1", "storage3"]
    assert shown(step("add", add="storage1")) == ["storage2", "storage1"]
    three = FORM | {"member": ["storage1", "storage2", "storage3"]}
    assert re.search(r'aria-label="Move storage3 up" autofocus', step("up:storage3", **three))
    for hostile in ("up:nowhere", "explode", "up:", ":", "add"):
        assert shown(step(hostile)) == ["storage2", "storage1"], hostile
    assert shown(step("add", add="nowhere")) == ["storage2", "storage1"]
    assert not HostGroup.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": ""}, "needs a title of 1 to 120 characters"),
        ({"title": "a\0b"}, "characters that cannot be shown"),
        ({"member": []}, "The host group has no hosts"),
        ({"member": ["storage1", "nowhere"]}, "There is no host `nowhere`"),
        ({"member": ["storage1", "<script>"]}, "There is no host `&lt;script&gt;`"),
        ({"member": ["\0"]}, "There is no host"),
        ({"member": [f"h{n}" for n in range(5000)]}, "a host group has at most 100"),
        ({"target.storage1": []}, "Choose at least one target of storage1"),
        ({"target.storage1": ["storage2/scratch"]}, "storage1 has no target `storage2/scratch`"),
        ({"label.storage1": "broadcom"}, "The label “broadcom” is used twice"),
        ({"label.storage1": "x" * 64}, "The label of storage1 needs 1 to 63 characters"),
        ({"label.storage1": "no label"}, "is reserved. Choose another label."),
    ],
)
def test_it_says_why_not_and_keeps_what_was_typed(
    operator: Client, hosts: list[Host], changes: dict[str, Any], words: str
) -> None:
    answer = operator.post("/groups/new/", FORM | changes)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert "title" in changes or 'value="Both racks"' in page
    assert not HostGroup.objects.exists()


def test_a_viewer_reads_it_and_cannot_change_it(viewer: Client, group: HostGroup) -> None:
    page = text_of(viewer, "/groups/both-racks/")
    assert "broadcom" in page
    assert "<form method" not in page.split("<main")[1]
    assert viewer.get("/groups/new/").status_code == 403
    for address in ("/groups/new/", "/groups/both-racks/", "/groups/both-racks/delete/"):
        assert viewer.post(address, FORM).status_code == 403
    assert members() == [("storage2", "broadcom", ["scratch"]), ("storage1", "adaptec", ["scratch"])]


def test_it_marks_a_revoked_host_and_a_target_that_left_the_policy(
    operator: Client, hosts: list[Host], group: HostGroup
) -> None:
    rename_host(host=hosts[1], slug="rack4", by=None)
    revoke_host(host=hosts[1], by=None)
    hosts[0].targets.filter(slug="scratch").update(in_policy=False)
    for address in ("/groups/", "/groups/both-racks/"):
        page = text_of(operator, address)
        assert "rack4" in page
        assert "revoked</span>" in page
        assert "scratch is no longer in the policy file." in page
    problems = [member["problems"] for member in operator.get("/api/v1/groups/both-racks").json()["members"]]
    assert problems == [["The host is revoked."], ["scratch is no longer in the policy file."]]
    page = text_of(operator, "/groups/both-racks/")
    assert 'name="target.storage1" value="scratch"' not in page
    assert 'name="target.storage1" value="nvme0"' in page


def test_it_is_deleted_with_its_confirmation(operator: Client, group: HostGroup) -> None:
    assert 'data-dialog="delete-group"' in text_of(operator, "/groups/both-racks/")
    answer = operator.post("/groups/both-racks/delete/", follow=True)
    assert "was deleted. Its hosts and results stay." in answer.content.decode()
    assert operator.get("/groups/both-racks/").status_code == 404
    assert operator.post("/groups/both-racks/delete/").status_code == 404


# ---- API


def api(client: Client, method: str, path: str, body: object = None) -> tuple[int, Any]:
    data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    answer = getattr(client, method)(f"/api/v1/{path}", **data)
    return answer.status_code, answer.json() if answer.content else None


BODY: dict[str, Any] = {
    "title": "Both racks",
    "members": [
        {"host": "storage2", "targets": ["scratch"], "label": "broadcom"},
        {"host": "storage1", "targets": ["nvme0"]},
    ],
}


def test_the_api_reads_and_writes_groups(operator: Client, viewer: Client, hosts: list[Host]) -> None:
    status, made = api(operator, "post", "groups", BODY)
    assert status == 201
    assert (made["slug"], made["title"]) == ("both-racks", "Both racks")
    assert made["members"] == [
        {"host": "storage2", "targets": ["scratch"], "label": "broadcom", "problems": []},
        {"host": "storage1", "targets": ["nvme0"], "label": "storage1", "problems": []},
    ]
    assert api(viewer, "get", "groups")[1]["items"] == [made]
    assert api(viewer, "get", "groups/both-racks") == (200, made)
    turned = {"title": "Turned", "members": BODY["members"][::-1]}
    status, changed = api(operator, "put", "groups/both-racks", turned)
    assert (status, changed["title"], changed["members"]) == (200, "Turned", made["members"][::-1])
    assert api(operator, "post", "groups", BODY | {"slug": "both-racks"})[0] == 409
    assert api(viewer, "put", "groups/both-racks", turned)[0] == 403
    assert api(viewer, "delete", "groups/both-racks")[0] == 403
    assert api(operator, "delete", "groups/both-racks") == (204, None)
    assert api(operator, "get", "groups/both-racks") == (
        404, {"code": "group_unknown", "message": "There is no host group both-racks."}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        (BODY | {"members": []}, 422),
        (BODY | {"title": ""}, 422),
        (BODY | {"title": "\ud800"}, 422),
        (BODY | {"slug": "a\0"}, 422),
        (BODY | {"slug": "\ud800"}, 422),
        (BODY | {"colour": "red"}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": ["scratch"], "name": "x"}]}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": ["scratch"], "label": ""}]}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": "scratch"}]}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": []}]}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": ["\ud800"]}]}, 404),
        (BODY | {"members": [{"host": "\ud800", "targets": ["scratch"]}]}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": ["storage2/scratch"]}]}, 404),
        (BODY | {"members": [{"host": "a\0", "targets": ["scratch"]}]}, 404),
        (BODY | {"members": [{"host": "storage1", "targets": ["scratch"]}] * 2}, 422),
        (BODY | {"members": [{"host": "storage1", "targets": ["scratch"]}] * 101}, 422),
        ({"title": ["x"], "members": {}}, 422),
    ],
)
def test_the_api_refuses_hostile_groups_in_words(
    operator: Client, hosts: list[Host], body: object, status: int
) -> None:
    answered, said = api(operator, "post", "groups", body)
    assert (answered, set(said)) == (status, {"code", "message"}), said
    assert not HostGroup.objects.exists()


def test_the_list_of_the_api_takes_a_fixed_number_of_queries(
    queries_of: Callable[[str], int], hosts: list[Host], group: HostGroup
) -> None:
    before = queries_of("/api/v1/groups")
    for number in range(4):
        create_group(title=f"More {number}", members=[MemberSpec(host.slug, ["scratch"]) for host in hosts], by=None)
    assert queries_of("/api/v1/groups") == before
