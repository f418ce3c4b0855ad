"""Bench in a browser: choosing products with the keyboard, charts, widths and themes."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader
from pytest_django.live_server_helper import LiveServer

from webapp.analysis.services import save_comparison
from webapp.bench.saved import checked_query
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.core.models import Role
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import FACTS, Lab
from webapp.tests.visits import WATCH, log_in, script_bytes, sideways, visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ADDRESS = f"/bench/?product=model:{SAMSUNG}&product=model:{INTEL}&product=model:MICRON 7450"
TWO = f"/bench/?product=model:{SAMSUNG}&product=model:{INTEL}"
MAX_SCRIPT_BYTES = 120_000


@pytest.fixture
def labs(live_server: LiveServer) -> None:
    """Three drives; the third one lacks most workloads."""
    models = (SAMSUNG, INTEL, "MICRON 7450")
    host = a_host("storage1")  # drives are compared only in one host
    for number, model in enumerate(models, start=1):
        lab = Lab(a_drive(host, f"nvme{number - 1}", model=model, serial=f"S{number}"), number=number)
        for pattern, direction in (("randread", "read"), ("write", "write")):
            for depth in (1, 4, 16) if number < 3 else (1,):
                speed = 1000.0 * number * depth
                values, facts = (speed, speed * 1.01, speed * 0.99), FACTS | {"kernel.release": f"6.{number}.0"}
                lab.measure(*values, pattern=pattern, iodepth=depth, direction=direction, facts=facts)


def test_products_are_chosen_with_the_keyboard(page: Page, labs: None, problems: list[str]) -> None:
    page.goto("/bench/")
    page.get_by_label("Search products").fill("models intel")
    page.locator(f"input[value='model:{INTEL}']").press("Space")
    expect(page.get_by_role("button", name=f"Remove {INTEL}")).to_be_visible()
    page.get_by_label("Search products").fill("models samsung")
    page.locator(f"input[value='model:{SAMSUNG}']").press("Space")
    expect(page.locator("#bench-count")).to_have_text("2 of 8")
    page.get_by_label("Search products").press("Enter")
    expect(page.locator(".bench-bar-row .choice-chip a:not(.bench-remove)")).to_have_count(2)
    assert "product=model%3AINTEL" in page.url
    page.get_by_role("link", name="make baseline").click()
    expect(page.locator(f".bench-bar-row > .choice-chip:has-text('{INTEL}')")).to_contain_text("baseline")
    assert problems == []


def test_facets_and_the_tray_work_with_the_keyboard(page: Page, labs: None, problems: list[str]) -> None:
    page.goto("/bench/")
    cards = page.locator(".bench-offer:visible")
    page.get_by_role("checkbox", name="Drive models").press("Space")
    expect(cards).to_have_count(3)
    page.locator(f"input[value='model:{INTEL}']").press("Space")
    page.get_by_role("checkbox", name="Drive models").press("Space")
    page.get_by_role("checkbox", name="Hosts").press("Space")
    expect(cards).to_have_count(2)  # the host, and the chosen drive
    page.get_by_role("button", name=f"Remove {INTEL}").press("Enter")
    expect(page.locator("#bench-count")).to_have_text("0 of 8")
    expect(page.locator("#bench-tray")).to_be_hidden()
    assert problems == []


def test_counts_of_a_facet_follow_the_other_facets_and_the_search(page: Page, labs: None, problems: list[str]) -> None:
    page.goto("/bench/")
    level = page.locator(".bench-facet label")
    page.locator("summary", has_text="Model").press("Enter")
    intel, drives = level.filter(has_text=INTEL), level.filter(has_text="Drives")
    expect(intel.locator(".num")).to_have_text("5")  # model, drive, host, target, run
    expect(drives.locator(".num")).to_have_text("3")
    intel.locator("input").press("Space")
    expect(drives.locator(".num")).to_have_text("1")
    drives.locator("input").press("Space")
    expect(intel.locator(".num")).to_have_text("1")
    expect(level.filter(has_text="MICRON").locator(".num")).to_have_text("1")  # its own facet does not count
    expect(page.locator(".bench-offer:visible")).to_have_count(1)
    page.get_by_label("Search products").fill("micron")
    expect(intel.locator(".num")).to_have_text("0")
    expect(page.locator("#bench-none")).to_be_visible()
    assert problems == []


def test_cards_say_what_they_share_after_the_first_choice(page: Page, labs: None, problems: list[str]) -> None:
    page.goto("/bench/")
    page.get_by_role("checkbox", name="Drive models").press("Space")
    page.locator("input[value='model:MICRON 7450']").press("Space")
    share = page.locator(f".bench-offer:has(input[value='model:{INTEL}']) .bench-offer-share")
    expect(share).to_have_text("shares 2 workloads")
    expect(page.locator("input[value='model:MICRON 7450']")).to_be_focused()
    page.locator("input[value='model:MICRON 7450']").press("Space")
    expect(share).to_be_empty()
    page.get_by_role("checkbox", name="Drive models").press("Space")
    page.locator("input[value='target:storage1/nvme0']").press("Space")
    host = page.locator(".bench-offer:has(input[value='host:storage1'])")
    expect(host).to_have_class("bench-offer is-apart")  # drives are compared with drives
    legends = page.locator(".bench-offers fieldset:visible legend").all_inner_texts()
    assert legends.index("Hosts") > legends.index("Targets")
    assert problems == []


def test_one_product_leads_back_to_the_choice(page: Page, labs: None, problems: list[str]) -> None:
    page.goto("/bench/")
    page.locator(f"input[value='model:{INTEL}']").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("status").filter(has_text="second")).to_be_visible()
    expect(page.locator(f"input[value='model:{INTEL}']")).to_be_checked()
    page.locator(f"input[value='model:{SAMSUNG}']").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".bench-bar-row .choice-chip a:not(.bench-remove)")).to_have_count(2)
    assert "compare" not in page.url
    assert problems == []


def test_products_are_chosen_without_a_script(page: Page, labs: None, live_server: LiveServer) -> None:
    browser = page.context.browser
    assert browser is not None
    cookies = page.context.storage_state()
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False, storage_state=cookies)
    plain = context.new_page()
    plain.goto("/bench/")
    expect(plain.locator("#bench-facets")).to_be_hidden()
    plain.locator(f"input[value='model:{INTEL}']").check()
    plain.locator(f"input[value='model:{SAMSUNG}']").check()
    plain.get_by_role("button", name="Compare").click()
    expect(plain.locator(".bench-bar-row .choice-chip a:not(.bench-remove)")).to_have_count(2)
    context.close()


def test_check_boxes_stay_beside_their_products_when_a_search_leaves_few(page: Page, labs: None) -> None:
    page.goto("/bench/")
    page.get_by_label("Search products").fill("models intel")
    product = page.locator(f"label:has(input[value='model:{INTEL}'])")
    box, text, name = (
        part.bounding_box()
        for part in (product.locator("input"), product.locator("span").first, page.locator("legend", has_text="models"))
    )
    assert box
    assert text
    assert name
    assert name["y"] < box["y"] < text["y"] + text["height"]  # the name of the group is above them
    assert 0 <= box["x"] - name["x"] < 15  # inside its card
    assert 0 < text["x"] - box["x"] < 40


def test_verdict_plot_and_load_curve_are_visible_without_scrolling(page: Page, labs: None, problems: list[str]) -> None:
    page.goto(TWO)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(f"{INTEL}: 2.00× as fast in random reads")
    assert heading.evaluate("(each) => getComputedStyle(each).fontSize") == "32px"
    for part in (page.locator(".forest tbody tr").nth(3), page.locator("canvas[data-load-chart='0']")):
        box = part.bounding_box()
        assert box
        assert box["y"] + box["height"] < 900
        assert box["width"] > 200
    assert problems == []


def test_both_values_stand_on_one_track_at_the_distance_of_their_ratio(page: Page, labs: None) -> None:
    """At each queue depth Intel reads twice as fast, so its mark is as far to the right in every row."""
    page.goto(TWO)
    rows = page.locator(".forest tbody").first.locator("tr:has(td.forest-values .track-mark)")
    distances = []
    for row in rows.all():
        boxes = [mark.bounding_box() for mark in row.locator("td.forest-values .track-mark").all()]
        lefts = [box["x"] for box in boxes if box]
        assert len(lefts) == 2
        distances.append(lefts[1] - lefts[0])
    assert min(distances) > 20
    assert max(distances) - min(distances) < 2


def test_charts_are_drawn_inside_their_places(page: Page, labs: None, problems: list[str]) -> None:
    page.goto(ADDRESS)
    drawn = page.evaluate(
        "[...document.querySelectorAll('canvas[data-bench-chart]')].map((each) => each.width > 0 && each.height > 0)"
    )
    assert len(drawn) >= 2
    assert all(drawn)
    bottom = "getBoundingClientRect().bottom"
    beyond = page.evaluate(
        f"[...document.querySelectorAll('canvas')].map((each) => each.{bottom} - each.parentElement.{bottom})"
    )
    assert max(beyond) <= 1, "a chart covers the table below it"
    assert problems == []


def test_a_pattern_is_chosen_for_the_load_curve(page: Page, labs: None, problems: list[str]) -> None:
    page.goto(TWO)
    curves = page.locator("figure:has(canvas[data-load-chart])")
    names = page.get_by_role("group", name="Pattern")
    expect(curves.nth(0)).to_be_visible()
    expect(curves.nth(1)).to_be_hidden()
    names.get_by_text("Sequential write").click()
    expect(curves.nth(0)).to_be_hidden()
    expect(curves.nth(1).locator("canvas")).to_be_visible()
    width = curves.nth(1).locator("canvas").evaluate("(canvas) => canvas.width")
    assert width > 100
    assert problems == []


@pytest.mark.parametrize("width", [1440, 390])
def test_it_is_accessible_narrow_and_small(chromium: Browser, live_server: LiveServer, labs: None, width: int) -> None:
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": width, "height": 844}, reduced_motion="reduce"
    )
    context.add_init_script(WATCH)
    olga = a_user("olga", Role.OPERATOR)
    log_in(context, live_server.url, olga)
    page = context.new_page()
    saved = save_comparison(
        title="Three drives", note="", query=ADDRESS.partition("?")[2], by=olga, check=checked_query
    )
    report = f"/comparisons/{saved.pk}/report/"
    for path in (
        "/bench/",
        f"/bench/?product=model:{INTEL}&compare=1",
        ADDRESS,
        TWO.replace("/bench/", "/bench/summary/"),
        report,
        f"/products/model/{SAMSUNG}/",
        "/hosts/storage1/targets/nvme0/",
        "/results/",
        "/runs/",
    ):
        assert (visit(page, path).problems, sideways(page)) == ((), 0), path
    assert script_bytes(page, ADDRESS) < MAX_SCRIPT_BYTES
    context.close()


def test_a_narrow_window_shows_ratios_or_values(page: Page, labs: None) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(ADDRESS)
    ratios, values = (page.locator(f".forest tbody td.forest-{name} .track").first for name in ("ratios", "values"))
    expect(ratios).to_be_visible()
    expect(values).to_be_hidden()
    page.get_by_role("group", name="Show").get_by_text("Values").click()
    expect(ratios).to_be_hidden()
    expect(values).to_be_visible()
    page.get_by_text("+ Add").click()
    expect(page.get_by_label("Search products")).to_be_in_viewport(ratio=1)
    assert sideways(page) == 0
    texts = page.locator(".bench-bar-row .choice-chip a:not(.bench-remove)").all_inner_texts()
    assert texts == [SAMSUNG, INTEL, "MICRON 7450"]


def test_rows_are_selected_and_compared(page: Page, labs: None) -> None:
    page.goto("/runs/")
    button = page.get_by_role("button", name="Compare selected")
    expect(button).to_be_disabled()
    page.get_by_label("Select run 1").check()
    page.get_by_label("Select run 2").check()
    button.click()
    expect(page.locator(".bench-bar-row .choice-chip a:not(.bench-remove)")).to_have_count(2)


def test_sections_are_folded_on_a_narrow_screen(page: Page, labs: None, problems: list[str]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(ADDRESS)
    curves = page.locator("details:has(#curves-title)")
    expect(curves).not_to_have_attribute("open", "")
    page.evaluate("location.hash = '#curves-title'")
    expect(curves).to_have_attribute("open", "")
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.locator("details[data-fold]:not([open])")).to_have_count(0)
    assert problems == []


def test_a_selection_is_saved_printed_and_sent_as_one_file(
    page: Page, labs: None, tmp_path: Path, problems: list[str]
) -> None:
    page.goto(ADDRESS)
    page.get_by_text("Save comparison").click()
    page.get_by_label("Title", exact=True).fill("Three drives")
    page.get_by_label("Note").fill("**As delivered**")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Three drives")).to_be_visible()
    page.get_by_role("link", name="Report and links").click()
    expect(page.locator("canvas[data-bench-chart]")).to_have_count(3)
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    pages = [each.extract_text() for each in PdfReader(tmp_path / "report.pdf").pages]
    text = "\n".join(pages)
    assert 2 <= len(pages) <= 8
    assert text.count(INTEL) >= 5  # each table names its columns
    assert all(part in text for part in ("As delivered", "astest in random reads", "Queue depth", "×2.00", "caveats"))
    assert not any(part in text for part in ("Save as HTML", "PNG", "Open in Bench", "Create link"))
    page.emulate_media(media="screen")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as HTML").click()
    assert waiting.value.suggested_filename == "Three-drives.html"
    waiting.value.save_as(tmp_path / "report.html")
    saved = (tmp_path / "report.html").read_text()
    assert "<script" not in saved
    assert saved.count("<svg") >= 3
    page.goto(f"file://{tmp_path / 'report.html'}")
    expect(page.get_by_role("heading", name="random reads")).to_be_visible()
    expect(page.locator(".drawing-chart").last).to_be_visible()
    expect(page.locator("canvas, .drawing-head:visible")).to_have_count(0)
    page.emulate_media(media="print")
    expect(page.locator("figcaption", has_text="Random read over queue depth")).to_be_visible()
    assert "measured with different kernels" in page.locator("main").inner_text().lower()
    assert problems == []


def test_bench_itself_is_printed_with_the_names_of_products_above_each_table(
    page: Page, labs: None, tmp_path: Path, problems: list[str]
) -> None:
    page.goto(ADDRESS)
    page.pdf(path=tmp_path / "bench.pdf", prefer_css_page_size=True)
    text = "\n".join(each.extract_text() for each in PdfReader(tmp_path / "bench.pdf").pages)
    assert text.count(SAMSUNG) >= 5
    assert "Queue depth" in text  # the axis of a chart is text
    assert "Export CSV" not in text
    notes = page.locator(".bench-caveats")
    expect(notes).not_to_have_attribute("open", "")  # folded again after printing
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(notes).to_have_attribute("open", "")
    assert problems == []


def test_the_summary_of_two_products_is_one_page_of_searchable_text(
    page: Page, labs: None, tmp_path: Path, problems: list[str]
) -> None:
    page.goto(TWO)
    page.get_by_text("Share ▾").click()
    page.get_by_role("link", name="One-page summary").click()
    lead = page.get_by_role("heading", level=1).inner_text()
    page.pdf(path=tmp_path / "summary.pdf", format="A4", prefer_css_page_size=True)
    pages = PdfReader(tmp_path / "summary.pdf").pages
    assert len(pages) == 1
    width, height = (round(float(size) / 72 * 25.4) for size in pages[0].mediabox[2:])
    assert (width, height) == (210, 297)
    text = " ".join(pages[0].extract_text().split())
    for words in (lead, SAMSUNG, INTEL, "Evidence", "Run 1", "storage1", "×2.00", "2024-05-01", "Not alike", "6.1.0"):
        assert " ".join(words.split()) in text, words
    assert "Open in Bench" not in text
    assert problems == []
