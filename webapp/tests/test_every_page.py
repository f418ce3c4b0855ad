"""Every page that there is, in Debian's Chromium, as an admin with real rows: accessible, within its limits, small."""

import pytest
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from webapp.core.models import User
from webapp.tests.samples import ADMIN, make_people, make_samples
from webapp.tests.sampling import part_of
from webapp.tests.visits import (
    AXE,
    NOT_LOGGED_IN,
    SHOWN_ONCE,
    WATCH,
    Seen,
    html_pages,
    log_in,
    script_bytes,
    sideways,
    until,
    visit,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MAX_SCRIPT_BYTES = 120_000
WIDTHS = (1440, 390)  # `make test` examines each page at one of them, `make fuzz` at both


@pytest.fixture(autouse=True)
def _axe() -> None:
    if not AXE.is_file():
        pytest.fail("axe-core is not installed: run `.ci/setup --tests` first.")


@pytest.fixture
def paths(live_server: LiveServer) -> dict[str, str]:
    samples = make_samples()
    return html_pages(samples, User.objects.get(username=ADMIN))


def page_in(chromium: Browser, url: str, name: str, width: int = 1440) -> Page:
    """A fresh page as the one who would see it."""
    context = chromium.new_context(base_url=url, viewport={"width": width, "height": 900}, reduced_motion="reduce")
    context.add_init_script(WATCH)
    if name not in NOT_LOGGED_IN:
        log_in(context, url, User.objects.get(username=ADMIN))
    return context.new_page()


def seen(chromium: Browser, url: str, paths: dict[str, str], width: int) -> dict[str, Seen]:
    """Visit the pages. Those behind the log-in share a browser context; each other page has its own."""
    inside = page_in(chromium, url, "overview", width)
    found = {}
    for name, path in paths.items():
        page = page_in(chromium, url, name, width) if name in NOT_LOGGED_IN else inside
        found[name] = visit(page, path)
        if page is not inside:
            page.context.close()
    inside.context.close()
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_accessible_and_within_its_policy(
    chromium: Browser, live_server: LiveServer, paths: dict[str, str], width: int
) -> None:
    assert {"login", "overview", "run", "people", "audit", "account"} <= set(paths)
    examined = part_of(list(paths.items()), WIDTHS.index(width), len(WIDTHS))
    all_seen = seen(chromium, live_server.url, dict(examined), width)
    problems = [f"{name}: {what}" for name, one in all_seen.items() for what in one.problems]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", SHOWN_ONCE)
def test_what_is_shown_once_is_accessible_and_fits(chromium: Browser, live_server: LiveServer, name: str) -> None:
    make_people()
    page = page_in(chromium, live_server.url, name, width=390)
    found = visit(page, SHOWN_ONCE[name])
    assert page.locator("[data-copy]").first.is_visible()
    assert (found.problems, sideways(page)) == ((), 0)
    page.context.close()


def test_it_loads_little_script_and_fits_a_narrow_screen(
    chromium: Browser, live_server: LiveServer, paths: dict[str, str]
) -> None:
    """Run with `-s` it shows the size of every page."""
    sizes, wide = {}, {}
    page = page_in(chromium, live_server.url, "overview", width=390)
    for name, path in paths.items():
        sizes[name] = script_bytes(page, path)
        if (over := sideways(page)) > 0:
            wide[name] = over
    page.context.close()
    for name, size in sorted(sizes.items(), key=lambda one: -one[1]):
        print(f"{size / 1000:6.1f} kB  {name}")
    assert {name: size for name, size in sizes.items() if size >= MAX_SCRIPT_BYTES} == {}
    assert wide == {}


def test_it_would_see_what_the_policy_stops(chromium: Browser, live_server: LiveServer) -> None:
    make_people()
    page = page_in(chromium, live_server.url, "runs")
    page.goto("/runs/")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p><img src=x onerror=y>')")
    until(page, "window.stopped.length >= 2")
    stopped = " ".join(page.evaluate("window.stopped"))
    assert "style-src-attr" in stopped
    assert "script-src-attr" in stopped
    page.context.close()
