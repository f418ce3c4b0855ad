"""More load than the server can take every second: it asks for fewer reports, loses nothing, and recovers.

Simulated hosts behave like `worker.reporter`: one report under way at a time, with all seconds that have ended since
the last one, and the next report when the reply's `report_every_s` has passed.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from webapp.local import services, stack
from webapp.local.bench import Figure, figure
from webapp.local.console import say, step
from webapp.local.ingest_bench.lab import Player, end_runs, make_players
from webapp.local.ingest_bench.poster import Connection, Poster, saturate
from webapp.local.state import State

DELAY_WANTED_S, RESEND_WANTED_S = 15.0, 30.0
FEW = 20  # hosts that go on when the load has gone
QUIET_S = 60.0  # for how long
DRAIN_S = 60.0
CONNECTIONS = 64


class _Reply(msgspec.Struct):
    report_every_s: float


@dataclass
class _Host:
    player: Player
    connection: Connection
    phase_s: float
    taken: int = 0  # seconds that were confirmed
    sending: int = 0
    next_at: float = 0.0
    every_s: float = 1.0


@dataclass
class _Load:
    """Hosts that report until `until`."""

    poster: Poster
    hosts: Sequence[_Host]
    began: float
    delays_s: list[float] = field(default_factory=list)  # of the oldest second of each report

    def run(self, until: float, hosts: Sequence[_Host]) -> None:
        while (now := time.monotonic()) < until:
            self._send(hosts, now, until)
            self._receive()

    def drain(self, until: float) -> None:
        """Until all that ended before `until` is confirmed."""
        give_up = time.monotonic() + DRAIN_S
        while (now := time.monotonic()) < give_up and any(self._waiting(host, until) for host in self.hosts):
            self._send(self.hosts, now, until)
            self._receive()

    def _waiting(self, host: _Host, now: float) -> int:
        return max(0, int(now - self.began - host.phase_s)) - host.taken

    def _send(self, hosts: Sequence[_Host], now: float, until: float) -> None:
        for host in hosts:
            waiting = self._waiting(host, min(now, until))
            if waiting and not host.sending and now >= host.next_at:
                host.sending, host.next_at = waiting, now + host.every_s
                self.poster.send_next(host.connection, self.began + host.phase_s + host.taken + 1)

    def _receive(self) -> None:
        for connection in self.poster.answers(0.01):
            host = self._of[id(connection)]
            self.delays_s.append(time.monotonic() - connection.due_at)
            every_s = msgspec.json.decode(connection.reply, type=_Reply).report_every_s
            host.taken, host.sending = host.taken + host.sending, 0
            host.next_at, host.every_s = host.next_at + every_s - host.every_s, every_s

    def __post_init__(self) -> None:
        self._of = {id(host.connection): host for host in self.hosts}


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """`--hosts` report for `--seconds`; then all but a few are silent."""
    from webapp.local.ingest_bench.__main__ import _prepare

    _prepare(state)
    from webapp.results.models import Sample

    with step(f"{options.hosts} hosts"):
        players = make_players(options.hosts, running=True)
    stack.start_server(state, services.reserve_address(state))
    load = _load(state.read_facts("ports.json")[services.WEB], players)
    end = load.began + options.seconds
    with step(f"{options.hosts} hosts report for {options.seconds} s"):
        load.run(end, load.hosts)
        busy_every_s = max(host.every_s for host in load.hosts)
        load.drain(end)
    lost = sum(host.taken for host in load.hosts) - Sample.objects.count()
    unsent = sum(load._waiting(host, end) for host in load.hosts)
    with step(f"{FEW} hosts report for {QUIET_S:.0f} s"):
        for host in load.hosts[:FEW]:
            host.phase_s = time.monotonic() - load.began - host.taken  # what was not measured is not sent
        load.run(time.monotonic() + QUIET_S, load.hosts[:FEW])
    quiet_every_s = max(host.every_s for host in load.hosts[:FEW])
    say(f"    asked for a report every {busy_every_s:.1f} s under load")
    load.poster.close()
    stack.stop(state)
    longest = max(load.delays_s)
    return [
        figure("samples lost or not sent", "", [float(lost + unsent)], "0", met=lost + unsent == 0),
        figure("end of a sample to committed, longest", "s", [longest], "< 15", met=longest < DELAY_WANTED_S),
        figure("report interval after the load", "s", [quiet_every_s], "1", met=quiet_every_s == 1),
    ]


def _load(port: int, players: Sequence[Player]) -> _Load:
    hosts: list[_Host] = []

    def maker(place: int) -> Callable[[int], bytes]:
        return lambda _: hosts[place].player.seconds(hosts[place].taken, hosts[place].sending)

    poster = Poster(port, [maker(place) for place in range(len(players))])
    for place, (player, connection) in enumerate(zip(players, poster.connections, strict=True)):
        hosts.append(_Host(player, connection, place / len(players)))
    return _Load(poster, hosts, time.monotonic() + 1)


def measure_resend(state: State, options: argparse.Namespace) -> list[Figure]:
    """`--trials` finished trials of `--samples` seconds, a host each: from the first post to the last commit."""
    from webapp.local.ingest_bench.__main__ import _prepare

    _prepare(state)
    services.start_web(state, services.reserve_address(state))
    with step(f"{options.trials} trials of {options.samples} s"):
        requests = deque(player.story(options.samples) for player in make_players(options.trials, running=False))
        port = state.read_facts("ports.json")[services.WEB]
        _, took_s = saturate(port, [lambda _: requests.popleft() if requests else None] * CONNECTIONS)
        end_runs()
    stack.stop(state)
    met = took_s < RESEND_WANTED_S
    return [figure(f"{options.trials} resent trials committed", "s", [took_s], f"< {RESEND_WANTED_S:g}", met=met)]
