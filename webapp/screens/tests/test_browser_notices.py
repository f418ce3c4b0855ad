"""The page of notices in Debian's Chromium: by keyboard, at a receiver on loopback, on a narrow screen."""

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from webapp.core.models import User
from webapp.notices import tasks
from webapp.notices.models import Subscription
from webapp.notices.tests.conftest import hook, loopback_allowed
from webapp.notices.tests.receivers import Receiver
from webapp.tests.factories.notices import a_notice

__all__ = ["hook", "loopback_allowed"]  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_webhook_is_added_by_keyboard_tried_and_deleted(page: Page, hook: Receiver, problems: list[str]) -> None:
    page.goto("/notices/")
    page.get_by_label("Webhook address").focus()
    page.keyboard.type(hook.url)
    page.keyboard.press("Enter")
    expect(page.locator("#secret")).to_have_text(re.compile(r"^\S{43}$"))
    page.get_by_role("link", name="Done").click()
    page.get_by_role("button", name="Send test notice to subscription 1").press("Enter")
    expect(page.get_by_role("cell", name="Pending").first).to_be_visible()
    tasks.tick()
    page.reload()
    expect(page.get_by_role("region", name="Latest deliveries").get_by_text("Sent")).to_be_visible()
    assert len(hook.requests) == 1
    page.get_by_role("link", name="Edit subscription 1").click()
    page.get_by_role("button", name="Delete").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("You have no subscriptions.")).to_be_visible()
    assert not Subscription.objects.exists()
    assert problems == []


def test_it_asks_for_an_address_for_webhooks_alone(page: Page, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example"
    page.goto("/notices/")
    expect(page.get_by_label("Webhook address")).to_be_hidden()
    page.get_by_label("Webhook", exact=True).check()
    expect(page.get_by_label("Webhook address")).to_be_visible()


@pytest.mark.parametrize("address", ["/notices/", "/notices/{pk}/", "/account/"])
def test_it_fits_a_narrow_screen(page: Page, problems: list[str], address: str) -> None:
    notice = a_notice(f"https://hooks.example/{'x' * 300}", user=User.objects.get(username="olga"))
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(address.format(pk=notice.subscription_id))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []
