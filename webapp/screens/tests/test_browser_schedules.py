"""Schedules in Debian's Chromium: made through the form with its preview, on a wide and on a narrow screen."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Dialog, Page, expect
from pytest_django.live_server_helper import LiveServer

from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.schedules.models import Occurrence, Schedule
from webapp.tests.browser import PATIENCE_MS
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.schedules import a_schedule
from webapp.tests.visits import log_in, sideways

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def target(transactional_db: None) -> Target:
    first_look()
    return storage1_scratch(a_host("storage1"))


@pytest.fixture(params=[1440, 390])
def page(
    request: pytest.FixtureRequest, chromium: Browser, live_server: LiveServer, target: Target, problems: list[str]
) -> Iterator[Page]:
    """An operator in New York, who has never been here."""
    olga = a_user("olga")
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": request.param, "height": 900}, timezone_id="America/New_York"
    )
    log_in(context, live_server.url, olga)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()


def dialogs(page: Page) -> list[str]:
    """The kinds of the browser's own dialogs from now on; each is accepted."""
    asked: list[str] = []

    def accept(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", accept)
    return asked


def test_a_schedule_is_made_with_a_preview_while_typing(page: Page, problems: list[str]) -> None:
    page.goto("/schedules/new/?plan=first-look&target=storage1/scratch")
    preview = page.locator("#schedule-preview")
    expect(page.get_by_label("Time zone")).to_have_value("America/New_York")  # loaded again with the cookie
    expect(preview).to_contain_text("At 22:00 every day (America/New_York)")
    page.get_by_label("Name").fill("Weekly check")
    page.get_by_role("button", name="Every Saturday at 06:00").click()
    expect(preview).to_contain_text("At 06:00 on Saturday (America/New_York)")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(preview).to_contain_text("Schedule time (Asia/Tokyo)")
    expect(preview.locator("tbody tr")).to_have_count(5)
    expect(page.get_by_label("From")).to_be_hidden()
    page.get_by_label("Window: run only").check()
    page.get_by_label("From").fill("05:00")
    page.get_by_label("To", exact=True).fill("09:00")
    expect(preview).to_contain_text("05:00 to 09:00, every day (Asia/Tokyo)")
    assert sideways(page) <= 0
    page.get_by_role("button", name="Save schedule").first.click()
    expect(page.get_by_text("is saved and switched on.")).to_be_visible()
    saved = Schedule.objects.get()
    assert (saved.name, saved.cron, saved.time_zone) == ("Weekly check", "0 6 * * 6", "Asia/Tokyo")
    assert sideways(page) <= 0
    assert problems == []


def test_a_refusal_stands_at_its_field_while_typing(page: Page, problems: list[str]) -> None:
    page.goto("/schedules/new/?plan=first-look&target=storage1/scratch")
    line = page.get_by_label("Cron line", exact=True)
    line.fill("61 * * * *")
    expect(page.locator("#cron-problem")).to_contain_text("its minute is not valid")
    expect(line).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("Correct 1 field.")).to_be_visible()
    line.fill("1 * * * *")
    expect(page.locator("#cron-problem")).to_be_hidden()
    expect(line).to_have_attribute("aria-invalid", "false")
    page.get_by_label("Once", exact=True).check()
    expect(line).to_be_hidden()
    page.get_by_label("Date").fill("2020-01-01")
    expect(page.locator("#once-problem")).to_contain_text("has passed")
    assert problems == []


def test_the_calendar_is_read_without_sideways_scrolling(page: Page, target: Target, problems: list[str]) -> None:
    olga = User.objects.get(username="olga")
    a_schedule(olga, version=first_look(slug="other"), targets=[target], cron="0 12 * * *", time_zone="UTC")
    page.goto("/schedules/calendar/")
    expect(page.locator("[data-zone='America/New_York']").first).to_be_visible()
    tomorrow = timezone.now() + timedelta(days=1)
    page.goto(f"/schedules/calendar/?day={tomorrow:%Y-%m-%d}")
    expect(page.locator("#day")).to_contain_text("nightly")
    month = page.locator(".calendar")
    assert month.evaluate("table => table.parentElement.clientWidth - table.querySelector('tbody').offsetWidth") <= 4
    assert sideways(page) <= 0
    assert problems == []


def test_the_list_is_read_without_sideways_scrolling(page: Page, target: Target, problems: list[str]) -> None:
    olga = User.objects.get(username="olga")
    schedule = a_schedule(
        olga, name="A name that is rather long for a list of schedules", version=first_look(slug="other"),
        targets=[target],
    )  # fmt: skip
    words = "It could not start by its latest start, 2026-11-18 23:00 (Europe/Berlin). storage1 is away."
    now = timezone.now()
    Occurrence.objects.create(
        schedule=schedule,
        due_at=now,
        state="missed",
        reason_code="host_unavailable",
        reason_fields={"message": words},
        finished_at=now,
    )
    page.goto("/schedules/")
    expect(page.locator("[data-zone='America/New_York']").first).to_be_visible()
    if page.viewport_size == {"width": 390, "height": 900}:
        box = page.locator(".table-scroll")
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
        expect(page.get_by_text(words)).to_be_visible()
    assert sideways(page) <= 0
    assert problems == []


def test_a_refused_form_leads_to_its_first_problem_and_is_not_left_by_mistake(page: Page, problems: list[str]) -> None:
    page.goto("/schedules/new/?plan=first-look&target=storage1/scratch")
    expect(page.get_by_label("Time zone")).to_have_value("America/New_York")
    page.get_by_label("Cron line", exact=True).fill("61 * * * *")
    page.get_by_role("button", name="Save schedule").last.click()
    expect(page.locator("#schedule-problems")).to_contain_text("Correct 1 field.")
    expect(page.get_by_label("Cron line", exact=True)).to_be_focused()
    expect(page.get_by_label("Cron line", exact=True)).to_have_attribute("aria-invalid", "true")
    asked = dialogs(page)
    page.goto("/schedules/")
    assert asked == ["beforeunload"]
    assert problems == []


def test_only_a_changed_form_warns_before_it_is_left(page: Page, problems: list[str]) -> None:
    asked = dialogs(page)
    page.goto("/schedules/new/?plan=first-look&target=storage1/scratch")
    expect(page.get_by_label("Time zone")).to_have_value("America/New_York")
    page.goto("/schedules/")
    assert asked == []
    page.goto("/schedules/new/?plan=first-look&target=storage1/scratch")
    page.get_by_label("Note").click()
    page.keyboard.type("Ask first.")
    page.goto("/schedules/")
    assert asked == ["beforeunload"]
    assert problems == []
