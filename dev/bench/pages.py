"""`python -m dev.bench.pages`: response times of Results, Explore and other pages with 100,000 results.

Fills a private PostgreSQL and requests each kind of page 200 times with random parameters. Requests run in this
process but pass through all of Django: middleware, session, database, templates. Wanted: p95 below 100 ms.
"""

import argparse
import importlib
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np

from dev.console import run_command, say, step
from dev.stack import lifecycle, services
from dev.stack.state import default_state

if TYPE_CHECKING:
    from django.test import Client

WANTED_MS = 100.0
WARM_UP = 10
LISTS = ("/runs/", "/runs/?page=2", "/plans/", "/hosts/", "/", "/queue/")
Ask = Callable[[random.Random], str]


@dataclass(frozen=True)
class Measured:
    """On a busy machine the CPU time of this process tells the cost of the page itself."""

    name: str
    ms: Sequence[float]
    cpu_ms: Sequence[float]


def main(arguments: Sequence[str]) -> int:
    """Fill, measure, print; 1 if a page misses its limit."""
    parser = argparse.ArgumentParser(prog="bench_pages")
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=200, help="for each kind of page")
    parser.add_argument("--keep", action="store_true", help="keep the data for the next measurement")
    options = parser.parse_args(arguments)
    state = default_state("bench-pages")
    try:
        state.prepare()
        lifecycle.start_stores(state, durable=False)
        os.environ.update(services.environment(state))
        measured = _measure(options.results, options.requests)
    finally:
        if options.keep:
            lifecycle.stop(state)
        else:
            with step("removing the bench's processes and data"):
                lifecycle.remove(state)
    return _show(measured)


def _measure(results: int, requests: int) -> list[Measured]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from webapp.core.models import User
    from webapp.runs.models import Run

    call_command("migrate", verbosity=0)
    importlib.import_module("webapp.wsgi")  # sets up garbage collection as in the web tier
    made, runs = _filled(results), Run.objects.count()
    say(f"{made:,} results of {runs} runs on {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get_or_create(username="bench")[0])
    kinds = _kinds(runs)
    return [_timed(name, ask, read, client, requests) for name, ask, read in kinds]


def _filled(results: int) -> int:
    """Fill the database unless it still holds data; the number of results."""
    from django.db import connection, transaction

    from dev.bench.rows import fill
    from webapp.results.models import Result

    if kept := Result.objects.count():
        return kept
    with step(f"filling in {results:,} results"):
        with transaction.atomic():
            made = fill(results)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    return made


def _timed(name: str, ask: Ask, read: Callable[["Client", str], None], client: "Client", requests: int) -> Measured:
    chance = random.Random(name)  # noqa: S311 - the same choices each time
    for _ in range(WARM_UP):
        read(client, ask(chance))
    times, cpu = [], []
    for _ in range(requests):
        address = ask(chance)
        started_at, worked = time.perf_counter(), time.process_time()
        read(client, address)
        times.append(1000 * (time.perf_counter() - started_at))
        cpu.append(1000 * (time.process_time() - worked))
    return Measured(name, times, cpu)


def _whole(client: "Client", address: str) -> None:
    response = client.get(address, follow=True)
    if response.status_code != 200:
        raise RuntimeError(f"{address}: {response.status_code}")


def _first_rows(client: "Client", address: str) -> None:
    """Read the heading and the first result only."""
    lines = iter(client.get(address).streaming_content)  # type: ignore[attr-defined]
    next(lines)
    next(lines, None)  # a filter may match nothing


def _kinds(runs: int) -> list[tuple[str, Ask, Callable[["Client", str], None]]]:
    return [
        ("results: newest first, sorted, other columns", _list, _whole),
        ("results: filtered by place and factor", lambda chance: f"/results/?{_filters(chance, runs)}", _whole),
        ("compare: one to three runs, all charts", lambda chance: _comparison(chance, runs), _whole),
        ("compare: latency and time line", lambda chance: _comparison(chance, runs, detail=True), _whole),
        ("run: 504 trials", lambda chance: f"/runs/{chance.randint(1, runs)}/", _whole),
        ("runs, plans, hosts, overview, queue", lambda chance: chance.choice(LISTS), _whole),
        ("results as CSV: first rows", lambda chance: f"/results.csv?{_filters(chance, runs)}", _first_rows),
    ]


def _list(chance: random.Random) -> str:
    sorts = ("", "when", "-iops", "iops", "-latency_p99", "latency_mean", "-latency_p999", "bytes_per_s")
    given = {"sort": chance.choice(sorts)}
    if chance.random() < 0.3:
        given["columns"] = "target,serial,block_size,iodepth,iops,latency_p99,when"
    return f"/results/?{urlencode(given)}"


def _filters(chance: random.Random, runs: int) -> str:
    kinds: list[dict[str, str]] = [
        {"host": f"storage{chance.randrange(8)}"},
        {"run": str(chance.randint(1, runs))},
        {"run": f"{chance.randint(1, runs // 2)}..{runs}"},
        {"plan": f"grid-{chance.randrange(12)}", "direction": chance.choice(("read", "write"))},
        {"factor.block_size": chance.choice(("4k", "8k, 16k", "4k..64k *2"))},
        {"factor.iodepth": "32", "factor.scheduler": "kyber", "host": f"storage{chance.randrange(8)}"},
        {"serial": f"S64G{chance.randrange(8)}1R800123", "sort": "-iops"},
        {"factor.ioengine": "psync", "sort": "-latency_p99", "repeat": "2..3"},
        {"invalid": "1", "sort": "-latency_p999"},
    ]
    return urlencode(chance.choice(kinds))


def _comparison(chance: random.Random, runs: int, *, detail: bool = False) -> str:
    chosen = sorted(chance.sample(range(1, runs + 1), chance.randint(1, 3)))
    given = {
        "run": ",".join(map(str, chosen)), "x": chance.choice(("iodepth", "block_size")), "panel": "pattern",
        "series": chance.choice(("ioengine", "scheduler", "run", "serial", "model")),
        "metric": chance.choice(("iops", "latency_p99", "bytes_per_s")), "factor.direct": "on",
    }  # fmt: skip
    if detail:
        given["view"] = chance.choice(("latency", "timeline"))
    else:
        given["chart"] = chance.choice(("", "", "bar", "heat"))
    return f"/explore/?{urlencode({key: value for key, value in given.items() if value})}"


def _show(measured: Sequence[Measured]) -> int:
    say(f"{'page':<46} {'n':>4} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'CPU p95':>8}")
    for each in measured:
        p50, p95, highest = np.percentile(each.ms, (50, 95, 100))
        missed = "" if p95 < WANTED_MS else f"   MISSED: p95 < {WANTED_MS:g} ms is wanted"
        cpu = np.percentile(each.cpu_ms, 95)
        say(f"{each.name:<46} {len(each.ms):>4} {p50:>8.1f} {p95:>8.1f} {highest:>8.1f} {cpu:>8.1f}{missed}")
    return 0 if all(np.percentile(each.ms, 95) < WANTED_MS for each in measured) else 1


if __name__ == "__main__":
    run_command(main)
