"""Many hosts against the whole server: each measures, and reports as often as the server asks it to.

Hosts behave like `worker.link.reporter`: one report is under way at a time, with all seconds that have ended since the
last one. The next one follows `report_every_s` after it, and not earlier than a second less than that after the reply.
`overload` plays more hosts than the server can hear every second: it asks for fewer reports, loses nothing, and
recovers.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from dev.bench.figures import Figure, figure
from dev.bench.ingest.load import Server, at_once
from dev.bench.ingest.server import prepare
from dev.bench.ingest.simulated_hosts import REPORT, SimulatedHost, create_hosts
from dev.console import say, step
from dev.stack import lifecycle, services
from dev.stack.state import State

MAX_P99_DELAY_S, MAX_DELAY_S = 2.0, 15.0
OVERLOAD = 4  # times as many hosts
QUIET_HOSTS = 20  # that go on when the load has gone


class _Reply(msgspec.Struct):
    report_every_s: float


@dataclass
class _Reporter:
    host: SimulatedHost
    phase_s: float  # its seconds end so much later than those of the first
    confirmed: int = 0  # seconds
    every_s: float = 1.0
    delays_s: list[float] = field(default_factory=list)  # from the end of a report's oldest second to its answer

    def run(self, port: int, seconds: int) -> None:
        """Measure for so many seconds from now on, until all of them are confirmed. Over a connection of its own."""
        server = Server(port, 1)
        began = time.time() + self.phase_s - self.confirmed
        total = self.confirmed + seconds
        while self.confirmed < total:
            first_ends = began + self.confirmed + 1
            time.sleep(max(0.0, first_ends - time.time()))
            sent_at = time.time()
            ended = [began + n + 1 for n in range(self.confirmed, min(total, int(sent_at - began)))] or [first_ends]
            answer = server.post(REPORT, self.host.headers, self.host.report(self.confirmed, ended))
            replied_at = time.time()
            self.delays_s.append(replied_at - first_ends)
            self.confirmed += len(ended)
            self.every_s = msgspec.json.decode(answer, type=_Reply).report_every_s
            time.sleep(max(sent_at + self.every_s, replied_at + self.every_s - 1) - replied_at)


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """As many hosts as the server can hear every second."""
    reporters, lost = _load(state, options.hosts, options.seconds)
    delays = [delay for each in reporters for delay in each.delays_s]
    return [_lost(lost), _delay("p99", float(np.percentile(delays, 99)), MAX_P99_DELAY_S)]


def overload(state: State, options: argparse.Namespace) -> list[Figure]:
    """More than that; then all but a few are silent."""
    reporters, lost = _load(state, OVERLOAD * options.hosts, options.seconds)
    longest = max(delay for each in reporters for delay in each.delays_s)
    say(f"    the server asked for a report every {max(each.every_s for each in reporters):.1f} s under load")
    _run(state, reporters[:QUIET_HOSTS], options.quiet_seconds)
    every_s = max(each.every_s for each in reporters[:QUIET_HOSTS])
    return [
        _lost(lost),
        _delay("longest", longest, MAX_DELAY_S),
        figure("report interval after the load", "s", [every_s], "1", met=every_s == 1),
    ]


def _load(state: State, hosts: int, seconds: int) -> tuple[list[_Reporter], int]:
    """The hosts, and how many of their samples the server does not have."""
    prepare(state)
    from webapp.results.models import Sample

    with step(f"creating {hosts} hosts"):
        simulated = create_hosts(hosts)
    lifecycle.start_server(state, services.reserve_address(state))
    reporters = [_Reporter(host, number / hosts) for number, host in enumerate(simulated)]
    _run(state, reporters, seconds)
    kept = Sample.objects.filter(attempt__in=[host.attempt for host in simulated]).count()
    return reporters, hosts * seconds - kept


def _run(state: State, reporters: Sequence[_Reporter], seconds: int) -> None:
    port = state.read_facts("ports.json")[services.WEB]
    with step(f"{len(reporters)} hosts report for {seconds} s"):
        at_once(lambda each: each.run(port, seconds), reporters)


def _lost(samples: int) -> Figure:
    return figure("samples lost", "", [float(samples)], "0", met=samples == 0)


def _delay(which: str, delay_s: float, wanted_s: float) -> Figure:
    return figure(f"end of a sample to committed, {which}", "s", [delay_s], f"< {wanted_s:g}", met=delay_s < wanted_s)
