"""The overview, the list of trends and the list of runs in Debian's Chromium: accessible, and as wide as the window."""

import pytest
from django.utils import timezone
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from webapp.core.models import Role
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.visits import WATCH, log_in, sideways, visit
from webapp.trends.summaries import make_due
from webapp.trends.tests.measuring import Nights

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PAGES = ("/", "/trends/", "/trends/?view=grid", "/runs/", "/references/", "/queue/")


@pytest.mark.parametrize("width", [1440, 390])
def test_pages_of_the_morning_are_accessible_and_fit(chromium: Browser, live_server: LiveServer, width: int) -> None:
    host, version = a_host("db1", last_seen_at=timezone.now()), a_version(slug="nightly")
    count = 0
    for slug, after in (("nvme0", 1000.0), ("nvme1", 800.0), ("nvme2", 1300.0)):
        nights = Nights(version, a_drive(host, slug), count=count)
        for level in (1000.0,) * 8 + (after,) * 6:
            nights.run(level)
        count = nights.count
    make_due(60)
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": width, "height": 844}, reduced_motion="reduce"
    )
    context.add_init_script(WATCH)
    log_in(context, live_server.url, a_user("olga", Role.OPERATOR))
    page = context.new_page()
    for path in PAGES:
        assert (visit(page, path).problems, sideways(page)) == ((), 0), path
    page.goto("/")
    assert page.locator(".spark-line.tone-slower").count() == 2
    assert page.locator(".spark-line.tone-faster").count() == 1
    context.close()
