"""Arming in Debian's Chromium: it runs out before one's eyes, a wrong serial does nothing, the right one arms."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_arming_expires_and_is_given_again(page: Page, problems: list[str]) -> None:
    host = a_host("storage1", state="maintenance")  # nothing is sent
    an_inventory(host)
    drive = storage1_drive(host, opens="/dev/nvme0n1")
    run = first_look_run(
        first_look(), [drive], repeats=1, state="queued", started_at=None, queue_position=1,
        armed_serials=[drive.serial], armed_until=timezone.now() + timedelta(minutes=30),
    )  # fmt: skip
    run.trials.update(destructive=True)
    page.goto("/runs/1/")
    expect(page.get_by_role("timer")).to_have_text(re.compile(r"^29:\d\d$"))
    Run.objects.update(armed_until=timezone.now() + timedelta(seconds=3))
    page.reload()
    field = page.get_by_label(f"To overwrite {drive}, type its serial")
    expect(field).to_be_visible()  # the page finds out by itself
    expect(page.get_by_text("but it did not start by then")).to_be_visible()
    field.fill("S64GNE0R800124")
    page.get_by_role("button", name=re.compile("Arm run 1")).click()
    expect(page.get_by_text("To arm it, type: S64GNE0R800123")).to_be_visible()
    field.fill(drive.serial)
    page.get_by_role("button", name=re.compile("Arm run 1")).click()
    expect(page.get_by_role("timer")).to_have_text(re.compile(r"^(59|1:00):\d\d"))
    page.get_by_role("button", name="Disarm").click()
    expect(page.get_by_text("The run was disarmed")).to_be_visible()
    assert Run.objects.get().armed_until is None
    assert problems == []
