"""`make bench-size`: response times of Results, Explore, Bench, Trend and other pages with many results and samples.

Fills a private PostgreSQL and requests each kind of page 200 times with random parameters. Requests run in this
process but pass through all of Django: middleware, session, database, templates. Each address is measured three times:
after a change of what all answers read, such as a price; again; and after the newest run has ended, before background
tasks have seen it. Wanted: p95 below 300 ms after a change, and else below 100 ms.
"""

import argparse
import importlib
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dev.console import run_command, say, step
from dev.stack import lifecycle, services
from dev.stack.state import default_state

if TYPE_CHECKING:
    from django.test import Client

    from dev.bench.requests import Kind

WANTED_MS, WANTED_AFTER_CHANGE_MS = 100.0, 300.0
WARM_UP = 10


@dataclass(frozen=True)
class Measured:
    """On a busy machine the CPU time, of this process and of its PostgreSQL backend, tells the cost of the page."""

    name: str
    ms: Sequence[float]
    cpu_ms: Sequence[float]
    wanted_ms: float

    @property
    def p95_ms(self) -> float:
        return float(np.percentile(self.ms, 95))

    @property
    def met(self) -> bool:
        return self.p95_ms < self.wanted_ms


def main(arguments: Sequence[str]) -> int:
    """Fill, measure, print; 1 if a page misses its limit."""
    parser = argparse.ArgumentParser(prog="make bench-size")
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=100, help="for each result, one a second")
    parser.add_argument("--requests", type=int, default=200, help="for each kind of page")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    parser.add_argument("--keep", action="store_true", help="keep the data for the next measurement")
    options = parser.parse_args(arguments)
    state = default_state(f"bench-size-{options.results}")
    try:
        state.prepare()
        lifecycle.start_stores(state, durable=False)
        os.environ.update(services.environment(state))
        measured = _measure(options.results, options.samples, options.requests)
    finally:
        if options.keep:
            lifecycle.stop(state)
        else:
            with step("removing the bench's processes and data"):
                lifecycle.remove(state)
    return show(measured, as_json=options.json)


def _measure(results: int, samples: int, requests: int) -> list[Measured]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from dev.bench.requests import kinds
    from webapp.core.models import User
    from webapp.runs.models import Run

    call_command("migrate", verbosity=0)
    importlib.import_module("webapp.wsgi")  # sets up garbage collection as in the web tier
    made, runs = _filled(results, samples), Run.objects.count()
    say(f"{made:,} results of {runs} runs on {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get_or_create(username="bench")[0])
    return [measured for kind in kinds(runs) for measured in _timed(kind, client, requests)]


def _filled(results: int, samples: int) -> int:
    """Fill the database unless it still holds data; the number of results."""
    from django.db import transaction

    from dev.bench.rows import fill
    from dev.bench.samples import fill_samples
    from webapp.results.models import Result

    if kept := Result.objects.count():
        return kept
    with step(f"filling in {results:,} results"), transaction.atomic():
        made = fill(results)
    _analyse()  # before the samples, which are made from these tables
    with step(f"filling in {made * samples:,} samples"):
        fill_samples(samples)
    _analyse()
    return made


def _analyse() -> None:
    """As autovacuum does in a real installation: without statistics PostgreSQL chooses slow plans."""
    from django.db import connection

    with step("analysing the tables"), connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _timed(kind: "Kind", client: "Client", requests: int) -> Iterator[Measured]:
    from webapp.analysis.seals import COMMON, COMPLETE, RESULTS
    from webapp.core import changes
    from webapp.runs.models import Run

    newest = Run.objects.order_by("-number")[0]
    scopes = (COMMON,), (), (RESULTS, COMPLETE, f"run {newest.pk}")
    chance = random.Random(kind.name)  # noqa: S311 - the same choices each time
    for _ in range(WARM_UP):
        kind.read(client, kind.address(chance))
    times: list[list[float]] = [[] for _ in scopes]
    cpu: list[list[float]] = [[] for _ in scopes]
    for _ in range(requests):
        address = kind.address(chance)
        for place, changed in enumerate(scopes):
            for scope in changed:
                changes.note(scope)
            started_at, worked_ms = time.perf_counter(), _cpu_ms()
            kind.read(client, address)
            times[place].append(1000 * (time.perf_counter() - started_at))
            cpu[place].append(_cpu_ms() - worked_ms)
    yield Measured(f"{kind.name}, changed", times[0], cpu[0], WANTED_AFTER_CHANGE_MS)
    yield Measured(kind.name, times[1], cpu[1], WANTED_MS)
    yield Measured(f"{kind.name}, run ended", times[2], cpu[2], WANTED_AFTER_CHANGE_MS)


def _cpu_ms() -> float:
    """Of this process and its backend (the first number of schedstat is in ns)."""
    from django.db import connection

    connection.ensure_connection()
    backend = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()[0]
    return 1000 * time.process_time() + int(backend) / 1e6


def show(measured: Sequence[Measured], *, as_json: bool) -> int:
    """Print the table; the exit status: 1 if a page misses its limit."""
    say(f"{'page':<56} {'n':>4} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'CPU p50':>8} {'CPU p95':>8}")
    for each in measured:
        p50, p95, highest = np.percentile(each.ms, (50, 95, 100))
        missed = "" if each.met else f"   MISSED: p95 < {each.wanted_ms:g} ms is wanted"
        cpu50, cpu95 = np.percentile(each.cpu_ms, (50, 95))
        numbers = "".join(f" {value:>8.1f}" for value in (p50, p95, highest, cpu50, cpu95))
        say(f"{each.name:<56} {len(each.ms):>4}{numbers}{missed}")
    if as_json:
        rows = [{"name": each.name, "count": len(each.ms), "p95_ms": each.p95_ms, "met": each.met} for each in measured]
        say(json.dumps(rows, indent=2))
    return 0 if all(each.met for each in measured) else 1


if __name__ == "__main__":
    run_command(main)
