"""The pages in Debian's Chromium: log in, watch a run live over a lost connection, compare what came of it."""

import random
import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from webapp.core.models import User
from webapp.results.validity import mark_run
from webapp.runs.models import Run, SettingChange
from webapp.tests.factories.people import PASSWORD
from webapp.tests.factories.results import add_seconds, finish_run
from webapp.tests.factories.runs import end_attempt, fail_trial, start_trial

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_it_follows_a_run_live_and_catches_up_after_a_lost_connection(
    page: Page, run: Run, problems: list[str]
) -> None:
    noise = random.Random(1)
    attempt = start_trial(run.trials.get(index=2), timezone.now() - timedelta(seconds=3))
    add_seconds(attempt, 2, noise)
    page.goto("/runs/1/")
    expect(page.locator("#now-title")).to_have_text("Trial 3 of 24")
    expect(page.locator("#now-iops")).not_to_have_text("–")
    page.get_by_text("Table, newest first").click()
    rows = page.locator("#seconds-table tbody tr")
    expect(rows).to_have_count(8)

    page.context.set_offline(True)
    expect(page.locator("#page-problem")).to_contain_text("No live data")
    add_seconds(attempt, 3, noise, first=2)
    page.context.set_offline(False)
    expect(rows).to_have_count(11)
    expect(page.locator("#page-problem")).to_be_hidden()

    end_attempt(attempt)
    fail_trial(run.trials.get(index=3), reason="fio said nothing for 60 s.")
    failed = page.locator('[data-trial="4"]')
    expect(failed).to_have_text("Failed")
    expect(failed.locator("a")).to_have_attribute("title", "Trial 4: Failed. fio said nothing for 60 s.")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^3 of 24 trials"))
    assert problems == []


def test_it_shows_a_changed_setting_as_soon_as_a_trial_has_ended(page: Page, run: Run, problems: list[str]) -> None:
    attempt = start_trial(run.trials.get(index=2), timezone.now())
    page.goto("/runs/1/")
    settings = page.get_by_role("region", name="Settings and configuration")
    expect(settings.get_by_role("row")).to_have_count(2)  # with the head
    SettingChange.objects.create(
        attempt=attempt, at=timezone.now(), name="nr_requests", device="sda", before="256", asked="100", observed="100"
    )  # fmt: skip
    end_attempt(attempt)
    fail_trial(run.trials.get(index=3))
    expect(settings.get_by_role("row", name="nr_requests")).to_contain_text("as requested")
    assert problems == []


def test_an_unfolded_configuration_stays_unfolded_when_its_section_is_fetched_again(
    page: Page, run: Run, problems: list[str]
) -> None:
    page.goto("/runs/1/")
    settings = page.get_by_role("region", name="Settings and configuration")
    settings.locator("summary").click()
    with page.expect_response("**/runs/1/settings/"):
        fail_trial(run.trials.get(index=3), reason="fio said nothing for 60 s.")
    expect(settings.locator("details")).to_have_attribute("open", "")
    assert problems == []


def test_it_reloads_a_run_that_has_ended_as_finished(page: Page, run: Run, problems: list[str]) -> None:
    page.goto("/runs/1/")
    expect(page.get_by_role("button", name="Cancel run")).to_be_visible()
    finish_run(run)
    expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
    expect(page.locator("#run-head")).to_contain_text("24 trials in")
    expect(page.locator("#seconds[data-drawn]")).to_have_count(0)
    page.get_by_text("Samples and telemetry").click()
    expect(page.locator("#seconds[data-drawn]")).to_have_count(1)
    assert problems == []


def test_a_mark_that_is_set_elsewhere_reaches_pages_that_are_open(page: Page, run: Run, problems: list[str]) -> None:
    finish_run(run)
    compared = page.context.new_page()
    compared.goto("/explore/?run=1")
    page.goto("/runs/1/trials/1/")
    expect(page.get_by_text("wrong cable")).to_have_count(0)
    mark_run(run=run, reason="wrong cable", by=None)
    expect(page.get_by_text("wrong cable").first).to_be_visible()
    expect(compared.get_by_text("Results were marked as invalid or valid")).to_be_visible()
    assert problems == []


def test_a_note_outlasts_a_log_in_that_had_ended(page: Page, run: Run, problems: list[str]) -> None:
    page.goto("/runs/1/trials/1/")
    page.get_by_label("New note").fill("fan off\nat noon")
    writer = User.objects.get(username="olga")
    kept = page.evaluate("Object.keys(sessionStorage)")
    assert kept == [f"sweetspot-note-draft:{writer.pk}:/runs/1/trials/1/"]  # nobody else finds it in this tab
    page.context.clear_cookies()
    page.get_by_role("button", name="Add note").click()
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("New note")).to_have_value("fan off\nat noon")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".note .note-text")).to_have_text("fan off at noon")
    expect(page.get_by_label("New note")).to_have_value("")
    assert problems == []


def test_it_switches_the_grid_to_another_metric(page: Page, run: Run) -> None:
    page.goto("/runs/1/")
    cell = page.locator('[data-trial="1"] a')
    expect(cell).to_contain_text("k")
    page.get_by_role("button", name="p99 latency", exact=True).click()
    expect(cell).to_contain_text("µs")


def test_it_keeps_the_chosen_theme_from_the_first_paint_on(page: Page, run: Run) -> None:
    page.locator(".person-menu summary").click()
    page.get_by_role("button", name="Theme: system default").click()
    page.get_by_role("button", name="Theme: light").click()
    page.goto("/runs/")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"


@pytest.mark.parametrize("address", ["/", "/hosts/", "/plans/first-look/", "/runs/", "/runs/1/", "/runs/1/trials/1/",
                                     "/results/", "/results/?invalid=1&columns=iops,ioengine", "/explore/?run=1",
                                     "/explore/?run=1&x=iodepth&series=ioengine&panel=pattern&chart=heat"])  # fmt: skip
def test_it_fits_a_narrow_screen_without_scrolling_sideways(
    page: Page, run: Run, problems: list[str], address: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(address)
    page.wait_for_load_state("networkidle" if address != "/runs/1/" and address != "/" else "load")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []


def test_it_compares_the_runs_configurations(page: Page, run: Run, problems: list[str]) -> None:
    finish_run(run)
    page.goto("/runs/1/")
    page.get_by_role("link", name="Explore").last.click()
    expect(page.locator("#compare-chart")).to_be_visible()
    expect(page.locator("#compare-key button")).to_have_count(2)
    expect(page.locator("#compare-table")).to_contain_text("%")
    page.get_by_label("Metric").select_option(label="p99 latency")
    expect(page.locator("#compare-table")).to_contain_text("µs")
    assert "metric=" in page.url
    assert problems == []
