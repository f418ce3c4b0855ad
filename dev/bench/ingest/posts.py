"""Report posts ÷ posts to a bare view that inserts and commits the same row, per CPU second of gunicorn.

The clients share the machine with the server and would limit posts per second.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from dev.bench.figures import Figure, cpu_s, figure
from dev.bench.ingest.load import Server, at_once
from dev.bench.ingest.server import one_gunicorn, prepare
from dev.bench.ingest.simulated_hosts import REPORT, SimulatedHost, create_hosts
from dev.console import say, step
from dev.stack import processes, services
from dev.stack.state import State

WANTED = 0.5
HOSTS = 8
AGE = timedelta(days=1)  # of the attempts, whose clients report many seconds in each real one


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """Alternate between reports and bare posts; the first pair warms up and is not counted."""
    prepare(state)
    hosts = [_Posts(host) for host in create_hosts(HOSTS, age=AGE)]
    ratios: list[float] = []
    with one_gunicorn(state) as port:
        server = Server(port, HOSTS)
        for pair in range(options.pairs + 1):
            with step(f"posts, pair {pair} of {options.pairs}" if pair else "warm-up"):
                report_rate = _rate(state, [partial(each.report, server) for each in hosts], options.post_seconds)
                bare_rate = _rate(state, [partial(each.bare, server) for each in hosts], options.post_seconds)
            if pair:
                ratios.append(report_rate / bare_rate)
                say(
                    f"    per CPU second: {report_rate:.0f} reports, {bare_rate:.0f} bare posts, ratio {ratios[-1]:.2f}"
                )
    met = statistics.median(ratios) >= WANTED
    return [figure("report posts ÷ bare view, per CPU second of gunicorn", "ratio", ratios, f">= {WANTED}", met=met)]


class _Posts:
    def __init__(self, host: SimulatedHost) -> None:
        self._host = host
        self._seconds, self._bare_seconds = itertools.count(), itertools.count()

    def report(self, server: Server) -> None:
        server.post(REPORT, self._host.headers, self._host.report(next(self._seconds), [time.time()]))

    def bare(self, server: Server) -> None:
        server.post(f"/bare/{self._host.attempt}/{next(self._bare_seconds)}", {})


def _rate(state: State, posts: Sequence[Callable[[], None]], seconds: float) -> float:
    """Posts per CPU second; each client sends its next post as soon as the last is answered."""
    before = _gunicorn_cpu_s(state)
    done = sum(at_once(partial(_post_repeatedly, seconds=seconds), posts))
    return done / (_gunicorn_cpu_s(state) - before)


def _post_repeatedly(post: Callable[[], None], seconds: float) -> int:
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        post()
        done += 1
    return done


def _gunicorn_cpu_s(state: State) -> float:
    gunicorn = processes.known(state, services.WEB)
    return sum(cpu_s(pid) for pid in processes.tree(gunicorn.pid)) if gunicorn else 0.0
