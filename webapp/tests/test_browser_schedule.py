"""A person makes a schedule in Debian's Chromium, sees it fire, and gets its webhook and its mail."""

import ipaddress
import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from webapp.notices import tasks as notices
from webapp.notices.tests.receivers import Mailbox, Receiver, mail_server, receiver
from webapp.plans.document import Part, PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.models import Run, RunState
from webapp.schedules import tasks as schedules
from webapp.schedules.models import Occurrence
from webapp.tests.factories.people import PASSWORD, operator
from webapp.tests.system import StorageHost, System

pytestmark = [pytest.mark.pipeline, pytest.mark.browser]

FIRES_WITHIN_S = 100  # the next full minute, and a run of three seconds
LOOPBACK = "127.0.0.1/32"


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture
def mailbox(system: System, settings: Settings) -> Iterator[Mailbox]:
    """A mail server that this process and the web tier send to; webhooks may reach loopback."""
    with mail_server() as found:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.DEFAULT_FROM_EMAIL = "Sweetspot <lab@example.com>"
        settings.WEBHOOK_NETWORKS = [ipaddress.ip_network(LOOPBACK)]
        settings.PUBLIC_URL = system.web.url
        usual = system.web.environment
        system.web.environment = usual | {
            "SWEETSPOT_SMTP_URL": f"smtp://127.0.0.1:{found.port}",
            "SWEETSPOT_MAIL_FROM": settings.DEFAULT_FROM_EMAIL,
            "SWEETSPOT_WEBHOOK_NETWORKS": LOOPBACK,
        }
        system.web.stop()
        system.web.start()
        yield found
        system.web.environment = usual
        system.web.stop()


def test_a_schedule_fires_and_its_webhook_and_its_mail_arrive(
    system: System, storage: StorageHost, page: Page, hook: Receiver, mailbox: Mailbox
) -> None:
    factors = {"pattern": "randread", "size": "16M", "runtime": "2s"}
    create_plan(document=PlanDocument(title="Short check", parts=(Part(name="main", factors=factors),)), by=None)
    _log_in(page)
    _subscribe(page, hook)

    page.goto("/plans/")
    page.get_by_role("link", name="Short check", exact=True).click()
    page.get_by_label(re.compile("storage1/scratch")).check()
    page.get_by_role("link", name="Schedule…").first.click()
    page.get_by_label("Name").fill("Every minute")
    page.get_by_label("Cron line", exact=True).fill("* * * * *")
    expect(page.locator("#schedule-preview tbody tr")).to_have_count(5)
    page.get_by_role("button", name="Save schedule").first.click()
    expect(page.get_by_text("is saved and switched on.")).to_be_visible()

    def ended() -> bool:
        schedules.tick()
        return Run.objects.filter(state=RunState.DONE).exists()

    system.until(ended, limit_s=FIRES_WITHIN_S, what="the schedule fires and its run is done")
    page.reload()
    page.get_by_role("button", name="Switch off").click()
    occurrence = Occurrence.objects.select_related("run").exclude(run=None).earliest("due_at")
    run = occurrence.run
    assert run is not None
    expect(page.get_by_role("link", name=f"Run {run.number}", exact=True).first).to_be_visible()
    page.goto(f"/runs/{run.number}/")
    expect(page.get_by_text("Started by schedule")).to_contain_text("Every minute")

    def told() -> bool:
        notices.tick()
        return bool(hook.requests and mailbox.messages)

    system.until(told, limit_s=30, what="webhook and mail arrive")
    said = json.loads(hook.requests[0].body)
    assert (said["event"], said["run"], said["plan"]) == ("ended", run.number, "short-check")
    assert said["url"] == f"{system.web.url}/runs/{run.number}/"
    assert hook.requests[0].headers["Sweetspot-Signature"].startswith("v1=")
    assert mailbox.messages[0]["To"] == "olga@example.com"
    assert said["url"] in mailbox.messages[0].get_content()


def _log_in(page: Page) -> None:
    page.goto("/account/")
    page.get_by_label("Name").fill(operator().username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def _subscribe(page: Page, hook: Receiver) -> None:
    page.get_by_label("E-mail address").fill("olga@example.com")
    page.get_by_role("button", name="Save address").click()
    expect(page.get_by_text("Your e-mail address is saved.")).to_be_visible()
    for channel in ("E-mail", "Webhook"):
        page.goto("/notices/")
        page.get_by_role("radio", name=re.compile(channel)).check()
        if channel == "Webhook":
            page.get_by_label("Webhook address").fill(hook.url)
        page.get_by_label("Run done or cancelled").check()
        page.get_by_role("button", name="Add subscription").click()
        expect(page.locator("main")).to_contain_text(
            "every plan" if channel == "E-mail" else "secret", ignore_case=True
        )
