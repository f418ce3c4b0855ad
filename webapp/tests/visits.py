"""Every page in a real browser: what axe finds, what the content security policy stops, how much script it loads."""

import gzip
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.test import Client
from playwright.sync_api import BrowserContext, Page, Response

from webapp.core.models import User
from webapp.tests.access_table import PAGES, Who
from webapp.tests.addresses import SampleMissing, pages

AXE = Path(settings.BASE_DIR) / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE_MS = 20_000
NOT_LOGGED_IN = ("login", "set_password", "shared_comparison", "shared_frame")
PARTS_OF_PAGES = ("run_wear", "run_searches", "run_settings")  # HTML that a script puts into a page: looked at there


@dataclass(frozen=True)
class ShownOnce:
    """A page that shows its secret once, after a form: where the form stands, where it goes, what is given, and the
    page's address."""

    form: str
    action: str
    given: Mapping[str, str]
    page: str


SHOWN_ONCE: Mapping[str, ShownOnce] = {
    "new_token": ShownOnce("/account/", "/account/tokens/", {"name": "picture of a token"}, "/account/tokens/new/"),
    "new_host_line": ShownOnce("/hosts/add/", "/hosts/add/line/", {"slug": "shown-once"}, "/hosts/add/*/"),
    "password_link": ShownOnce(
        "/people/", "/people/add/", {"username": "shown.once", "role": "viewer"}, "/people/*/password/link/"
    ),
}

# Run before any script of the page. The policy's violations are events of the document.
WATCH = """
window.stopped = [];
document.addEventListener("securitypolicyviolation", (event) => {
  const place = `${event.sourceFile}:${event.lineNumber}`;
  window.stopped.push(`${event.violatedDirective}: ${event.blockedURI} ${place} ${event.sample}`);
});
"""
ASK_AXE = """async (options) => {
  const why = (node) => [...node.any, ...node.all, ...node.none][0]?.message ?? "";
  const where = (node) => `${node.target.join(" ")} (${why(node)})`;
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map(where).join("; ")}`);
}"""
COLOURS_ONLY = {"runOnly": ["color-contrast", "link-in-text-block"]}  # the rules that depend on the theme

SEND_FORM = """({ action, given }) => {
  const form = [...document.forms].find((one) => new URL(one.action).pathname === action);
  for (const [name, value] of Object.entries(given)) form.elements.namedItem(name).value = value;
  form.requestSubmit();
}"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@dataclass(frozen=True)
class Seen:
    """What was wrong with one page, in words."""

    axe: tuple[str, ...]
    stopped: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return self.axe + self.stopped + self.errors


def html_pages(samples: Mapping[str, object], admin: User, missing: list[str] | None = None) -> dict[str, str]:
    """Name and path of every address that answers an admin, or anybody, with a page.

    `missing` takes the names of addresses for which there is no sample. Without it they are an error.
    """
    found = {}
    for address in pages():
        if PAGES[address.name].get in (None, Who.HOST) or address.name in PARTS_OF_PAGES:
            continue
        client = Client(SERVER_NAME="127.0.0.1")  # the demo answers to no name that is not its own
        if address.name not in NOT_LOGGED_IN:
            client.force_login(admin)
        try:
            path = address.filled(samples)
        except SampleMissing:
            if missing is None:
                raise
            missing.append(address.name)
            continue
        response = client.get(path, follow=True)
        if response.status_code == 200 and response.headers["Content-Type"].startswith("text/html"):
            found[address.name] = path
    return found


def log_in(context: BrowserContext, url: str, user: User) -> None:
    """Give the browser a session of this person."""
    client = Client()
    client.force_login(user)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}])


def visit(page: Page, path: str | ShownOnce) -> Seen:
    """Open it, let its scripts settle, look at it in the light and at its colours in the dark."""
    errors: list[str] = []

    def on_error(error: Any) -> None:
        errors.append(str(error))

    page.on("pageerror", on_error)
    try:
        if isinstance(path, ShownOnce):
            open_once(page, path)
        else:
            page.goto(path, wait_until="load", timeout=PATIENCE_MS)
        page.emulate_media(color_scheme="light")
        page.evaluate(SETTLED)
        found = [f"light: {one}" for one in _axe(page, {})]
        page.emulate_media(color_scheme="dark")
        page.evaluate(SETTLED)
        found += [f"dark: {one}" for one in _axe(page, COLOURS_ONLY)]
        return Seen(tuple(found), tuple(page.evaluate("window.stopped")), tuple(errors))
    finally:
        page.remove_listener("pageerror", on_error)


def open_once(page: Page, shown: ShownOnce) -> None:
    """Fill in the form and send it: what the page then shows is shown this once."""
    page.goto(shown.form, wait_until="load", timeout=PATIENCE_MS)
    with page.expect_navigation(url=f"**{shown.page}", wait_until="load", timeout=PATIENCE_MS):
        page.evaluate(SEND_FORM, {"action": shown.action, "given": dict(shown.given)})


def _axe(page: Page, options: Mapping[str, object]) -> list[str]:
    """axe is run by the browser's own evaluation, which the page's policy does not limit."""
    page.evaluate(_axe_source())
    found: list[str] = page.evaluate(ASK_AXE, dict(options))
    return found


@cache
def _axe_source() -> str:
    return AXE.read_text()


def script_bytes(page: Page, path: str) -> int:
    """Of all scripts that the page loads, each packed with gzip."""
    scripts: dict[str, Response] = {}

    def on_response(response: Response) -> None:
        if response.request.resource_type == "script" and response.ok:
            scripts[response.url] = response

    page.on("response", on_response)
    page.goto(path, wait_until="load", timeout=PATIENCE_MS)
    page.remove_listener("response", on_response)
    return sum(_packed(url, one) for url, one in scripts.items())


_sizes: dict[str, int] = {}


def _packed(url: str, response: Response) -> int:
    """Names hold a hash of the content, so each is packed once."""
    if url not in _sizes:
        _sizes[url] = len(gzip.compress(response.body(), 9))
    return _sizes[url]


def sideways(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return width


def until(page: Page, condition: str, *, limit_s: float = 20) -> None:
    """Wait until the JavaScript expression is true. AssertionError after `limit_s`.

    Playwright's own wait_for_function evaluates the expression again from inside the page, which the content security
    policy stops.
    """
    deadline = time.monotonic() + limit_s
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"not true within {limit_s} s: {condition}"
        page.wait_for_timeout(50)
