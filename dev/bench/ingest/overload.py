"""More hosts than the server can hear every second: it asks for fewer reports, loses nothing, and recovers.

Simulated hosts behave like `worker.link.reporter`: one report is under way at a time, with all seconds that have ended
since the last one; the next one follows when the reply's `report_every_s` has passed.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from dev.bench.figures import Figure, figure
from dev.bench.ingest.http_client import Client, Connection
from dev.bench.ingest.server import prepare
from dev.bench.ingest.simulated_hosts import SimulatedHost, create_hosts
from dev.console import say, step
from dev.stack import lifecycle, services
from dev.stack.state import State

DELAY_WANTED_S = 15.0
QUIET_HOSTS, QUIET_S = 20, 60.0  # that go on when the load has gone, and for how long
DRAIN_S = 60.0


class _Reply(msgspec.Struct):
    report_every_s: float


@dataclass
class _Reporter:
    host: SimulatedHost
    phase_s: float  # its seconds end so much later than those of the first
    confirmed: int = 0  # seconds
    under_way: int = 0
    sent_at: float = 0.0
    every_s: float = 1.0


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """`--hosts` report for `--seconds`; then all but a few are silent."""
    prepare(state)
    from webapp.results.models import Sample

    with step(f"creating {options.hosts} hosts"):
        hosts = create_hosts(options.hosts)
    lifecycle.start_server(state, services.reserve_address(state))
    load = _Load(state.read_facts("ports.json")[services.WEB], hosts)
    end = load.began + options.seconds
    with step(f"{options.hosts} hosts report for {options.seconds} s"):
        load.run(end, load.reporters)
        busy_every_s = max(each.every_s for each in load.reporters)
        load.drain(end)
    kept, longest = Sample.objects.count(), max(load.delays_s)
    lost = options.hosts * (options.seconds - 1) - min(kept, load.confirmed)
    with step(f"{QUIET_HOSTS} hosts report for {QUIET_S:g} s"):
        quiet_every_s = load.run_quietly()
    say(f"    the server asked for a report every {busy_every_s:.1f} s under load")
    load.close()
    lifecycle.stop(state)
    return [
        figure("samples lost", "", [float(max(0, lost))], "0", met=lost <= 0),
        figure("end of a sample to committed, longest", "s", [longest], "< 15", met=longest < DELAY_WANTED_S),
        figure("report interval after the load", "s", [quiet_every_s], "1", met=quiet_every_s == 1),
    ]


class _Load:
    def __init__(self, port: int, hosts: Sequence[SimulatedHost]) -> None:
        self.reporters = [_Reporter(host, number / len(hosts)) for number, host in enumerate(hosts)]
        self.delays_s: list[float] = []  # from the end of the oldest second of a report to its answer
        self._client = Client(port, len(hosts))
        self.began = time.monotonic() + 1
        self._clock_offset_s = time.time() - time.monotonic()

    @property
    def confirmed(self) -> int:
        return sum(each.confirmed for each in self.reporters)

    def run(self, until: float, reporters: Sequence[_Reporter]) -> None:
        while (now := time.monotonic()) < until:
            self._send(now, until, reporters)
            self._receive()

    def drain(self, until: float) -> None:
        """Go on until everything that ended before `until` is confirmed."""
        give_up_at = time.monotonic() + DRAIN_S
        while (now := time.monotonic()) < give_up_at and any(self._ended(each, until) for each in self.reporters):
            self._send(now, until, self.reporters)
            self._receive()

    def run_quietly(self) -> float:
        """The longest report interval of the few hosts that go on, in s. Seconds of the pause were not measured."""
        few = self.reporters[:QUIET_HOSTS]
        for each in few:
            each.phase_s = time.monotonic() - self.began - each.confirmed
        self.run(time.monotonic() + QUIET_S, few)
        return max(each.every_s for each in few)

    def close(self) -> None:
        self._client.close()

    def _ended(self, reporter: _Reporter, now: float) -> int:
        """Seconds that have ended and are not confirmed."""
        return max(0, int(now - self.began - reporter.phase_s)) - reporter.confirmed

    def _send(self, now: float, until: float, reporters: Sequence[_Reporter]) -> None:
        for connection, reporter in zip(self._client.connections, reporters, strict=False):
            ended = self._ended(reporter, min(now, until))
            if ended and not connection.waiting and now >= reporter.sent_at + reporter.every_s:
                reporter.under_way, reporter.sent_at = ended, now
                self._client.send(connection, self._report(reporter))

    def _report(self, reporter: _Reporter) -> bytes:
        ended_at = [self._ended_at(reporter, reporter.confirmed + n) for n in range(reporter.under_way)]
        return reporter.host.seconds(reporter.confirmed, [at + self._clock_offset_s for at in ended_at])

    def _ended_at(self, reporter: _Reporter, second: int) -> float:
        return self.began + reporter.phase_s + second + 1

    def _receive(self) -> None:
        for connection in self._client.answers(0.01):
            self._note(connection, self.reporters[connection.number])

    def _note(self, connection: Connection, reporter: _Reporter) -> None:
        self.delays_s.append(time.monotonic() - self._ended_at(reporter, reporter.confirmed))
        reporter.every_s = msgspec.json.decode(connection.reply, type=_Reply).report_every_s
        reporter.confirmed, reporter.under_way = reporter.confirmed + reporter.under_way, 0
