"""Debian's Chromium without a window, driven by Playwright: for tests, pictures of pages and benchmarks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

PROGRAM = "/usr/bin/chromium-headless-shell"  # takes half the CPU time of `chromium --headless`
PATIENCE_MS = 60_000  # only a page that never comes takes this long; a busy machine takes half a minute


@contextmanager
def chromium() -> Iterator[Browser]:
    # Playwright keeps an event loop in this thread; Django would refuse to talk to the database here.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM)
        yield browser
        browser.close()
