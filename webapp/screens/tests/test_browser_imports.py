"""The form of the page of imports in Debian's Chromium."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_columns_of_a_csv_are_stated_with_a_preview_of_its_first_row(
    page: Page, problems: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "own.csv"
    table.write_text("Workload;IO/s;Firmware\nrandread;10200;A1\nrandwrite;5000;A1\n")
    page.goto("/imports/")
    page.locator("#import-files").set_input_files(table)
    preview = page.locator("#columns-preview")
    expect(preview).to_contain_text("Columns of own.csv: Workload, IO/s, Firmware")
    expect(preview).to_contain_text("A row has no result")
    page.get_by_label("Columns of CSV files").fill("Workload = pattern\nIO/s = ipos")
    expect(preview).to_contain_text("Did you mean `iops`?")
    page.get_by_label("Columns of CSV files").fill("Workload = pattern\nIO/s = iops")
    expect(preview).to_contain_text("First row: read · Pattern: randread · IOPS: 10.2k · Firmware: A1")
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/imports/1/")
    expect(page.locator("main")).to_contain_text("10.2")
    assert problems == []
