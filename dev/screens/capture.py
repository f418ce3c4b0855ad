"""`make screens`: pictures of every page of the running demo, 1440 and 390 pixels wide, light and dark.

The pages come from the URL table, and further ones from `dev.screens.variants`. Their parameters come from the demo's
data, or from temporary objects (`dev.screens.samples`). The format is WebP: as PNG, the
same pages are four times as large.
"""

import argparse
import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    from webapp.tests.visits import ShownOnce

FOLDER = REPOSITORY / "docs" / "screens"
WIDTHS = {1440: 900, 390: 844}
THEMES = ("light", "dark")
MAX_HEIGHT_PX = 2200
QUALITIES = (80, 65, 50, 35)  # the first one whose picture is small enough
MAX_BYTES = 150_000
SETTLE_MS = 900  # until charts are drawn and live parts have loaded once


@dataclass(frozen=True)
class Look:
    """Of a picture, and where it is written."""

    folder: Path
    width: int
    theme: str


def main(state: State, arguments: Sequence[str]) -> int:
    """Take the pictures; print the names of pages left out. Raises ToolError if no demo is running."""
    parser = argparse.ArgumentParser(prog="make screens", description="Pictures of the pages of the running demo.")
    parser.add_argument("--only", metavar="PAGE", help="one page, 1440 pixels wide and light")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    if services.WEB not in lifecycle.running(state):
        raise ToolError("The demo is not running. Start it with `make demo`, then run `make screens` again.")
    os.environ.update(services.environment(state))
    django.setup()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.webp"):
        old.unlink()
    written = list(_pictures(services.public_url(state), folder, options.only))
    _write_index(folder, written)
    total = sum((folder / name).stat().st_size for name in written)
    say(f"{len(written)} pictures, {total / 1e6:.1f} MB, in {folder}")
    return 0


def _pictures(url: str, folder: Path, only: str | None) -> Iterator[str]:
    from webapp.core.models import Role, User
    from webapp.tests.browser import chromium
    from webapp.tests.visits import SHOWN_ONCE

    admin = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
    if admin is None:
        raise ToolError("The demo has no administrator to open its pages.")
    with temporary_samples(admin) as (samples, instead), chromium() as browser:
        paths = _paths(admin, samples, instead)
        if only is not None and only not in paths:
            raise ToolError(f"There is no page {only}. The pages are {', '.join(paths)}.")
        if only is not None:
            yield from _series(
                browser, url, admin, {only: paths[only]}, Look(folder, next(iter(WIDTHS)), THEMES[0]), {}
            )
            return
        for width in WIDTHS:
            for theme in THEMES:
                yield from _series(browser, url, admin, paths, Look(folder, width, theme), SHOWN_ONCE)


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
    browser: "Browser", url: str, admin: "User", paths: Mapping[str, str], look: Look, once: "Mapping[str, ShownOnce]"
) -> Iterator[str]:
    """`once`: pages that show a secret a single time."""
    from webapp.tests.visits import NOT_LOGGED_IN, log_in, open_once

    for open_to_all in (True, False):
        names = [name for name in paths if (name in NOT_LOGGED_IN) is open_to_all]
        context = browser.new_context(
            base_url=url, viewport={"width": look.width, "height": WIDTHS[look.width]}, reduced_motion="reduce",
            color_scheme="dark" if look.theme == "dark" else "light",
        )  # fmt: skip
        if not open_to_all:
            log_in(context, url, admin)
        page = context.new_page()
        for name in names:
            page.goto(paths[name], wait_until="load")
            yield _save(page, name, look)
        for name, shown in () if open_to_all else once.items():
            open_once(page, shown)
            yield _save(page, name, look)
            _delete_shown(admin)
        context.close()


def _save(page: "Page", name: str, look: Look) -> str:
    page.wait_for_timeout(SETTLE_MS)
    file = f"{name.replace('_', '-')}-{look.width}-{look.theme}.webp"
    (look.folder / file).write_bytes(_picture(page, look.width))
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


def _write_index(folder: Path, files: list[str]) -> None:
    names = sorted({name.rsplit("-", 2)[0] for name in files})
    columns = [f"{width}-{theme}" for width in WIDTHS for theme in THEMES]
    lines = ["# Every page", "", "Taken by `make screens` from the demo.", ""]
    lines += [f"| page | {' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    for name in names:
        cells = [f"[{c}]({name}-{c}.webp)" if f"{name}-{c}.webp" in files else "" for c in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    (folder / "README.md").write_text("\n".join(lines) + "\n")
