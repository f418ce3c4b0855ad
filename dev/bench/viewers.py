"""Measures the delay from the end of a second on the host to its point on the chart, with fifty viewers.

    python -m dev.bench.viewers [--viewers 50] [--seconds 180] [--json]

A real worker streams a real trial to a private stack. Fifty clients poll over HTTP as the page does: once a second
they request the samples since the last answer. One Chromium shows the page itself; a second counts as drawn when the
chart has been drawn with it. Every client must receive every second that the database holds.
"""

import argparse
import random
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import urllib3

from dev.bench.figures import Figure, figure, show
from dev.console import ToolError, run_command, step
from dev.demo import start
from dev.stack import lifecycle, services
from dev.stack.state import default_state

if TYPE_CHECKING:
    from webapp.core.models import User
    from webapp.runs.models import Run

WANTED_P99_S = 2.0
POLL_S = 1.0  # as entries/run.ts
FACTORS = {"pattern": "randread", "block_size": "4k", "iodepth": "1", "size": "64M"}
Second = tuple[int, int, int]  # trial, attempt, offset_ms

OBSERVE = """() => {
  window.drawn = [];
  const root = document.getElementById("seconds");
  const note = () => window.drawn.push([Date.now() / 1000, root.dataset.drawn ?? ""]);
  new MutationObserver(note).observe(root, { attributes: true, attributeFilter: ["data-drawn"] });
  note();
}"""


@dataclass
class Viewer:
    """One viewer and the seconds it received, each with its time of arrival."""

    address: str
    session: str
    number: int
    seen: dict[Second, float] = field(default_factory=dict)
    answers_s: list[float] = field(default_factory=list)

    def poll(self, until: threading.Event) -> None:
        pool = urllib3.PoolManager(headers={"Cookie": f"sessionid={self.session}"}, timeout=30)
        until.wait(random.Random(self.number).uniform(0, POLL_S))  # noqa: S311 - viewers do not start together
        cursor = ""
        while not until.is_set():
            asked = time.monotonic()
            response = pool.request("GET", f"{self.address}live/?after={quote(cursor)}")
            self.answers_s.append(time.monotonic() - asked)
            if response.status != 200:
                raise ToolError(f"The server answered a viewer with status {response.status}.")
            now, payload = time.time(), response.json()
            for sample in payload["samples"]:
                self.seen.setdefault((sample["trial"], sample["attempt"], sample["offset_ms"]), now)
            cursor = payload["cursor"]
            until.wait(POLL_S)

    def delays(self, ends: Mapping[Second, float]) -> list[float]:
        """Of the seconds that ended after the viewer opened the page. Raises ToolError if a second never arrived."""
        if lost := ends.keys() - self.seen.keys():
            raise ToolError(f"{len(lost)} seconds never arrived at viewer {self.number}.")
        opened = min(self.seen.values())
        return [self.seen[key] - end for key, end in ends.items() if end >= opened]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if the 99th percentile on the chart exceeds its limit."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.viewers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    options = parser.parse_args(arguments)
    state = default_state("viewers")
    try:
        start.bring_up(state)
        figures = _measure(services.public_url(state), options.viewers, options.seconds)
    finally:
        with step("removing the measurement's processes and data"):
            lifecycle.remove(state)
    return show(figures, as_json=options.json)


def _measure(url: str, viewers: int, seconds: int) -> list[Figure]:
    from django.test import Client

    from dev.bench import runs
    from webapp.core.models import Role, User

    user, client = User.objects.create_user("viewers", role=Role.VIEWER), Client()
    client.force_login(user)
    run = runs.start("Viewers", {**FACTORS, "runtime": f"{seconds}s"}, target="scratch")
    address, until = f"{url}/runs/{run.number}/", threading.Event()
    session = client.cookies["sessionid"].value
    clients = [Viewer(address, session, number) for number in range(viewers)]
    with ThreadPoolExecutor(viewers) as threads:
        polling = [threads.submit(client.poll, until) for client in clients]
        with step(f"{viewers} viewers and one Chromium on a trial of {seconds} s"):
            try:
                drawn = _in_chromium(url, address, user, run, seconds + 120)
            finally:
                until.set()
    for each in polling:
        each.result()
    runs.require_done(run)
    ends = _ends(run)
    return [
        *_delays("end of a second on the host to its point on the chart", _drawn(ends, drawn)),
        *_delays("end of a second on the host to its arrival", [s for each in clients for s in each.delays(ends)]),
        *_delays("the server's answer to a viewer", [s for each in clients for s in each.answers_s]),
    ]


def _in_chromium(url: str, address: str, user: "User", run: "Run", limit_s: float) -> list[tuple[float, str]]:
    """The chart's draws: time, and the newest second drawn. Ends with the run."""
    from playwright.sync_api import Error

    from dev.bench import runs
    from webapp.tests.browser import chromium
    from webapp.tests.visits import log_in

    until, found = time.monotonic() + limit_s, list[tuple[float, str]]()
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        log_in(context, url, user)
        page = context.new_page()
        page.goto(address)
        page.evaluate(OBSERVE)
        while runs.is_open(run) and time.monotonic() < until:
            time.sleep(1)
            with suppress(Error):  # the page reloads at the end of the run
                found = [tuple(each) for each in page.evaluate("window.drawn ?? []")] or found
    return found


def _ends(run: "Run") -> dict[Second, float]:
    """When each second ended. The last one may have ended after the viewers' last poll and is left out."""
    from webapp.plans.trial_numbers import number_of
    from webapp.results.models import Sample

    names = ("attempt__trial__index", "attempt__number", "offset_ms", "at")
    rows = Sample.objects.filter(attempt__run=run).values_list(*names)
    ends = {(number_of(index), attempt, offset): at.timestamp() for index, attempt, offset, at in rows}
    last = max(ends.values()) - 1.5
    return {key: end for key, end in ends.items() if end <= last}


def _drawn(ends: Mapping[Second, float], drawn: Sequence[tuple[float, str]]) -> list[float]:
    """Delays of the seconds that ended while the page was open; a draw shows all seconds up to its newest."""
    opened = drawn[0][0]
    draws = [(at, [int(part) for part in newest.split("/")]) for at, newest in drawn if newest]
    found = []
    for (*trial, offset), end in ends.items():
        shown = (at for at, newest in draws if newest[:2] == trial and newest[2] >= offset)
        if end >= opened:
            found.append(next(shown, float("inf")) - end)
    return found


def _delays(name: str, values: Sequence[float]) -> list[Figure]:
    p99 = float(np.percentile(values, 99))
    return [
        figure(name, "s", values, "", met=True),
        figure(f"{name}, p99", "s", [p99], f"< {WANTED_P99_S:g}", met=p99 < WANTED_P99_S),
    ]


if __name__ == "__main__":
    run_command(main)
