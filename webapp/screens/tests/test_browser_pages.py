"""Keys, the command palette, selected rows, and the tables and the tab of a live run in Debian's Chromium."""

import pytest
from playwright.sync_api import Page, expect

from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.results import Lab, finish_run
from webapp.tests.factories.runs import first_look_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_palette_opens_pages_and_what_the_server_finds(page: Page, run: Run, problems: list[str]) -> None:
    page.goto("/runs/")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Page, host, drive, plan, run, comparison, import or action")
    expect(box).to_be_focused()
    box.fill("sched")
    expect(page.get_by_role("option").first).to_contain_text("Schedules")
    box.fill("storage1")
    options = page.get_by_role("option")
    expect(options.filter(has_text="Run 1")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/hosts/storage1/")
    page.keyboard.press("Control+k")
    box.press_sequentially("open run 1")
    page.keyboard.press("Enter")  # before the server has answered
    page.wait_for_url("**/runs/1/")
    assert problems == []


def test_a_question_mark_lists_the_keys_but_not_while_one_types(page: Page, run: Run, problems: list[str]) -> None:
    page.goto("/runs/")
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("Text in notes or reasons").press("?")
    expect(page.locator("#keys")).to_be_hidden()
    page.locator("h1").click()
    page.wait_for_url("**text=%3F")  # leaving the field sent the filter
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    assert problems == []


def test_g_and_a_letter_opens_a_page_and_j_and_enter_a_row(page: Page, run: Run, problems: list[str]) -> None:
    first_look_run(run.version, list(run.targets.all()), repeats=1)
    page.goto("/plans/")
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url("**/runs/")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Run 2", exact=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Run 1", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/1/")
    assert problems == []


def test_selected_runs_are_compared_and_tagged(page: Page, run: Run, problems: list[str]) -> None:
    finish_run(run)
    for _ in range(2):
        first_look_run(run.version, list(run.targets.all()), repeats=1)
    page.goto("/runs/")
    add = page.get_by_role("button", name="Add tags")
    expect(add).to_be_hidden()
    page.get_by_label("Select run 3").check()
    page.get_by_label("Select run 1", exact=True).click(modifiers=["Shift"])
    expect(page.locator("[data-bulk-count]")).to_have_text("3 selected")
    page.get_by_label("Tags, or reason").fill("night")
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 runs are tagged.")).to_be_visible()
    expect(page.locator(".tag")).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".tag")).to_have_count(0)
    page.get_by_label("Select run 2").check()
    page.get_by_role("button", name="Cancel…").click()
    expect(page.locator("#bulk-cancel")).to_contain_text("Run 2")
    page.get_by_role("button", name="Cancel runs").click()
    expect(page.get_by_text("Run 2 is being cancelled.")).to_be_visible()
    assert problems == []


def test_the_tab_shows_the_progress_of_a_live_run(page: Page, run: Run, problems: list[str]) -> None:
    page.goto("/runs/1/")
    expect(page).to_have_title("8 % · Run 1 · Sweetspot")
    assert (page.locator('link[rel="icon"]').get_attribute("href") or "").startswith("data:image/svg+xml")
    finish_run(run)
    expect(page).to_have_title("Done · Run 1 · Sweetspot")
    assert problems == []


def test_the_tables_of_a_run_are_coloured_and_follow_the_metric(page: Page, run: Run, problems: list[str]) -> None:
    lab = Lab(storage1_scratch(a_host("storage9")), number=9)
    for block in (512, 4096):
        for threads in (1, 40):
            lab.measure(1000.0 * threads * 512 / block, block_size=block, numjobs=threads)
    Run.objects.filter(pk=lab.run.pk).update(trial_count=4, ended_at=lab.run.started_at)
    page.goto("/runs/9/")
    largest = page.locator('.pivot [data-trials="2"]')
    expect(largest).to_have_text("40.0k")
    expect(largest).to_have_class("heat-s8")
    expect(page.locator('.pivot [data-trials="3"]')).to_have_class("heat-s0")
    page.get_by_role("button", name="Mean latency", exact=True).click()
    expect(largest).to_have_text("25.0 µs")
    assert problems == []
