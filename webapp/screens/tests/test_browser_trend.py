"""A person sets a baseline run on the page Trend and sees which runs fail, in Debian's Chromium."""

import pytest
from playwright.sync_api import Page, expect

from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS
from webapp.trends.tests.measuring import Nights

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ADDRESS = "/trends/?plan=nightly&target=a/scratch"


def test_a_baseline_run_is_set_and_the_step_is_drawn(page: Page, problems: list[str]) -> None:
    nights = Nights(a_version(slug="nightly"), a_target(a_host("a"), "scratch"))
    for _ in range(11):
        nights.run(1000, 4000)
    for _ in range(5):
        nights.run(800, 3200, facts=FACTS | {"kernel.release": "6.12.0"})
    page.goto(ADDRESS)
    expect(page.locator("#trend-chart")).to_be_visible()
    expect(page.locator("#steps-title").locator("xpath=ancestor::section")).to_contain_text("run 12")
    page.get_by_label("Queue depth").select_option("2")
    page.wait_for_url("**factor.iodepth=2**")
    expect(page.locator("h2", has_text="One cell")).to_be_visible()
    page.goto("/runs/1/")
    page.get_by_role("link", name="Use as baseline run").click()
    expect(page.locator("#baseline-run")).to_have_value("1")
    page.get_by_role("textbox", name="IOPS").fill("5")
    page.get_by_role("button", name="Set baseline run").click()
    expect(page.locator("td .state-failed")).to_have_count(5)
    page.get_by_role("link", name="Run 16", exact=True).click()
    expect(page.locator("#verdict-title").locator("xpath=ancestor::section")).to_contain_text("3 rows fail")
    assert problems == []
