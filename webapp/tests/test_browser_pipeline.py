"""What a person does on the first day, in Debian's Chromium, with nothing replaced: log in, start a plan, compare."""

import re

import pytest
from playwright.sync_api import Page, expect

from webapp.plans.document import Part, PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.models import Run, RunState
from webapp.tests.factories.people import PASSWORD, operator
from webapp.tests.system import StorageHost, System

pytestmark = [pytest.mark.pipeline, pytest.mark.browser]


def test_it_leads_from_log_in_to_a_comparison(system: System, storage: StorageHost, page: Page) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    factors = {"pattern": "randread", "ioengine": "io_uring, psync", "size": "16M", "runtime": "3s"}
    document = PlanDocument(title="Two engines", parts=(Part(name="main", factors=factors),), repeats=2)
    create_plan(document=document, by=None)

    page.goto("/plans/")
    page.get_by_label("Name").fill(operator().username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Two engines", exact=True).click()
    page.get_by_label(re.compile("storage1/scratch")).check()
    expect(page.get_by_text("ioengine=io_uring").or_(page.get_by_text("ioengine=psync")).first).to_be_visible()
    page.get_by_role("button", name="Start 4 trials").click()

    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.locator("#now-iops")).to_contain_text(re.compile(r"\d"))
    expect(page.locator("#run-head")).to_contain_text("4 trials in")
    expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
    assert Run.objects.get().state == RunState.DONE

    page.locator("#run-head").get_by_role("link", name="Explore").click()
    expect(page.locator("#compare-chart")).to_be_visible()
    table = page.locator("#compare-table")
    expect(table).to_contain_text("io_uring")
    expect(table).to_contain_text("psync")
    expect(table).to_contain_text(re.compile(r"[×%]"))

    page.get_by_role("link", name="Latency distribution").click()
    expect(page.locator("#latency-cdf")).to_be_visible()
    expect(page.locator("#ladder-table tbody tr").first).to_contain_text(re.compile(r"[nµm]s"))
    page.get_by_role("link", name="Time line").click()
    expect(page.locator("#time-lines")).to_be_visible()
    page.get_by_text("Table of values").click()
    expect(page.locator("#time-table tbody tr").nth(1)).to_contain_text(re.compile(r"\d"))
    page.get_by_text("Save comparison").click()
    page.get_by_label("Title", exact=True).fill("Engines on day one")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Engines on day one")).to_be_visible()
    assert problems == []
