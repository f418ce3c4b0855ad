"""Plans in Debian's Chromium: made from nothing, refused at a field, previewed while typed, read from a file."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import BrowserContext, Dialog, Locator, Page, Route, expect

from webapp.hosts.models import Target
from webapp.plans.document import read
from webapp.plans.models import Plan, PlanVersion
from webapp.tests.browser import PATIENCE_MS
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.people import PASSWORD
from webapp.tests.factories.plans import FIRST_LOOK, first_look
from webapp.tests.visits import until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def target(page: Page) -> Target:
    return storage1_scratch(a_host("storage1"), settings_allowed=["*"])


def levels(page: Page, factor: str, of: str = "of part 1") -> Locator:
    return page.get_by_label(f"Levels of {factor} {of}")


def test_a_plan_is_created_from_scratch(page: Page, target: Target, problems: list[str]) -> None:
    page.goto("/plans/")
    page.get_by_role("link", name="New plan").click()
    page.wait_for_url("**/plans/new/")
    page.get_by_label("Title", exact=True).fill("Schedulers")
    levels(page, "Block size").fill("512..4M *2")
    expect(page.locator("#cost-trials")).to_have_text("168")
    page.get_by_label("Factor to add of part 1").fill("scheduler")
    page.get_by_role("button", name="Add factor").nth(1).click()
    expect(levels(page, "I/O scheduler")).to_be_focused()
    page.keyboard.type("none, mq-deadline")  # takes the place of the level that the row begins with
    expect(levels(page, "I/O scheduler")).to_have_value("none, mq-deadline")
    expect(page.locator("#cost-trials")).to_have_text("336")
    expect(page.get_by_text("storage1/scratch: I/O scheduler")).to_be_visible()
    page.get_by_role("group", name="Pick levels of I/O scheduler").get_by_role("button", name="kyber").click()
    expect(levels(page, "I/O scheduler")).to_have_value("none, mq-deadline, kyber")
    expect(page.locator("#cost-trials")).to_have_text("504")
    page.get_by_role("button", name="Save plan").click()
    page.wait_for_url("**/plans/schedulers/*")
    saved = read(PlanVersion.objects.get().document)
    assert saved.parts[0].factors["scheduler"] == "none, mq-deadline, kyber"
    assert saved.parts[0].factors["block_size"] == "512..4M *2"
    assert problems == []


def test_input_typed_before_the_script_loaded_is_previewed(page: Page, target: Target) -> None:
    held: list[Route] = []
    page.route(re.compile(r"/planEditor.*\.js"), lambda route: held.append(route))
    with page.expect_request(re.compile(r"/planEditor.*\.js")):
        page.goto("/plans/new/", wait_until="commit")
    levels(page, "Queue depth").fill("1, 2, 4, 8")
    held[0].continue_()
    expect(page.locator("#cost-trials")).to_have_text("24")


def test_an_error_is_shown_at_its_field_while_typing_and_after_saving(page: Page, target: Target) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if sent.url.endswith("/plans/preview/") else None)
    page.goto("/plans/new/")
    assert asked == []  # nobody has typed: nothing can be wrong yet
    field = levels(page, "Queue depth")
    field.fill("1, many")
    wrong = page.get_by_text("Queue depth: many is not a whole number.")
    expect(wrong).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Save plan").click()
    expect(page.get_by_text("Correct 2 fields.")).to_be_visible()
    expect(field).to_have_value("1, many")
    expect(wrong).to_be_visible()
    field.fill("1, 4")
    expect(wrong).to_be_hidden()
    expect(page.get_by_text("Give the plan a title.")).to_be_visible()
    assert not Plan.objects.exists()


def test_a_stale_answer_never_overwrites_a_newer_one(page: Page, target: Target) -> None:
    page.goto("/plans/new/")
    expect(page.locator("#cost-trials")).to_have_text("12")
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/plans/preview/", hold_first)
    field = levels(page, "Queue depth")
    field.fill("1")
    until(page, "document.getElementById('plan-preview').hasAttribute('aria-busy')")
    field.fill("1, 2, 4, 8")
    expect(page.locator("#cost-trials")).to_have_text("24")
    held[0].fulfill(json={"problems": [], "warnings": [], "html": "<p>stale</p>", "said": "stale"})
    expect(page.get_by_text("stale")).to_have_count(0)
    expect(page.locator("#cost-trials")).to_have_text("24")


def test_a_warning_about_a_factor_without_effect_appears_while_typing(
    page: Page, target: Target, problems: list[str]
) -> None:
    page.goto("/plans/new/")
    page.get_by_label("Factor to add of part 1").fill("read_ahead_kb")
    page.get_by_role("button", name="Add factor").nth(1).click()
    levels(page, "Read-ahead").fill("0, 128")
    warning = page.locator(".field-warning", has_text="Read-ahead has no effect here")
    expect(warning).to_be_visible()
    page.get_by_label("Factor to add of part 1").fill("direct")
    page.get_by_role("button", name="Add factor").nth(1).click()
    levels(page, "Direct").fill("off")
    expect(warning).to_have_count(0)
    assert problems == []


def test_the_job_of_the_trial_under_the_cursor_is_shown(page: Page, target: Target, problems: list[str]) -> None:
    page.goto("/plans/new/")
    page.get_by_label("Seed of the order").fill("5")
    page.get_by_label("Seed of the order").press("Tab")
    expect(page.get_by_text("in the order of seed 5")).to_be_visible()
    page.get_by_role("button", name="#1", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#job-title")).to_contain_text("#3 ")
    page.locator("tr[data-trial='7']").hover()
    expect(page.locator("#job-title")).to_contain_text("#7 ")
    expect(page.locator("#job-text")).to_contain_text("ioengine=io_uring")
    page.get_by_text("Prefill, once for each file").click()
    expect(page.locator("#prefill-text")).to_contain_text("[prefill]")
    assert problems == []


def test_rows_are_moved_by_keyboard_and_by_pointer(page: Page, target: Target) -> None:
    first_look()
    page.goto("/plans/first-look/edit/")
    names = page.locator("[data-block='0'] .factor-name")
    assert names.evaluate_all("all => all.map(each => each.value)") == ["pattern", "block_size", "iodepth"]
    page.get_by_role("button", name="Move Queue depth up").first.press("Enter")
    expect(names.nth(1)).to_have_value("iodepth")
    expect(page.get_by_role("button", name="Move Queue depth up").first).to_be_focused()
    page.locator("[data-block='0'] [data-row='2'] .grip").drag_to(page.locator("[data-block='0'] [data-row='0']"))
    expect(names.nth(0)).to_have_value("block_size")
    page.get_by_label("as listed").check()
    page.get_by_role("button", name="Save as next version").click()
    page.wait_for_url("**/plans/first-look/*")
    assert read(PlanVersion.objects.get(number=2).document).sequence[-3:] == ("block_size", "pattern", "iodepth")


def test_a_row_that_was_replaced_under_the_pointer_is_not_moved(page: Page, target: Target) -> None:
    first_look()
    page.goto("/plans/first-look/edit/")
    names = page.locator("[data-block='0'] .factor-name")
    page.locator("[data-block='0'] [data-row='0'] .grip").hover()
    page.mouse.down()
    expect(page.locator("[data-block='0'] [data-row='0']")).to_have_class(re.compile("is-lifted"))
    page.get_by_role("button", name="Move Queue depth up").first.press("Enter")
    expect(names.nth(1)).to_have_value("iodepth")
    page.locator("[data-block='0'] [data-row='2']").hover()
    page.mouse.up()
    page.get_by_role("button", name="Move Block size up").first.press("Enter")
    expect(names.nth(1)).to_have_value("block_size")
    assert names.evaluate_all("all => all.map(each => each.value)") == ["pattern", "block_size", "iodepth"]


def test_it_warns_before_unsaved_input_is_lost(page: Page, target: Target) -> None:
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.goto("/plans/new/")
    page.goto("/plans/")
    assert asked == []
    page.goto("/plans/new/")
    page.get_by_label("Title", exact=True).fill("Half a plan")
    page.goto("/plans/")
    assert asked == ["beforeunload"]


def test_an_expired_session_loses_no_input(page: Page, target: Target, problems: list[str]) -> None:
    page.goto("/plans/new/")
    page.get_by_label("Title", exact=True).fill("Typed for an hour")
    cookies = [cookie for cookie in page.context.cookies() if cookie["name"] != "sessionid"]
    page.context.clear_cookies()
    page.context.add_cookies(cookies)  # type: ignore[arg-type]
    levels(page, "Queue depth").fill("1, 2, 4")
    expect(page.locator("#page-problem")).to_contain_text("what you typed is kept")
    page.get_by_role("button", name="Save plan").click()
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/plans/new/")
    expect(page.get_by_label("Title", exact=True)).to_have_value("Typed for an hour")
    expect(levels(page, "Queue depth")).to_have_value("1, 2, 4")
    expect(page.get_by_text("Your entries were restored")).to_be_visible()
    assert problems == []


def test_a_job_file_with_refused_options_and_then_without(page: Page, target: Target, tmp_path: Path) -> None:
    job = "[global]\nioengine=io_uring\nsize=64m\nruntime=3\ntime_based\n[quick]\nrw=randread\nbs=4k\n"
    page.goto("/plans/import/")
    page.get_by_label("Text").fill(job + "exec_prerun=id\n")
    page.get_by_role("button", name="Import").click()
    refused = page.locator(".job-lines .is-refused")
    expect(refused).to_have_count(1)
    expect(refused).to_contain_text("exec_prerun=id")
    expect(refused).to_contain_text("Line 9: exec_prerun is not supported by Sweetspot: it runs a program. Remove it.")
    file = tmp_path / "old.fio"
    file.write_text(job)
    page.get_by_label("or choose a file").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/plans/new/")
    expect(page.get_by_text("it is not saved yet")).to_be_visible()
    expect(page.locator("#cost-trials")).to_have_text("3")
    page.get_by_role("button", name="Save plan").click()
    page.wait_for_url("**/plans/fio-job-quick/*")
    assert Plan.objects.count() == 1


def test_deleting_can_be_undone(page: Page) -> None:
    first_look()
    page.goto("/plans/")
    page.get_by_label("More actions for First look").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("First look is deleted")).to_be_visible()
    expect(page.get_by_role("link", name="First look")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("First look is restored.")).to_be_visible()
    assert Plan.objects.get().deleted_at is None


def test_versions_are_compared_and_restored(page: Page, problems: list[str]) -> None:
    first_look()
    first_look(msgspec.structs.replace(FIRST_LOOK, repeats=7))
    page.goto("/plans/first-look/")
    page.get_by_label("More actions").click()
    page.get_by_role("link", name="Versions (2)").click()
    row = page.get_by_role("row", name=re.compile("Repeats"))
    expect(row).to_contain_text("changed")
    page.get_by_role("button", name="Restore version 1").click()
    expect(page.get_by_text("Version 1 is restored as version 3.")).to_be_visible()
    page.get_by_label("from", exact=True).select_option("1")
    expect(page.get_by_text("Versions 1 and 3 are equal.")).to_be_visible()
    assert problems == []


def test_the_editor_works_without_script(page: Page, target: Target) -> None:
    state = page.context.storage_state()
    browser = page.context.browser
    assert browser is not None
    plain: BrowserContext = browser.new_context(
        base_url=page.url, java_script_enabled=False, storage_state=json.loads(json.dumps(state))
    )
    quiet = plain.new_page()
    quiet.set_default_timeout(PATIENCE_MS)
    quiet.goto("/plans/new/")
    quiet.get_by_label("Title", exact=True).fill("By hand")
    quiet.get_by_label("Factor to add of all parts").fill("Engine")
    quiet.get_by_role("button", name="Add factor").nth(0).click()
    quiet.get_by_role("button", name="Remove Engine").click()
    expect(quiet.get_by_label("Title", exact=True)).to_have_value("By hand")
    levels(quiet, "Queue depth").fill("1, 2")
    quiet.get_by_role("button", name="#3", exact=True).click()
    expect(quiet.locator("#job-title")).to_contain_text("#3 ")
    assert not Plan.objects.exists()
    quiet.get_by_role("button", name="Save plan").click()
    expect(quiet.get_by_text("By hand is saved")).to_be_visible()
    assert read(PlanVersion.objects.get().document).parts[0].factors["iodepth"] == "1, 2"
    plain.close()


@pytest.mark.parametrize("address", ["/plans/", "/plans/new/", "/plans/import/", "/plans/first-look/versions/",
                                     "/plans/first-look/edit/"])  # fmt: skip
def test_pages_of_plans_fit_a_narrow_screen(page: Page, target: Target, problems: list[str], address: str) -> None:
    first_look()
    first_look(msgspec.structs.replace(FIRST_LOOK, repeats=7))
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []
