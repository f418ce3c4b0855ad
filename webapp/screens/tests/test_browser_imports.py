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


def test_the_preview_of_labels_says_how_many_files_it_tries(page: Page, problems: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "PM9A3"
    folder.mkdir()
    for depth in range(1, 503):
        (folder / f"randread-{depth}-1.json").write_text("{}")
    page.goto("/imports/")
    page.locator("#import-folder").set_input_files(folder)
    page.get_by_role("button", name="Use {drive}/{rw}-{iodepth}-{numjobs}.json").click()
    preview = page.locator("#pattern-preview")
    expect(preview).to_contain_text("The pattern matches 500 of 500 paths.")
    expect(preview).to_contain_text("Only the first 500 of 502 files are tried here.")
    assert problems == []
