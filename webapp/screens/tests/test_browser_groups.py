"""Host groups and maintenance windows in a browser, by keyboard and with dialogs."""

import pytest
from playwright.sync_api import Page, expect

from webapp.hosts.groups import MemberSpec, create_group
from webapp.hosts.models import HostGroup, MaintenanceWindow
from webapp.tests.factories.hosts import a_host, storage1_scratch

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def in_order(page: Page) -> list[str]:
    return page.locator("input[name=member]").evaluate_all("boxes => boxes.map((box) => box.value)")  # type: ignore[no-any-return]


def test_hosts_are_put_in_order_by_keyboard_and_saved(page: Page, problems: list[str]) -> None:
    for name in ("storage1", "storage2", "storage3"):
        storage1_scratch(a_host(name))
    members = [MemberSpec(name, ["scratch"]) for name in ("storage1", "storage2")]
    create_group(title="Both racks", members=members, by=None)
    page.goto("/groups/both-racks/")
    page.get_by_label("Add", exact=True).select_option("storage3")
    page.get_by_role("button", name="Add host").click()
    page.get_by_role("group", name="Targets of storage3").get_by_role("checkbox").check()
    page.get_by_role("button", name="Move storage3 up").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Move storage3 up")).to_be_focused()
    assert in_order(page) == ["storage1", "storage3", "storage2"]
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Move storage3 down")).to_be_focused()
    assert in_order(page) == ["storage3", "storage1", "storage2"]
    page.get_by_label("Label of storage3").fill("third")
    page.keyboard.press("Enter")  # saves
    expect(page.get_by_text("was saved")).to_be_visible()
    found = HostGroup.objects.get().members.all()
    assert [member.label for member in found] == ["third", "storage1", "storage2"]
    assert problems == []


def test_a_group_and_a_window_are_deleted_after_a_confirmation(page: Page, problems: list[str]) -> None:
    storage1_scratch(a_host("storage1"))
    create_group(title="Rack", members=[MemberSpec("storage1", ["scratch"])], by=None)
    page.goto("/groups/rack/")
    page.get_by_role("button", name="Delete Rack").click()
    page.get_by_role("button", name="Keep it").click()
    assert HostGroup.objects.exists()
    page.get_by_role("button", name="Delete Rack").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete Rack").click()
    expect(page.get_by_text("Its hosts and results stay.")).to_be_visible()
    page.goto("/hosts/storage1/manage/")
    form = page.get_by_role("form", name="Add a weekly window")
    form.get_by_label("Sun").check()
    form.get_by_label("From").fill("02:00")
    form.get_by_label("To").fill("04:00")
    form.get_by_role("button").click()
    expect(page.get_by_role("cell", name="02:00 to 04:00, Sun (UTC)", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete 02:00 to 04:00").click()
    page.get_by_role("button", name="Delete the window").click()
    expect(page.get_by_text("storage1 has no maintenance windows.")).to_be_visible()
    assert not MaintenanceWindow.objects.exists()
    assert problems == []
