"""Many hosts in one process against the whole stack: each reports one second per second, by the clock.

Batches are due whether or not earlier ones were answered, so a server that is too slow shows a growing backlog.
"""

import argparse
import os
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from dev.bench.figures import Figure, figure
from dev.bench.ingest.http_client import Client, Connection
from dev.bench.ingest.server import prepare
from dev.bench.ingest.simulated_hosts import SimulatedHost, create_hosts
from dev.console import say, step
from dev.stack import lifecycle, services
from dev.stack.state import State

P99_WANTED_S = 2.0
GROWTH_WANTED = 0.001
DRAIN_S = 30.0


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """Latencies run from the end of a sample to the answer, which the server sends after the commit."""
    prepare(state)
    from webapp.results.models import Sample

    with step(f"creating {options.hosts} hosts"):
        hosts = create_hosts(options.hosts)
    lifecycle.start_server(state, services.reserve_address(state))
    port = state.read_facts("ports.json")[services.WEB]
    with step(f"{options.hosts} hosts report for {options.seconds} s"):
        load = PacedLoad(port, hosts, options.seconds).run()
    kept = Sample.objects.filter(attempt__in=[host.attempt for host in hosts]).count()
    lifecycle.stop(state)
    return _figures(load, options.hosts, options.seconds, kept)


@dataclass
class Load:
    latencies_s: list[float] = field(default_factory=list)  # from the end of a sample to its answer
    backlog: list[int] = field(default_factory=list)  # samples that ended and are not yet answered, once a second


class PacedLoad:
    """Samples end one after another, evenly spread: host n's at n / hosts of every second."""

    def __init__(self, port: int, hosts: Sequence[SimulatedHost], seconds: int) -> None:
        self._hosts = hosts
        self._total = len(hosts) * seconds
        self._waiting: dict[int, deque[tuple[int, float]]] = defaultdict(deque)  # host -> (second, due at)
        self._sent_due_at = [0.0] * len(hosts)
        self._client = Client(port, len(hosts))
        self._began = time.monotonic() + 1
        self._clock_offset_s = time.time() - time.monotonic()
        self._due = 0
        self._answered = 0
        self._load = Load()

    def run(self) -> Load:
        drain_until = float("inf")
        while self._answered < self._total and (now := time.monotonic()) < drain_until:
            self._end_samples(now)
            if now - self._began > len(self._load.backlog):
                self._load.backlog.append(self._due - self._answered)
            if self._due == self._total:
                drain_until = min(drain_until, now + DRAIN_S)
            for connection in self._client.answers(self._wait_s(now)):
                self._note_answer(connection)
        self._load.backlog.append(self._due - self._answered)
        self._client.close()
        return self._load

    def _due_at(self, number: int) -> float:
        return self._began + 1 + number / len(self._hosts)

    def _wait_s(self, now: float) -> float:
        return min(0.2, self._due_at(self._due) - now) if self._due < self._total else 0.2

    def _end_samples(self, now: float) -> None:
        while self._due < self._total and self._due_at(self._due) <= now:
            second, host = divmod(self._due, len(self._hosts))
            self._waiting[host].append((second, self._due_at(self._due)))
            self._due += 1
            self._send(self._client.connections[host])

    def _send(self, connection: Connection) -> None:
        if self._waiting[connection.number] and not connection.waiting:
            second, due_at = self._waiting[connection.number].popleft()
            self._sent_due_at[connection.number] = due_at
            self._client.send(connection, self._hosts[connection.number].report(second, due_at + self._clock_offset_s))

    def _note_answer(self, connection: Connection) -> None:
        self._load.latencies_s.append(time.monotonic() - self._sent_due_at[connection.number])
        self._answered += 1
        self._send(connection)


def _figures(load: Load, hosts: int, seconds: int, kept: int) -> list[Figure]:
    """A server that keeps up with all but 1 % of the samples has a backlog that grows by 1 % of them."""
    wanted, half = hosts * seconds, len(load.backlog) // 2
    first, second = fmean(load.backlog[:half] or [0]), fmean(load.backlog[half:])
    growth = (second - first) / (seconds / 2) / hosts
    keeps_up = growth <= GROWTH_WANTED
    p99 = sorted(load.latencies_s)[int(0.99 * len(load.latencies_s))]
    say(f"    {kept} of {wanted} samples kept; backlog at most {max(load.backlog)}, at the end {load.backlog[-1]}")
    say(f"    backlog on average: {first:.0f} samples in the first half, {second:.0f} in the second")
    say(f"    machine: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return [
        figure("samples lost", "", [float(wanted - kept)], "0", met=kept == wanted),
        figure("end of a sample to committed, p99", "s", [p99], f"< {P99_WANTED_S:g}", met=p99 < P99_WANTED_S),
        figure("growth of the backlog, share of samples", "", [growth], f"<= {GROWTH_WANTED}", met=keeps_up),
    ]  # fmt: skip
