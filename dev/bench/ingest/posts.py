"""Report posts per second ÷ posts per second to a bare view that inserts and commits the same row."""

import argparse
import statistics
import time
from collections.abc import Callable

from dev.bench.figures import Figure, figure
from dev.bench.ingest.http_client import posts_per_s
from dev.bench.ingest.server import one_gunicorn, prepare
from dev.bench.ingest.simulated_hosts import SimulatedHost, create_hosts
from dev.console import say, step
from dev.stack.state import State

WANTED = 0.5
HOSTS = 8
LENGTH_S = 4.0


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """Alternate between reports and bare posts; the first pair warms up and is not counted."""
    prepare(state)
    hosts = create_hosts(HOSTS)
    reports, bare = [_reports(host) for host in hosts], [_bare_posts(host) for host in hosts]
    ratios: list[float] = []
    with one_gunicorn(state) as port:
        for pair in range(options.pairs + 1):
            with step(f"posts, pair {pair} of {options.pairs}" if pair else "warm-up"):
                report_rate = posts_per_s(port, reports, LENGTH_S)
                bare_rate = posts_per_s(port, bare, LENGTH_S)
            if pair:
                ratios.append(report_rate / bare_rate)
                say(f"    {report_rate:.0f} reports/s, {bare_rate:.0f} bare/s, ratio {ratios[-1]:.2f}")
    met = statistics.median(ratios) >= WANTED
    return [figure("report posts ÷ bare view", "ratio", ratios, f">= {WANTED}", met=met)]


def _reports(host: SimulatedHost) -> Callable[[], bytes]:
    seconds = iter(range(10**9))
    return lambda: host.report(next(seconds), time.time())


def _bare_posts(host: SimulatedHost) -> Callable[[], bytes]:
    seconds = iter(range(10**9))
    return lambda: host.bare_post(next(seconds))
