"""Measures the delay from the end of a second on the host to its point on the chart, with fifty viewers.

    python -m dev.bench.viewers [--viewers 50] [--seconds 180] [--json]

A real worker streams a real trial to a private stack. Fifty clients poll over HTTP as the page does: once a second
they request the samples since the last answer. One Chromium shows the page itself; a second counts as drawn when the
chart has been drawn with it. Every client must receive every second that the database holds.
"""

import argparse
import json
import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import urllib3

from dev.console import ToolError, run_command, say, step
from dev.demo import start
from dev.stack import lifecycle, services
from dev.stack.state import default_state

if TYPE_CHECKING:
    from webapp.core.models import User
    from webapp.runs.models import Run

WANTED_P99_S = 2.0
POLL_S = 1.0  # as entries/run.ts
NAME = "viewers"
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

    url: str
    session: str
    number: int
    seen: dict[Second, float] = field(default_factory=dict)
    answers_s: list[float] = field(default_factory=list)
    bytes_received: int = 0
    problem: str = ""

    def run(self, path: str, until: threading.Event) -> None:
        try:
            self._poll(path, until)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            self.problem = f"viewer {self.number}: {type(error).__name__}: {error}"

    def _poll(self, path: str, until: threading.Event) -> None:
        headers = {"Cookie": f"sessionid={self.session}"}
        pool = urllib3.PoolManager(headers=headers, timeout=30, retries=urllib3.Retry(1))
        until.wait(random.Random(self.number).uniform(0, POLL_S))  # noqa: S311 - viewers do not start together
        cursor = ""
        while not until.is_set():
            asked = time.monotonic()
            response = pool.request("GET", f"{self.url}{path}live/?after={quote(cursor)}")
            self.answers_s.append(time.monotonic() - asked)
            if response.status != 200:
                raise ValueError(f"the server answered {response.status}")
            cursor = self._receive(response.data)
            until.wait(POLL_S)

    def _receive(self, body: bytes) -> str:
        """The cursor for the next poll."""
        now, payload = time.time(), json.loads(body)
        self.bytes_received += len(body)
        for sample in payload["samples"]:
            self.seen.setdefault((sample["trial"], sample["attempt"], sample["offset_ms"]), now)
        cursor: str = payload["cursor"]
        return cursor


def session_of(user: "User") -> str:
    from django.test import Client

    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


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
    for each in figures:
        times = "   ".join(f"{name} {each[f'{name}_s']:.2f} s" for name in ("p50", "p99", "max"))
        say(f"{each['name']:<66} {times}   n {each['n']}")
    if options.json:
        say(json.dumps(figures, indent=2))
    return 0 if float(figures[0]["p99_s"]) < WANTED_P99_S else 1


Row = dict[str, "str | float | int"]


def _measure(url: str, viewers: int, seconds: int) -> list[Row]:
    from dev.bench import runs
    from webapp.core.models import Role, User

    user = User.objects.create_user(NAME, role=Role.VIEWER)
    run = runs.start("Viewers", {**FACTORS, "runtime": f"{seconds}s"}, target="scratch")
    path, until = f"/runs/{run.number}/", threading.Event()
    clients = [Viewer(url, session_of(user), number) for number in range(viewers)]
    threads = [threading.Thread(target=client.run, args=(path, until), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    with step(f"{viewers} viewers and one Chromium on a trial of {seconds} s"):
        drawn = _in_chromium(url + path, session_of(user), run, seconds + 120)
    until.set()
    for thread in threads:
        thread.join(30)
    return _figures(run, clients, drawn)


def _in_chromium(address: str, session: str, run: "Run", limit_s: float) -> list[tuple[float, str]]:
    """The chart's draws: time, and the newest second drawn. Ends with the run."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        page = context.new_page()
        page.goto(address)
        page.evaluate(OBSERVE)
        until, found = time.monotonic() + limit_s, list[tuple[float, str]]()
        while time.monotonic() < until:
            time.sleep(1)
            with suppress(Error):  # the page reloads at the end of the run
                found = [tuple(each) for each in page.evaluate("window.drawn ?? []")] or found
            if _ended(run):
                break
        browser.close()
    return found


def _ended(run: "Run") -> bool:
    """Whether all trials have ended. Queried in a separate thread: Playwright runs an event loop in this one."""
    answer: list[bool] = []

    def ask() -> None:
        from django.db import connection

        answer.append(not run.trials.filter(ended_at=None).exists())
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(30)
    return answer == [True]


def _figures(run: "Run", clients: Sequence[Viewer], drawn: Sequence[tuple[float, str]]) -> list[Row]:
    from webapp.plans.trial_numbers import number_of
    from webapp.results.models import Sample

    not_done = [(trial.state, trial.reason) for trial in run.trials.exclude(state="done")]
    if not_done:
        raise ToolError(f"The trial is not done: {not_done}")
    rows = Sample.objects.filter(attempt__run=run).values_list(
        "attempt__trial__index", "attempt__number", "offset_ms", "at"
    )
    ends = {(number_of(index), attempt, second): at.timestamp() for index, attempt, second, at in rows}
    last = max(ends.values()) - 1.5  # the last second may end after the viewers' last poll
    counted = {key: end for key, end in ends.items() if end <= last}
    problems = [client.problem for client in clients if client.problem]
    lost = sum(key not in client.seen for client in clients for key in counted)
    if problems or lost:
        raise ToolError(f"{lost} seconds never arrived at a viewer. {'; '.join(problems[:3])}")
    charted = _drawn_at(counted, drawn)
    clients_s = [
        client.seen[key] - end for client in clients for key, end in counted.items() if _while_open(client, end)
    ]
    answers_s = [answer for client in clients for answer in client.answers_s]
    say(f"{sum(c.bytes_received for c in clients) / max(1, len(answers_s)):.0f} bytes an answer on average")
    return [
        _row("end of a second on the host to its point on the chart", charted),
        _row(f"end of a second on the host to its arrival at {len(clients)} viewers", clients_s),
        _row("the server's answer to a viewer", answers_s),
    ]


def _while_open(client: Viewer, end: float) -> bool:
    """Whether the second ended after the viewer opened the page."""
    return end >= min(client.seen.values(), default=0.0)


def _drawn_at(ends: dict[Second, float], drawn: Sequence[tuple[float, str]]) -> list[float]:
    """Delays of the seconds that ended while the page was open; a draw shows all seconds up to its newest."""
    opened = drawn[0][0] if drawn else 0.0
    found = []
    for (trial, attempt, second), end in ends.items():
        if end < opened:
            continue
        shows = (at for at, newest in drawn if _shows(newest, trial, attempt, second))
        found.append(next(shows, float("inf")) - end)
    return found


def _shows(newest: str, trial: int, attempt: int, second: int) -> bool:
    parts = [int(part) for part in newest.split("/")] if newest else []
    return parts[:2] == [trial, attempt] and parts[2] >= second


def _row(name: str, values: Sequence[float]) -> Row:
    if not values:
        raise ToolError(f"{name}: nothing was measured.")
    ordered = sorted(values)
    p50, p99 = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.99))
    return {"name": name, "p50_s": p50, "p99_s": p99, "max_s": ordered[-1], "n": len(ordered)}


if __name__ == "__main__":
    run_command(main)
