"""Many hosts in one process, each with its own phase: batches are due by the clock, whether or not answers come."""

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from webapp.local.ingest_bench.lab import Player
from webapp.local.ingest_bench.poster import Connection, Poster

DRAIN_S = 30.0


@dataclass
class Played:
    latencies_s: list[float] = field(default_factory=list)  # from when a sample ended to its answer
    backlog: list[int] = field(default_factory=list)  # samples that had ended and were not answered, once a second


class _Game:
    def __init__(self, port: int, players: Sequence[Player], seconds: int) -> None:
        self._players = players
        self._total = len(players) * seconds
        self._waiting: dict[int, deque[tuple[int, float]]] = defaultdict(deque)
        self._poster = Poster(port, [self._maker(n) for n in range(len(players))])
        self._places = {id(each): n for n, each in enumerate(self._poster.connections)}
        self._next: dict[int, tuple[int, float]] = {}
        self._began = time.monotonic() + 1
        self._ahead = time.time() - time.monotonic()
        self._due = 0
        self._answered = 0
        self.found = Played()

    def _maker(self, place: int):  # type: ignore[no-untyped-def]
        def make(_: int) -> bytes:
            number, due_at = self._next[place]
            return self._players[place].second(number, due_at + self._ahead)

        return make

    def play(self) -> Played:
        counted, drain_until = 0, None
        while self._answered < self._total:
            now = time.monotonic()
            self._let_end(now)
            if now - self._began > counted:
                self.found.backlog.append(self._due - self._answered)
                counted += 1
            if self._due == self._total:
                drain_until = drain_until or now + DRAIN_S
                if now > drain_until:
                    break
            for connection in self._poster.answers(self._wait_s(now)):
                self._take(connection)
        self.found.backlog.append(self._due - self._answered)
        self._poster.close()
        return self.found

    def _due_at(self, number: int) -> float:
        """Samples end one after another, evenly spread: host n's at n / hosts of every second."""
        return self._began + 1 + number / len(self._players)

    def _wait_s(self, now: float) -> float:
        return min(0.2, self._due_at(self._due) - now) if self._due < self._total else 0.2

    def _let_end(self, now: float) -> None:
        while self._due < self._total and self._due_at(self._due) <= now:
            second, place = divmod(self._due, len(self._players))
            self._waiting[place].append((second, self._due_at(self._due)))
            self._due += 1
            self._send(place)

    def _send(self, place: int) -> None:
        connection = self._poster.connections[place]
        if self._waiting[place] and connection.sent == connection.answered:
            self._next[place] = self._waiting[place].popleft()
            self._poster.send_next(connection, self._next[place][1])

    def _take(self, connection: Connection) -> None:
        self.found.latencies_s.append(time.monotonic() - connection.due_at)
        self._answered += 1
        self._send(self._places[id(connection)])


def play(port: int, players: Sequence[Player], seconds: int) -> Played:
    """Every player reports one second a second, for so long."""
    return _Game(port, players, seconds).play()
