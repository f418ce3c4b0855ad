"""Rankings in a browser: comparing selected drives, weights, filters, phones."""

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import Lab
from webapp.tests.visits import WATCH, log_in, script_bytes, sideways, visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MAX_SCRIPT_BYTES = 40_000


@pytest.fixture
def drives(live_server: LiveServer) -> None:
    """Twenty drives in one host, with long names; the first has the highest rates of writes."""
    host = a_host("storage1")
    for number in range(20):
        model = f"SAMSUNG MZQL21T9HCJR-00A{number:02}"
        lab = Lab(a_drive(host, f"nvme{number}", model=model, serial=f"S{number}"), number=number + 1)
        for pattern, direction in (("randread", "read"), ("randwrite", "write")):
            for depth in (1, 32):
                speed = 100.0 * depth * (number + 1 if pattern == "randread" else 20 - number)
                lab.measure(speed, speed * 1.01, speed * 0.99, pattern=pattern, direction=direction, iodepth=depth)


def test_selected_drives_are_compared_in_bench(page: Page, drives: None, problems: list[str]) -> None:
    page.goto("/rankings/")
    expect(page.locator("#rank-go")).to_be_disabled()
    boxes = page.locator("input[name=product]")
    boxes.nth(0).check()
    expect(page.locator("#rank-go")).to_be_disabled()
    boxes.nth(1).check()
    expect(page.locator("#rank-go")).to_have_text("Compare 2")
    page.locator("#rank-go").click()
    expect(page.locator(".bench-names th")).to_have_count(2)
    assert problems == []


def test_the_other_drives_open_with_a_button(page: Page, drives: None) -> None:
    page.goto("/rankings/")
    expect(page.locator(".rank-main input[name=product]:visible")).to_have_count(15)
    page.locator(".rank-main [data-rank-more]").click()
    expect(page.locator(".rank-main input[name=product]:visible")).to_have_count(20)


def test_weights_change_the_scores_and_stand_in_the_address(page: Page, drives: None) -> None:
    page.goto("/rankings/")
    first = page.locator(".rank-scores tbody th").first
    for place, value in enumerate((0, 0, 100, 100)):
        slider = page.locator(".rank-weights input[type=range]").nth(place)
        with page.expect_navigation():
            slider.fill(str(value))
            slider.dispatch_event("change")
    assert "weight=0&weight=0&weight=100&weight=100" in page.url
    expect(first).to_contain_text("00A00")
    expect(page.locator(".rank-weights output").first).to_have_text("0 %")


def test_another_pattern_keeps_the_other_choices(page: Page, drives: None) -> None:
    page.goto("/rankings/?rank=host&iodepth=32&numjobs=1&pattern=randread&block_size=4096")
    page.get_by_label("Pattern").select_option("randwrite")
    page.wait_for_url("**pattern=randwrite**")
    assert "rank=host" in page.url
    assert "iodepth=32" in page.url


def test_the_filter_is_chosen_with_the_keyboard(page: Page, drives: None) -> None:
    page.goto("/rankings/")
    page.locator(".rank-filters > summary").press("Enter")
    page.get_by_text("Drive model", exact=True).press("Enter")
    page.locator(".rank-filters input[value$='00A00']").press("Space")
    page.locator(".rank-filters button").press("Enter")
    expect(page.locator(".rank-end a.choice-chip")).to_have_count(1)


def test_every_width_and_theme(chromium: Browser, live_server: LiveServer, drives: None) -> None:
    for width in (390, 820, 1440):
        context = chromium.new_context(
            base_url=live_server.url, viewport={"width": width, "height": 900}, reduced_motion="reduce"
        )
        context.add_init_script(WATCH)
        log_in(context, live_server.url, a_user(f"user{width}"))
        page = context.new_page()
        assert (visit(page, "/rankings/").problems, sideways(page)) == ((), 0), width
        bar = page.locator(".rank-fill").first.bounding_box()
        assert bar
        assert bar["y"] + bar["height"] < 900
        context.close()


def test_the_scripts_are_small(page: Page, drives: None) -> None:
    assert script_bytes(page, "/rankings/") <= MAX_SCRIPT_BYTES
