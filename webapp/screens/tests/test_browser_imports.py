"""The form of the page of imports in Debian's Chromium."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from webapp.tests.factories.imports import an_import

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
    for depth in range(1, 2003):
        (folder / f"randread-{depth}-1.json").write_text("{}")
    page.goto("/imports/")
    page.locator("#import-folder").set_input_files(folder)
    page.get_by_role("button", name="Use {drive}/{rw}-{iodepth}-{numjobs}.json").click()
    preview = page.locator("#pattern-preview")
    expect(preview).to_contain_text("The pattern matches 2000 of 2,000 paths.")
    expect(preview).to_contain_text("Only the first 2000 of 2,002 files are tried here.")
    assert problems == []


def test_paths_without_labels_are_listed_before_the_import(page: Page, problems: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "PM9A3"
    folder.mkdir()
    for name in ("randread-1-1.json", "randread-2-1.json", "notes.txt"):
        (folder / name).write_text("{}")
    page.goto("/imports/")
    page.locator("#import-folder").set_input_files(folder)
    page.locator("#import-pattern").fill("{drive}/{rw}-{iodepth}-{numjobs}.json")
    expect(page.locator("#pattern-preview details")).to_contain_text("PM9A3/notes.txt")
    assert problems == []


MANY = "pattern,block_size,numjobs,iops\n" + "\n".join(f"randread,4k,{jobs},{1000 * jobs}" for jobs in range(1, 81))


@pytest.mark.parametrize("address", ["/imports/1/", "/results/?import=1"])
def test_a_long_table_scrolls_with_the_page_and_keeps_its_header(page: Page, address: str) -> None:
    an_import(text=MANY)
    page.goto(address)
    box = page.locator(".table-page")
    expect(box).to_have_attribute("data-fits", "")
    assert box.evaluate("(box) => getComputedStyle(box).overflowY") == "visible"
    page.evaluate("window.scrollTo(0, 1500)")
    head = page.locator(".table-page thead th").first.bounding_box()
    assert head
    assert abs(head["y"]) < 2


def test_a_heat_map_shows_that_it_scrolls_sideways(page: Page) -> None:
    an_import(text=MANY + "\n" + MANY.replace(",4k,", ",8k,").partition("\n")[2])
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/explore/?import=1&x=numjobs&series=block_size&chart=heat")
    box = page.locator(".heat-scroll").first
    expect(box).to_have_attribute("data-more", "")
    assert "gradient" in box.evaluate("(box) => getComputedStyle(box).maskImage")
    box.evaluate("(box) => { box.scrollLeft = box.scrollWidth; }")
    expect(box).not_to_have_attribute("data-more", "")
