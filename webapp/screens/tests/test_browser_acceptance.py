"""A person judges a server against a published reference system, in Debian's Chromium."""

import re

import pytest
from playwright.sync_api import Page, expect

from webapp.imports.references.reading import load_references
from webapp.results.models import Import
from webapp.tests.visits import WATCH, sideways, visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_reference_system_is_chosen_and_rows_pass_or_fail(page: Page, problems: list[str]) -> None:
    page.add_init_script(WATCH)
    page.emulate_media(reduced_motion="reduce")
    load_references()
    numbers = dict(Import.objects.values_list("slug", "number"))
    page.goto(f"/imports/{numbers['supermicro-arc1260']}/")
    page.get_by_role("link", name="Acceptance test").click()
    page.wait_for_load_state()
    page.locator("#id-candidate").select_option(f"import={numbers['dell-pe2970-perc5i']}")
    expect(page).to_have_url(re.compile("candidate=import"))
    page.get_by_label("Candidate: Read-ahead").select_option("not set")
    expect(page).to_have_url(re.compile("read_ahead_sectors=not"))
    expect(page.locator("td .state-cancelled")).to_have_count(14)
    expect(page.locator("nav a[aria-current=page]").first).to_have_text("Compare")
    table = page.get_by_role("region", name="Table of rows")
    assert table.evaluate("(box) => box.scrollWidth <= box.clientWidth")  # the reasons are not cut
    page.get_by_label("Judge values without repeats").check()
    expect(page).to_have_url(re.compile("single_values=1"))
    expect(page.locator("td .state-failed")).to_have_count(6)
    page.get_by_label("Bandwidth").fill("60")
    page.get_by_label("Bandwidth").press("Enter")
    expect(page).to_have_url(re.compile("tolerance.bytes_per_s=60"))
    expect(page.locator("td .state-done")).to_have_count(12)
    address = page.url
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert visit(page, address).problems == ()
        assert sideways(page) == 0
    assert problems == []
