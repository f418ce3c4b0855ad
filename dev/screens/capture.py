"""`make screens`: pictures of every page of the running demo, 1440 and 390 pixels wide, light and dark.

The pages come from the URL table, and further ones from `dev.screens.variants`. Their parameters come from the demo's
data, or from temporary objects (`dev.screens.samples`). The format is WebP: as PNG, the
same pages are four times as large.
"""

import base64
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import django

from dev.console import ToolError, say
from dev.screens.samples import temporary_samples
from dev.stack import lifecycle, services
from dev.stack.state import REPOSITORY, State

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from webapp.core.models import User

FOLDER = REPOSITORY / "docs" / "screens"
WIDTHS = {1440: 900, 390: 844}
THEMES = ("light", "dark")
MAX_HEIGHT_PX = 2200
QUALITIES = (80, 65, 50, 35)  # the first one whose picture is small enough
MAX_BYTES = 150_000
SETTLE_MS = 900  # until charts are drawn and live parts have loaded once


def main(state: State) -> int:
    """Take all pictures; print the names of pages left out. Raises ToolError if no demo is running."""
    if services.WEB not in lifecycle.running(state):
        raise ToolError("The demo is not running. Start it with `make demo`, then run `make screens` again.")
    os.environ.update(services.environment(state))
    django.setup()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.webp"):
        old.unlink()
    written = list(_pictures(services.public_url(state)))
    _write_index(written)
    total = sum((FOLDER / name).stat().st_size for name in written)
    say(f"{len(written)} pictures, {total / 1e6:.1f} MB, in {FOLDER.relative_to(REPOSITORY)}")
    return 0


def _pictures(url: str) -> Iterator[str]:
    from webapp.core.models import Role, User
    from webapp.tests.browser import chromium

    admin = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
    if admin is None:
        raise ToolError("The demo has no administrator to open its pages.")
    with temporary_samples(admin) as (samples, instead), chromium() as browser:
        paths = _paths(admin, samples, instead)
        for width in WIDTHS:
            for theme in THEMES:
                yield from _series(browser, url, admin, paths, width, theme)


def _paths(admin: "User", samples: Mapping[str, object], instead: Mapping[str, str]) -> dict[str, str]:
    """Every page that the demo has data for, and the live page of a running run."""
    from webapp.runs.models import Run, RunState
    from webapp.tests.visits import SHOWN_ONCE, html_pages

    missing: list[str] = []
    paths = {name: path for name, path in html_pages(samples, admin, missing).items() if name not in SHOWN_ONCE}
    if missing:
        say(f"Left out, because the demo has no data for them: {', '.join(missing)}")
    going_on = Run.objects.filter(state=RunState.RUNNING).order_by("-number").first()
    return paths | dict(instead) | ({"run-live": f"/runs/{going_on.number}/"} if going_on else {})


def _series(
    browser: "Browser", url: str, admin: "User", paths: Mapping[str, str], width: int, theme: str
) -> Iterator[str]:
    from webapp.tests.visits import NOT_LOGGED_IN, SHOWN_ONCE, log_in, open_once

    for open_to_all in (True, False):
        context = browser.new_context(
            base_url=url, viewport={"width": width, "height": WIDTHS[width]}, reduced_motion="reduce",
            color_scheme="dark" if theme == "dark" else "light",
        )  # fmt: skip
        if not open_to_all:
            log_in(context, url, admin)
        page = context.new_page()
        for name in (name for name in paths if (name in NOT_LOGGED_IN) is open_to_all):
            page.goto(paths[name], wait_until="load")
            yield _save(page, name, width, theme)
        for name, shown in () if open_to_all else SHOWN_ONCE.items():
            open_once(page, shown)
            yield _save(page, name, width, theme)
            _delete_shown(admin)
        context.close()


def _save(page: "Page", name: str, width: int, theme: str) -> str:
    page.wait_for_timeout(SETTLE_MS)
    file = f"{name.replace('_', '-')}-{width}-{theme}.webp"
    (FOLDER / file).write_bytes(_picture(page, width))
    return file


def _delete_shown(admin: "User") -> None:
    """Delete the credentials in a picture: anybody can see the picture."""
    from webapp.core.models import ApiToken, User
    from webapp.hosts.models import EnrolmentToken
    from webapp.tests.visits import SHOWN_ONCE

    token, line, person = (SHOWN_ONCE[name].given for name in ("new_token", "new_host_line", "password_link"))
    ApiToken.objects.filter(user=admin, name=token["name"]).delete()
    EnrolmentToken.objects.filter(host_slug=line["slug"]).delete()
    User.objects.filter(username=person["username"]).delete()


def _picture(page: "Page", width: int) -> bytes:
    """The page from its top, up to MAX_HEIGHT_PX."""
    height = min(MAX_HEIGHT_PX, max(WIDTHS[width], page.evaluate("document.documentElement.scrollHeight")))
    browser = page.context.new_cdp_session(page)
    for quality in QUALITIES:
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        options = {"format": "webp", "quality": quality, "clip": clip, "captureBeyondViewport": True}
        taken = base64.b64decode(browser.send("Page.captureScreenshot", options)["data"])
        if len(taken) <= MAX_BYTES:
            break
    browser.detach()
    return taken


def _write_index(files: list[str]) -> None:
    names = sorted({name.rsplit("-", 2)[0] for name in files})
    columns = [f"{width}-{theme}" for width in WIDTHS for theme in THEMES]
    lines = ["# Every page", "", "Taken by `make screens` from the demo.", ""]
    lines += [f"| page | {' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    for name in names:
        cells = [f"[{c}]({name}-{c}.webp)" if f"{name}-{c}.webp" in files else "" for c in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    Path(FOLDER / "README.md").write_text("\n".join(lines) + "\n")
