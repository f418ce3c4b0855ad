"""Adding a host in the browser with a real worker: the page waits, leads to the host, and shows its log."""

import re

import pytest
from playwright.sync_api import Page, expect

from webapp.core.models import Role
from webapp.hosts.models import Host
from webapp.tests.conftest import SCRATCH
from webapp.tests.factories.people import PASSWORD, person
from webapp.tests.system import StorageHost, System

pytestmark = [pytest.mark.pipeline, pytest.mark.browser]


def test_it_leads_from_the_line_to_the_host_and_its_log(system: System, page: Page) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto("/hosts/add/")
    page.get_by_label("Name").fill(person(Role.ADMIN).username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_label("Short name").fill("rack1")
    page.get_by_role("button", name="Create enrolment command").click()
    waiting = page.locator("#enrolment")
    expect(waiting).to_contain_text(re.compile(r"Waiting for the worker….*min.*left"))
    token = re.search(r"SWEETSPOT_TOKEN=(\w+)", page.locator("#enrol-line").inner_text())
    assert token

    scratch = system.folder / "scratch"
    scratch.mkdir(mode=0o755)
    host = StorageHost(system.folder, system.web, "rack1", SCRATCH.format(path=scratch), lambda command: command)
    system.hosts.append(host)
    host.run("enrol", "--server", system.web.url, "--token", token.group(1))
    expect(waiting).to_contain_text("rack1 is enrolled")
    host.start()
    expect(waiting).to_contain_text("its worker is online")
    waiting.get_by_role("link", name="rack1").click()

    expect(page.get_by_role("heading", name="rack1")).to_be_visible()
    expect(page.locator("#targets")).to_contain_text("usable")
    expect(page.locator("#worker-log")).to_contain_text("is ready")
    page.get_by_role("link", name="Manage").click()
    page.get_by_label("New name").fill("rack2")
    page.get_by_role("button", name="Rename rack1").click()
    expect(page.get_by_role("heading", name="rack2")).to_be_visible()
    page.goto("/hosts/rack1/")
    expect(page.get_by_text("rack1 is now called rack2.")).to_be_visible()
    page.get_by_role("link", name="Manage").click()
    page.get_by_label("Note: why").fill("new drives")
    page.get_by_role("button", name="Start maintenance of rack2").click()
    expect(page.get_by_text("In maintenance, no new trials: new drives")).to_be_visible()
    assert Host.objects.get().state == "maintenance"
    host.slug = "rack2"
    assert problems == []
