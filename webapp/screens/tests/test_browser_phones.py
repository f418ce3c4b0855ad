"""Pages in a window of 390 × 844."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page

from webapp.results.models import Result
from webapp.screens.results.views import PER_PAGE
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import START, Lab
from webapp.tests.visits import sideways

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LINES = """labels => labels.map(label => {
  const text = document.createRange();
  text.selectNodeContents(label);
  const inside = label.getBoundingClientRect();
  const shown = [...text.getClientRects()].filter(line => line.width && line.top < inside.bottom - 1);
  return new Set(shown.map(line => Math.round(line.bottom / 4))).size;
})"""


@pytest.fixture
def phone(page: Page) -> Page:
    page.set_viewport_size({"width": 390, "height": 844})
    return page


def test_labels_of_a_target_have_at_most_two_lines(phone: Page) -> None:
    """Its workloads differ in many factors."""
    drive = a_drive(a_host("storage1"), "nvme0", model="SAMSUNG MZQL2")
    for number in (1, 2):
        lab = Lab(drive, number=number)
        for depth in (1, 32):
            lab.measure(*(100.0 * depth,) * 3, iodepth=depth, size=2**28, scheduler="none", runtime=3)
            lab.measure(*(90.0 * depth,) * 3, iodepth=depth, size=2**30, scheduler="mq-deadline", runtime=10)
        Result.objects.filter(run=lab.run).update(measured_at=START + timedelta(days=number))
    phone.goto("/hosts/storage1/targets/nvme0/")
    labels = phone.locator(".bench-table th[scope=row], .chart-label")
    assert labels.count() >= 5
    assert max(labels.evaluate_all(LINES)) == 2
    assert sideways(phone) == 0


def test_a_page_of_results_is_short(phone: Page) -> None:
    """Each result is a card of few lines."""
    lab = Lab(a_drive(a_host("storage1"), "nvme0"))
    for depth in (1, 2, 4, 8):
        lab.measure(*(100.0 * depth,) * 15, iodepth=depth)
    phone.goto("/results/")
    cards = phone.locator("#results-table tbody tr")
    assert cards.count() == PER_PAGE
    assert max(cards.evaluate_all("cards => cards.map(card => card.offsetHeight)")) <= 180
    assert sideways(phone) == 0
